"""Which files of a dataset's sources have other bytes than when it was made.

Only files are hashed whose stamp says that they were written to, or of which no note says what they held
(tasks/acquire/notes.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from corpusmill.config import Recipe
from corpusmill.dataset.manifest import Input, open_manifest
from corpusmill.errors import MillError
from corpusmill.store import Store
from tasks import acquire
from tasks.acquire import SourceUnit, notes
from tasks.acquire.fetch import http
from tasks.acquire.fetch.transport import is_remote, url_of

Place = tuple[str, str, str]
"""Source, snapshot, and locator (with the number of the block) of a file."""
OTHER = "other"
"""For the sha256 of bytes that were not fetched, and are not those of before: their ETag is another one."""


def by_place(inputs: Iterable[Input]) -> dict[Place, Input]:
    """The files that a manifest names."""
    return {(file.source, file.snapshot, file.locator): file for file in inputs}


def newest(name: str, store: Store) -> tuple[Input, ...]:
    """The files of the newest dataset of a name; none where there is none, or it cannot be read."""
    try:
        history = store.history(name)
        return open_manifest(store, history[-1]["manifest"], name).inputs if history else ()
    except MillError:
        return ()


def differing(before: Iterable[Input], after: Iterable[Input]) -> tuple[str, ...]:
    """`source/locator` of the files that two manifests both name, with other bytes."""
    then, now = by_place(before), by_place(after)
    return names(place for place, file in now.items() if differs(then.get(place), file.sha256))


def differs(then: Input | None, sha256: str | None) -> bool:
    """Whether a file was read before and has other bytes now, by what is known of them."""
    return then is not None and None not in (then.sha256, sha256) and then.sha256 != sha256


def digests_now(
    unit: SourceUnit, then: Mapping[Place, Input], recipe: Recipe, store: Store, *, fetch: bool = False
) -> tuple[str, ...] | None:
    """sha256 of each file of the unit (or of its block) now, by a note if there is one.

    Args:
        unit: as it is planned now.
        then: files as a manifest names them. Others that were not noted are not hashed either.
        fetch: whether what is on a server and was not noted is fetched; else `OTHER` stands for another ETag.

    Returns:
        None if they are not known.

    Raises:
        Unavailable: the file is missing, or cannot be read.
    """
    root = recipe.source[unit.source].root
    if (known := notes.known(unit, store)) and not (fetch and _other_etag(unit, known, root)):
        return known.digests
    if not any(place in then for place in places_of(unit)):
        return None
    if is_remote(root) and not fetch:
        return (OTHER,) * len(unit.places) if unit.stamp else None
    with acquire.fetched(unit, recipe) as file:
        return tuple(part.sha256 for part in file.parts or (file,))


def _other_etag(unit: SourceUnit, known: notes.Bytes, root: str) -> bool:
    """Whether a file that only a list names, without a stamp, has another one on its server now."""
    return is_remote(root) and unit.stamp is None and known.stamp != http.stamp(url_of(root, unit.locator))


def changed(units: Sequence[SourceUnit], before: Iterable[Input], recipe: Recipe, store: Store) -> tuple[str, ...]:
    """`source/locator` of the planned files that a manifest names with other bytes."""
    then = by_place(before)
    now = ((unit, digests_now(unit, then, recipe, store, fetch=True)) for unit in units)
    return names(place for unit, digests in now for place in other_places(unit, digests, then))


def other_places(unit: SourceUnit, digests: Sequence[str] | None, then: Mapping[Place, Input]) -> Iterator[Place]:
    """The files of a unit that had other bytes, by what is known of them."""
    for place, sha256 in zip(places_of(unit), digests or (), strict=digests is not None):
        if differs(then.get(place), sha256):
            yield place


def places_of(unit: SourceUnit) -> list[Place]:
    """How a manifest names the files of a unit."""
    return [(unit.source, unit.snapshot, place) for place in unit.places]


def names(places: Iterable[Place]) -> tuple[str, ...]:
    """`source/locator` of each file once, whatever the number of its blocks."""
    return tuple(sorted({f"{source}/{acquire.file_of(place)}" for source, _, place in places}))


SHOWN = 5
"""Files that a sentence names; --json names all."""


def said(files: Sequence[str], of: str) -> str:
    """The changed files as a sentence; empty without any."""
    return _sentence(files, "has", "have", f"other bytes than {of}")


def said_gone(files: Sequence[str]) -> str:
    """The files that are gone as a sentence; empty without any."""
    return _sentence(files, "is", "are", "gone")


def _sentence(files: Sequence[str], one: str, many: str, rest: str) -> str:
    if not files:
        return ""
    more = f" and {len(files) - SHOWN:,} more" if len(files) > SHOWN else ""
    subject = f"1 source file {one}" if len(files) == 1 else f"{len(files):,} source files {many}"
    return f"{subject} {rest}: {', '.join(files[:SHOWN])}{more}"
