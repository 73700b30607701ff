"""Sources: which files a recipe names, how to get at one, and what is in it. A source is one file in this folder.

A source is a module with `LIBRARIES`, `plan`, `reading` and `read` (see `SourceModule`); its file is named after the
`kind` of its section in `corpusmill/config/sources.py`. A file is known by its locator, the path below the source's
root; root, scheme and host are not part of its identity.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

from corpusmill.config import Recipe
from corpusmill.dataset.origins import lines
from corpusmill.errors import NotFound
from corpusmill.readers.outcomes import Outcome, ReadOptions, crashed
from corpusmill.readers.warc import FileFacts
from tasks.acquire import files
from tasks.acquire.fetch import transport
from tasks.acquire.fetch.sizes import asked, known
from tasks.acquire.fetch.transport import Fetched
from tasks.acquire.killers import Watch
from tasks.acquire.texts import ended
from tasks.acquire.tree.listing import Listing
from tasks.acquire.tree.pointers import leads_elsewhere
from tasks.acquire.tree.small_files import ARCHIVES, together
from tasks.acquire.units import SourceUnit, blocks_of, sha256_of_all, stamp_of_all
from tasks.units import libraries as installed

if TYPE_CHECKING:
    from corpusmill.store import Store

__all__ = ["Fetched", "SourceUnit", "cut", "fetched", "identity", "libraries", "may_be_cut", "plan", "read"]


class SourceModule(Protocol):
    """What a file in this folder has to have; `config` is the recipe's section of the source."""

    @property
    def LIBRARIES(self) -> tuple[str, ...]:
        """Libraries that decide what is read, by their names on the package index."""

    def plan(self, name: str, config: Any, seed: int) -> list[SourceUnit]:
        """Every unit of the source called `name`."""

    def reading(self, config: Any) -> dict[str, object]:
        """What decides, besides the unit's bytes, what is read from them: a version and keys of the section."""

    def read(
        self, unit: SourceUnit, file: Fetched, config: Any, options: ReadOptions, facts: FileFacts
    ) -> Iterator[Outcome]:
        """Exactly one outcome for every document or record that begins in the unit; never raises for its content."""


LISTED = "common-crawl"
"""The source whose files stand in lists, without their sizes."""
MAX_FAILURES = 100
"""A reader that raises so often in a row has reached no further record."""


def module_of(kind: str) -> SourceModule:
    """The module that reads a kind of source: `common-crawl` is common_crawl.py. Imported when a recipe names it."""
    return cast(SourceModule, import_module(f"{__name__}.{kind.replace('-', '_')}"))


def plan(recipe: Recipe, store: Store | None = None, *, ask: bool = True) -> list[SourceUnit]:
    """The units of every source: small files put together, large ones in blocks. Args, Raises: as `single`."""
    return in_order(together(single(recipe, store, ask=ask)))


def in_order(units: Iterable[SourceUnit]) -> list[SourceUnit]:
    """Units by source, snapshot, locator and block."""
    return sorted(units, key=lambda unit: (unit.source, unit.snapshot, unit.locator, unit.block))


def single(recipe: Recipe, store: Store | None = None, *, ask: bool = True) -> list[SourceUnit]:
    """Every file (or block of one) of every source, in order, none put together with others.

    Args:
        recipe: whose sources.
        store: remembers how large files on servers are, so that they are asked about once.
        ask: whether servers are asked about sizes that are not remembered; without them a file is one unit.

    Raises:
        NotFound: a root or crawl that does not exist.
        Unavailable: a server that does not answer.
    """
    units: set[SourceUnit] = set()
    for name, source in recipe.source.items():
        planned = module_of(source.kind).plan(name, source, recipe.seed)
        listed = source.kind == LISTED
        units.update(cut(planned, source.root, store, ask=ask) if listed else stamped(planned, source.root))
    return in_order(units)


def cut(planned: Sequence[SourceUnit], root: str, store: Store | None, *, ask: bool = True) -> list[SourceUnit]:
    """Large archives of a source whose lists name files without their sizes, in blocks; other units as they are."""
    wanted: dict[tuple[str, str], list[str]] = {}
    for unit in planned:
        if may_be_cut(unit):
            wanted.setdefault((unit.source, unit.snapshot), []).append(unit.locator)
    sizes = {key: (asked if ask else known)(root, *key, locators, store) for key, locators in wanted.items()}
    units: list[SourceUnit] = []
    for unit in planned:
        size = sizes[unit.source, unit.snapshot].get(unit.locator) if may_be_cut(unit) else None
        count = blocks_of(size or 0)
        units += [replace(unit, block=block, blocks=count) for block in range(count)]
    return stamped(units, root)


def stamped(units: Sequence[SourceUnit], root: str) -> list[SourceUnit]:
    """The units with the stamps of their files now. A bucket gave them with its listing; other servers give none."""
    if transport.is_remote(root):
        return list(units)
    stamps = {locator: _stamp(root, locator) for locator in {unit.locator for unit in units}}
    return [replace(unit, stamp=stamps[unit.locator]) for unit in units]


def _stamp(root: str, locator: str) -> str:
    try:
        return transport.stamp_of(transport.folder_of(root) / locator).text
    except OSError:
        return "missing"  # whoever reads it will say so, when all others are read


def file_of(place: str) -> str:
    """The locator in the place of a unit: without the number of the block."""
    return re.sub(r"#\d+$", "", place)


def may_be_cut(unit: SourceUnit) -> bool:
    """Whether the unit's file is an archive that has several blocks if it is large."""
    return unit.kind in ARCHIVES and files.CUT.search(unit.locator) is not None


