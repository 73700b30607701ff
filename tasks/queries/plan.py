"""Plan: what a recipe has to read and do, before it starts. Nothing is written.

Files, finished units (those with receipts, of files whose bytes are known), requests without retries, and task runs
are exact. Exception: where a server's file sizes were not requested yet, the number of blocks is estimated from a few
of them. Files that the newest dataset names are hashed where a stamp says that they were written to.
Sizes are requested where that is cheap: of every file of a folder, of a few files of each snapshot on a server.
Core-hours follow from sizes and from measured times per byte: right within a factor of two or three, enough to tell
days from weeks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from corpusmill.config import CommonCrawl, Recipe
from corpusmill.dataset.manifest import Input
from corpusmill.store import Store
from corpusmill.store.keys import receipt_number
from tasks import acquire, dedup, extract, ingest
from tasks.acquire import SourceUnit, common_crawl
from tasks.acquire.fetch import sizes as file_sizes
from tasks.acquire.fetch.sizes import Sizes, size_of
from tasks.acquire.fetch.transport import is_remote
from tasks.acquire.tree.listing import Listing, reported
from tasks.acquire.tree.small_files import ARCHIVES
from tasks.acquire.units import BLOCK_BYTES, blocks_of, sha256_of_all
from tasks.batches import TASK_RUNS, Batches
from tasks.dedup.cost import cost
from tasks.queries.stage_units import Planned, units_by_stage
from tasks.sources import changed

SAMPLED = 12
"""Files of a snapshot on a server whose sizes are requested."""

MB = 1e6
EXTRACT_S = {"warc": 0.33, "wet": 0.13}
"""CPU seconds per MB of files as stored, reading to text: 18 MB of WARC and 9 MB of WET of a sample crawl, `auto`."""
TEXT_SHARE = {"warc": 1.03, "wet": 2.1}
"""Bytes of text per byte of files as stored, on the same files. Other kinds are counted as WET, which is text too."""
CHAIN_S = 0.32
"""CPU seconds per MB of text, judging to packing without the tokenizer, on the same files."""
TOKENIZER_S = 0.7
"""CPU seconds per MB of the tokenizer's sample."""


@dataclass(frozen=True)
class Part:
    """One snapshot of one source.

    Attributes:
        kind: warc, wet, cdx, jsonl, ...
        files: files, or blocks of large ones.
        units: in how many units they are read: small files are put together.
        done: those that are extracted already.
        size: bytes of all of them; None if unknown.
        todo: bytes of those that are not done.
        sampled: whether sizes, and with them blocks, are estimated from a sample.
        new: whether `mill ingest` would read it.
        remote: whether it is on a server.
        to_ask: files whose size a build requests first.
        requests: number to read the rest, without retries.
        changed: files (`source/locator`) that have other bytes than in the newest dataset.
    """

    source: str
    snapshot: str
    kind: str
    files: int
    units: int
    done: int
    size: int | None
    todo: int | None
    sampled: bool
    new: bool
    remote: bool
    to_ask: int
    requests: int
    changed: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """As a JSON document."""
        return vars(self)


@dataclass(frozen=True)
class Plan:
    """The work of a recipe; see the fields of `to_json`."""

    name: str
    parts: tuple[Part, ...]
    requests: int
    requests_at_least: bool
    task_runs: Mapping[str, int]
    core_hours: Mapping[str, float | None]
    units: Mapping[str, int] | None
    """Of each stage of a build from nothing; None where sizes are unknown."""
    deduplicate: Mapping[str, object] | None
    listings: tuple[Listing, ...]

    def to_json(self) -> dict[str, Any]:
        """As a JSON document. `requests` are those of a build from now on; sizes and hours are null if unknown."""
        return {
            "recipe": self.name,
            "sources": [part.to_json() for part in self.parts],
            "files": sum(part.files for part in self.parts),
            "done": sum(part.done for part in self.parts),
            "bytes": total([part.size for part in self.parts]),
            "bytes_to_read": total([part.todo for part in self.parts]),
            "requests": self.requests,
            "requests_at_least": self.requests_at_least,
            "changed": sorted({name for part in self.parts for name in part.changed}),
            "task_runs": {**self.task_runs, "most": TASK_RUNS},
            "core_hours": dict(self.core_hours),
            "units": dict(self.units) if self.units else None,
            "deduplicate": self.deduplicate,
            "listings": [listing.to_json() for listing in self.listings],
        }


def plan(recipe: Recipe, store: Store | None) -> Plan:
    """Look at the sources and the store.

    Args:
        store: where results would go; None where there is no store yet.

    Raises:
        NotFound: a source that does not exist, or sources that list no file.
        Unavailable: a server that does not answer.
    """
    with reported() as listings:
        units = acquire.plan(recipe, store, ask=False)
    if store:
        dedup.earlier(recipe, units, store)  # what a build would refuse is said here too
    head = ingest.head_of(recipe, store) if store else ingest.Head(None, {})
    new = new_units(recipe, units, head, store)
    listed = {*units, *(unit for found in new.values() for unit in found)}
    if not listed:
        raise acquire.no_file(recipe, listings)
    known = finished(store) if store else set()
    before = changed.by_place(_read_before(recipe, head, store)) if store else {}
    groups: dict[tuple[str, str], list[SourceUnit]] = {}
    for unit in sorted(listed, key=lambda unit: (unit.source, unit.snapshot, unit.locator, unit.block)):
        groups.setdefault((unit.source, unit.snapshot), []).append(unit)
    parts = tuple(_part(recipe, group, known, before, key in new, store) for key, group in groups.items())
    chosen = {(unit.source, unit.snapshot) for unit in units}
    built = [part for part in parts if (part.source, part.snapshot) in chosen]
    remote = [part for part in built if part.remote]
    by_index = any(part.kind.startswith("cdx") for part in built)  # what it selects is not known before it is read
    measured = not by_index and total([part.size for part in built]) is not None
    files, packs = sum(part.units for part in built), sum(windows(recipe, part) for part in built)
    duplicates = cost(sum(map(_text_bytes, built)), files, recipe) if measured else None
    to_ask = sum(part.to_ask for part in remote)
    return Plan(
        recipe.name,
        parts,
        requests=_listings(recipe, len(remote)) + to_ask + sum(part.requests for part in remote),
        requests_at_least=by_index or any(part.requests > part.files - part.done for part in remote),
        task_runs={
            "build-dataset": build_runs(files, packs),
            "ingest-crawl": ingest_runs(
                [
                    round(len(new[key]) * part.units / len(groups[key]))
                    for part in parts
                    if (key := (part.source, part.snapshot)) in new
                ]
            ),
        },
        core_hours=_core_hours(recipe, built) if measured else {"extract": None, "judge_to_pack": None},
        units=units_by_stage(Planned(recipe, files, packs, to_ask, duplicates)) if duplicates else None,
        deduplicate=duplicates.to_json() if duplicates else None,
        listings=tuple(listings),
    )


def new_units(
    recipe: Recipe, units: Sequence[SourceUnit], head: ingest.Head, store: Store | None
) -> dict[tuple[str, str], list[SourceUnit]]:
    """(source, snapshot) -> files that `mill ingest` would read."""
    listed: dict[tuple[str, str], list[SourceUnit]] = {}
    for unit in units:
        listed.setdefault((unit.source, unit.snapshot), []).append(unit)
    found = {}
    for source, snapshot in ingest.new_snapshots(recipe, head):
        files = listed.get((source, snapshot), [])
        if store and (not files or snapshot in head.snapshots.get(source, ())):
            files = ingest.new_units(recipe, source, snapshot, head, store, ask=False)
        found[source, snapshot] = files
    return {key: files for key, files in found.items() if files}


def finished(store: Store) -> set[str]:
    """Keys of all units of `extract` and `source` that have a receipt: two listings, no receipt is read."""
    names = [name for stage in ("extract", "source") for name in store.list(f"receipts/{stage}/")]
    return {parts[0] for name in names if (parts := receipt_number(name))}


def build_runs(files: int, packs: int) -> int:
    """Task runs of a flow run of `build-dataset` (the stages of tasks/chain.py)."""
    batches = Batches()
    return sum(len(batches.cut(range(units))) for units in (files, 1, 1, 1, files, 1, packs, 1))


def ingest_runs(files: Sequence[int]) -> int:
    """Task runs of a flow run of `ingest-crawl`, from the number of files of every new snapshot."""
    batches = Batches()
    return sum(len(batches.cut(range(count))) for count in files)


def windows(recipe: Recipe, part: Part) -> int:
    """Windows that a part is packed in: a power of two, as in tasks/pack.py; no more than there are units."""
    count = 1
    while count * recipe.pack.window_bytes < _text_bytes(part):
        count *= 2
    return min(count, part.units)


def total(sizes: Sequence[int | None]) -> int | None:
    """The sum, or None where one is not known."""
    return None if None in sizes else sum(size for size in sizes if size is not None)


def _read_before(recipe: Recipe, head: ingest.Head, store: Store) -> Iterator[Input]:
    """The files of the newest datasets that were made by this recipe: those that it ingested, and the one it built."""
    for files in ingest.inputs(recipe, head, store):
        yield from files
    yield from changed.newest(recipe.name, store)