def no_file(recipe: Recipe, listings: Sequence[Listing]) -> NotFound:
    """The error of a recipe whose sources list no file, with what they left out."""
    said = lines([listing.to_json() for listing in listings])
    return NotFound(
        f"recipe {recipe.name!r}: its sources list no file",
        "; ".join(re.sub(" +", " ", line) for line in said) or "expected at least one file",
        "Check source.*.root and pattern.",
    )


@contextmanager
def fetched(unit: SourceUnit, recipe: Recipe) -> Iterator[Fetched]:
    """One file as a local file with the sha256 of the unit's bytes; what was downloaded is removed at the end.

    Raises:
        Unavailable: the listed file is missing or cannot be read.
    """
    by_records = files.cut if unit.blocks > 1 and unit.kind in ARCHIVES else None
    root = recipe.source[unit.source].root
    if unit.members:
        with ExitStack() as stack:
            yield _all([stack.enter_context(transport.fetch(root, locator)) for locator in unit.members])
        return
    with transport.fetch(root, unit.locator, unit.begin, unit.end, cut=by_records, ranges=unit.ranges) as file:
        yield file


def _all(parts: Sequence[Fetched]) -> Fetched:
    """Files of a group as one."""
    return Fetched(
        parts[0].path,
        sha256_of_all([part.sha256 for part in parts]),
        sum(part.size for part in parts),
        stamp=stamp_of_all([part.stamp for part in parts]),
        settled=all(part.settled for part in parts),
        copied=all(part.copied for part in parts),
        parts=tuple(parts),
    )


def read(
    unit: SourceUnit,
    file: Fetched,
    recipe: Recipe,
    options: ReadOptions,
    facts: FileFacts,
    key: str | None = None,
) -> Iterator[Outcome]:
    """Exactly one outcome for every document or record of the unit, in file order, whatever its reader raises.

    Where a reader raises, one outcome `crashed` stands for the record. Readers go on behind it, as far as they catch it
    themselves or are iterators of their own; a generator ends there, and the file is noted as broken.

    Args:
        unit: what to read.
        file: as `fetched` gave it.
        recipe: whose source it is.
        options: bounds and policy.
        facts: filled with what else was met.
        key: of the work, by which a group's file is known again that killed its reader (killers.py).

    Raises:
        OSError: the file cannot be read; never for what stands in it.
        Unavailable: other files that it names are away.
    """
    if not unit.members:
        yield from _read(unit, file, recipe, options, facts)
        return
    with nullcontext() if key is None else Watch(key) as watch:
        everything = _Everything(unit, file, recipe, options)
        killers = watch.killers(everything) if watch else set()
        for number, (one, part) in enumerate(everything.files()):
            own = FileFacts()
            if watch:
                watch.reads(number)
            for outcome in _killed(part, own) if number in killers else _read(one, part, recipe, options, own):
                yield replace(outcome, file=outcome.file or one.locator)
            facts.add(own, one.locator)


@dataclass(frozen=True)
class _Everything:
    """Reads the files of a group for nothing: to see which of them kill their reader."""

    unit: SourceUnit
    file: Fetched
    recipe: Recipe
    options: ReadOptions

    def files(self) -> list[tuple[SourceUnit, Fetched]]:
        return list(zip(self.unit.files(), self.file.parts, strict=True))

    def __call__(self, begin: int, say: Callable[[int], None]) -> None:
        for number, (one, part) in enumerate(self.files()[begin:], begin):
            say(number)
            for _ in _read(one, part, self.recipe, self.options, FileFacts()):
                pass


def _killed(file: Fetched, facts: FileFacts) -> list[Outcome]:
    facts.bytes = file.size
    facts.fault(0, "crashed")
    return [ended("crashed", offset=0, record_type="file", payload_bytes=file.size)]


def _read(unit: SourceUnit, file: Fetched, recipe: Recipe, options: ReadOptions, facts: FileFacts) -> Iterator[Outcome]:
    source = recipe.source[unit.source]
    if leads_elsewhere(file.path):
        facts.bytes = file.size
        facts.fault(0, "pointer")
        yield ended("pointer", offset=0, record_type="file", source_id=unit.locator, payload_bytes=file.size)
        return
    behind, failures = 0, 0  # the last outcome, in a row
    try:
        stream = iter(module_of(source.kind).read(unit, file, source, options, facts))
    except Exception as err:
        yield crashed(err, facts, offset=0, record_type="unknown")
        return
    while failures < MAX_FAILURES:
        try:
            outcome = next(stream)
        except StopIteration:
            return
        except Exception as err:
            failures += 1
            outcome = crashed(err, facts, offset=behind, record_type="unknown")
        else:
            failures = 0
        yield outcome
        behind = outcome.offset + 1


def identity(unit: SourceUnit, recipe: Recipe) -> dict[str, object]:
    """What names the unit and the way it is read, for the keys of stored work."""
    source = recipe.source[unit.source]
    reading = module_of(source.kind).reading(source)
    return {**unit.identity(), "reading": reading} if reading else unit.identity()


def version(recipe: Recipe, source: str) -> int | None:
    """The version of the way in which a source is read; None where it has none of its own, as archives."""
    config = recipe.source[source]
    found = module_of(config.kind).reading(config).get("version")
    return found if isinstance(found, int) else None


def libraries(unit: SourceUnit, recipe: Recipe) -> dict[str, str]:
    """Installed versions of the libraries that decide what is read."""
    return installed(module_of(recipe.source[unit.source].kind).LIBRARIES)