def _part(
    recipe: Recipe,
    units: Sequence[SourceUnit],
    done: set[str],
    before: Mapping[changed.Place, Input],
    new: bool,
    store: Store | None,
) -> Part:
    first = units[0]
    root = recipe.source[first.source].root
    remote = is_remote(root)
    sizes: Sizes = {unit.locator: unit.size for unit in units if unit.size is not None}
    unlisted = [locator for locator in dict.fromkeys(unit.locator for unit in units) if locator not in sizes]
    sizes |= file_sizes.known(root, first.source, first.snapshot, unlisted, store) if remote and unlisted else {}
    unknown = {locator: None for locator in unlisted if locator not in sizes}
    sampled = remote and len(unknown) > SAMPLED
    asked = list(unknown)
    if sampled:
        asked = [asked[len(asked) * i // SAMPLED] for i in range(SAMPLED)]
    sizes |= {locator: size_of(root, locator) for locator in asked}
    seen = [size for locator in asked if (size := sizes[locator]) is not None]
    usual = round(sum(seen) / len(seen)) if sampled and seen else None
    to_ask = sum(acquire.may_be_cut(unit) for unit in units if unit.locator in unknown) if remote else 0
    whole = [block for unit in units for block in _blocks(unit, sizes, usual)]
    now = {unit: changed.digests_now(unit, before, recipe, store) if store else None for unit in whole}
    todo = [unit for unit in whole if not _is_done(unit, now[unit], recipe, done)]
    files = sum(len(unit.places) for unit in whole)
    return Part(
        source=first.source,
        snapshot=first.snapshot,
        kind=first.kind,
        files=files,
        units=len(whole),
        done=files - sum(len(unit.places) for unit in todo),
        size=total([_size(unit, sizes, usual) for unit in whole]),
        todo=total([_size(unit, sizes, usual) for unit in todo]),
        sampled=sampled,
        new=new,
        remote=remote,
        to_ask=to_ask,
        requests=sum(_requests(unit) for unit in todo) if remote else 0,
        changed=changed.names(place for unit in whole for place in changed.other_places(unit, now[unit], before)),
    )


def _is_done(unit: SourceUnit, digests: Sequence[str] | None, recipe: Recipe, done: set[str]) -> bool:
    if digests is None:
        return False
    return all(made.key in done for made in extract.units_of(unit, sha256_of_all(digests), recipe))


def _blocks(unit: SourceUnit, sizes: Sizes, usual: int | None) -> list[SourceUnit]:
    """The units that a build will have for a file: a plan does not request all sizes, and assumes the usual one."""
    if unit.blocks > 1 or not acquire.may_be_cut(unit):
        return [unit]
    count = blocks_of(sizes.get(unit.locator, usual) or 0)
    return [replace(unit, block=block, blocks=count) for block in range(count)]


def _size(unit: SourceUnit, sizes: Sizes, usual: int | None) -> int | None:
    """Bytes of a unit: of the whole file, or of its block."""
    size = sizes.get(unit.locator, usual)
    return size if size is None or unit.blocks == 1 else max(0, min(BLOCK_BYTES, size - unit.begin))


def _requests(unit: SourceUnit) -> int:
    """Requests for one unit. The bytes around both ends of a block, and the beginning of the file, are read twice."""
    if unit.blocks == 1 or unit.kind not in ARCHIVES:
        return len(unit.places)
    return 3 + 2 * (unit.block > 0) + 2 * (unit.end is not None)


def _listings(recipe: Recipe, crawls: int) -> int:
    """Requests for lists, which a plan makes and a build makes again: of crawls, and of the files of each crawl."""
    count = crawls
    for config in recipe.source.values():
        if isinstance(config, CommonCrawl) and is_remote(config.root):
            count += any(crawl == common_crawl.NEWEST or common_crawl.RANGE in crawl for crawl in config.crawls)
    return count


def _text_bytes(part: Part) -> float:
    return (part.size or 0) * TEXT_SHARE.get(part.kind, TEXT_SHARE["wet"])


def _core_hours(recipe: Recipe, parts: Sequence[Part]) -> dict[str, float | None]:
    read = sum((part.todo or 0) * EXTRACT_S.get(part.kind, EXTRACT_S["wet"]) for part in parts) / MB
    text = sum(_text_bytes(part) for part in parts)
    sample = 0.0 if recipe.pack.tokenizer else min(text, recipe.pack.sample_bytes)
    rest = (text * CHAIN_S + sample * TOKENIZER_S) / MB
    return {"extract": round(read / 3600, 3), "judge_to_pack": round(rest / 3600, 3)}
