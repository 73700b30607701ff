"""Repeated passages over all shards, as edits: lines or paragraphs in many documents, and long runs of words.

    <stage>.plan     which documents take part, and by which order of preference     1 unit
    <stage>.items    hashes of their passages, cut by ranges of hashes               a unit a group of shards
    <stage>.merge    what is repeated within each range of hashes                    a unit a range
    <stage>          spans of each shard, and what was found most often              a unit a shard

A passage stays in the preferred document that holds it. Nothing is decided about documents, and no text is changed:
the spans are laid over it in view `final`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from corpusmill import schema
from corpusmill.config import Deduplicate, Recipe
from corpusmill.kernels.duplicates import passages
from corpusmill.kernels.edits import spans as edits
from corpusmill.store import Output, Receipt, Store
from tasks.dedup import near_duplicates
from tasks.dedup.documents import Alive, scores_read
from tasks.dedup.parts.ranges import by_number, in_groups, inputs_of
from tasks.dedup.parts.tables import by_range, narrow
from tasks.shards import Shard
from tasks.stages import LINES, SUBSTRINGS, Stage
from tasks.units import Done, Job, Runner, content_of, once, store_at

REPORTED = 20
"""Passages that are reported, those in most documents first."""
CANDIDATES = 10
"""So many times more are looked at: of a long passage every window is one."""
ITEM_BYTES = 80
"""Memory of an item while its range is put in order."""
SHOWN_BYTES = 200

Ints = NDArray[np.int64]


DOCS = narrow(shard=pa.int32(), row=pa.int32(), rank=pa.uint32())
ITEMS = narrow(hash=pa.uint64(), rank=pa.uint32(), shard=pa.int32(), row=pa.int32(), start=pa.int32(), end=pa.int32())
CUT = narrow(shard=pa.int32(), row=pa.int32(), start=pa.int32(), end=pa.int32())
FREQUENT = narrow(
    documents=pa.int64(), hash=pa.uint64(), shard=pa.int32(), row=pa.int32(), start=pa.int32(), end=pa.int32()
)
SPANS = pa.schema([pa.field("spans", schema.SPANS, nullable=False)])


@dataclass(frozen=True)
class Repeats:
    """One kind of repeated passage: `stage` also names its output and, in the singular, its spans."""

    stage: Stage
    span: str
    settings: tuple[tuple[str, object], ...]
    feeds: int = 0
    """Line feeds that end a passage; 0: a passage is a run of words."""
    words: int = 0
    least: int = 2

    def items(self, text: pa.LargeStringArray) -> passages.Items:
        """The passages of some texts."""
        return passages.lines(text, self.feeds) if self.feeds else passages.windows(text, self.words)


def kinds(config: Deduplicate) -> list[Repeats]:
    """What a recipe asks for."""
    found = []
    if config.lines != "off":
        settings: list[tuple[str, object]] = [("unit", config.lines), ("least", config.lines_min_documents)]
        feeds = {"line": 1, "paragraph": 2}[config.lines]
        found.append(Repeats(LINES, f"repeated_{config.lines}", tuple(settings), feeds, 0, config.lines_min_documents))
    if config.substring_words:
        words = config.substring_words
        found.append(Repeats(SUBSTRINGS, "repeated_passage", (("words", words),), 0, words))
    return found


@dataclass(frozen=True)
class Found:
    """What a build's repeated passages gave."""

    shards: list[Shard]
    """With the objects of their spans among their cuts."""
    receipts: tuple[tuple[str, Receipt], ...]
    """Place and receipt of each unit that made spans."""
    summaries: dict[str, Any]
    """stage -> what was found most often, before it was cut."""
    done: tuple[Done, ...]
    """All units."""


def repeats(run: Runner, shards: Sequence[Shard], exact: Receipt, near: Receipt, recipe: Recipe, store: Store) -> Found:
    """Find and mark repeated passages; does nothing where the recipe asks for none."""
    found = Found(list(shards), (), {}, ())
    for kind in kinds(recipe.deduplicate):
        found = _one(run, kind, found, exact, near, recipe, store)
    return found


def _one(
    run: Runner, kind: Repeats, found: Found, exact: Receipt, near: Receipt, recipe: Recipe, store: Store
) -> Found:
    shards, done = found.shards, list(found.done)

    def units(step: str, unit: Any, items: Sequence[object]) -> list[Receipt]:
        name = f"{kind.stage.name}.{step}" if step else kind.stage.name
        finished = run(name, unit, [Job(store.uri, recipe, item) for item in items])
        done.extend(finished)
        return [one.receipt for one in finished]

    plan = units("plan", taking_part_unit, [TakingPart(kind, shards, exact, near)])[0]
    bounds: Any = plan.facts["bounds"]
    ranges: Any = plan.facts["ranges"]
    groups = [
        Group(kind, ranges, a, tuple(shards[a:b]), plan.outputs[f"group.{number}"])
        for number, (a, b) in enumerate(pairwise(bounds))
    ]
    items = units("items", items_unit, groups)
    merged = units(
        "merge",
        merge_unit,
        [Merge(kind, tuple(bounds), tuple(r.outputs[f"items.{number}"] for r in items)) for number in range(ranges)],
    )
    group_of = np.searchsorted(bounds, np.arange(len(shards)), side="right") - 1
    marks = [
        Mark(kind, number, shard, tuple(r.outputs[f"cut.{group_of[number]}"] for r in merged))
        for number, shard in enumerate(shards)
    ]
    marked = units("", mark_unit, marks)
    summary = units("summary", summary_unit, [Summary(kind, shards, tuple(r.outputs["frequent"] for r in merged))])[0]
    cut = [
        replace(shard, cuts=(*shard.cuts, receipt.outputs[kind.stage.name]))
        for shard, receipt in zip(shards, marked, strict=True)
    ]
    places = tuple((shard.place, receipt) for shard, receipt in zip(shards, marked, strict=True))
    return Found(cut, found.receipts + places, {**found.summaries, kind.stage.name: summary.facts}, tuple(done))


@dataclass(frozen=True)
class TakingPart:
    """Which documents take part."""

    kind: Repeats
    shards: Sequence[Shard]
    exact: Receipt
    near: Receipt


def taking_part_unit(job: Job) -> Done:
    """Writes `group.<g>`: places and ranks of the documents kept so far."""
    item: TakingPart = job.item
    store, config = store_at(job.uri), job.recipe.deduplicate
    decided = tuple(content_of(shard.decided, "decisions") for shard in item.shards)
    found = (content_of(item.exact, "found"), content_of(item.near, "found"))
    made_of = (*found, *decided, *scores_read(item.shards, config))
    what = {"prefer": list(config.prefer), "memory_mb": config.memory_mb, **dict(item.kind.settings)}
    unit = item.kind.stage.part("plan").unit(what, made_of)

    def work() -> Receipt:
        docs = _kept(item, job.recipe, store)
        per_shard = np.bincount(docs.shard, docs.text_bytes, len(item.shards)).astype(np.int64)
        memory = config.memory_mb * 2**20
        bounds = in_groups(per_shard, memory // 8)
        items = int(docs.words.sum()) if item.kind.words else int(per_shard.sum()) // 32
        edges = docs.bounds(len(item.shards))[bounds]
        drafts = {
            f"group.{group}": store.draft_table(pa.table([docs.shard[a:b], docs.row[a:b], docs.rank[a:b]], schema=DOCS))
            for group, (a, b) in enumerate(pairwise(edges.tolist()))
        }
        ranges = max(1, -(-2 * items * ITEM_BYTES // memory))
        return store.commit(unit, drafts, facts={"bounds": bounds, "ranges": ranges})

    return once(store, unit, work)


def _kept(item: TakingPart, recipe: Recipe, store: Store) -> Alive:
    docs = near_duplicates.left_by_exact(item.shards, item.exact, recipe, store)
    found = store.table(item.near.outputs["found"], columns=["keeper"])
    return docs.only(found.column("keeper").is_null().to_numpy())  # the same documents, in the same order


@dataclass(frozen=True)
class Group:
    """Passages of a few shards."""

    kind: Repeats
    ranges: int
    first: int
    shards: tuple[Shard, ...]
    docs: Output


def items_unit(job: Job) -> Done:
    """Writes `items.<r>`: passages of each range of hashes."""
    item: Group = job.item
    store = store_at(job.uri)
    texts = tuple(content_of(shard.documents, "documents") for shard in item.shards)
    what = {**dict(item.kind.settings), "ranges": item.ranges, "first": item.first}
    unit = item.kind.stage.part("items").unit(what, (*inputs_of([item.docs]), *texts))

    def found() -> Iterator[list[NDArray[Any]]]:
        table = store.table(item.docs)
        shard, row, rank = (table.column(name).to_numpy() for name in DOCS.names)
        for number, here in by_number(shard - item.first, len(item.shards)):
            for begin in range(0, len(here), 4096):
                part = here[begin : begin + 4096]
                text = item.shards[number].texts(row[part].astype(np.int64), store, "raw")
                made = item.kind.items(text)
                owner = np.repeat(part, np.diff(made.offsets))
                yield [made.hashes, rank[owner], shard[owner], row[owner], made.start, made.end]

    return once(store, unit, lambda: store.commit(unit, by_range(store, "items", ITEMS, found(), item.ranges)))


@dataclass(frozen=True)
class Merge:
    """One range of hashes, of all shards."""

    kind: Repeats
    bounds: tuple[int, ...]
    items: tuple[Output, ...]


def merge_unit(job: Job) -> Done:
    """Writes `cut.<g>`, the places that go in each group of shards, and `frequent`."""
    item: Merge = job.item
    store = store_at(job.uri)
    what = {**dict(item.kind.settings), "bounds": list(item.bounds), "reported": REPORTED}
    unit = item.kind.stage.part("merge").unit(what, inputs_of(item.items))

    def work() -> Receipt:
        tables = [store.table(output) for output in item.items]
        column = {
            name: np.concatenate([np.zeros(0, "u8"), *(table.column(name).to_numpy() for table in tables)])
            for name in ITEMS.names
        }
        column = {name: values.astype(ITEMS.field(name).type.to_pandas_dtype()) for name, values in column.items()}
        found = passages.repeated(
            column["hash"], column["rank"], column["start"], least=item.kind.least, once=bool(item.kind.words)
        )
        places = {name: column[name][found.cut] for name in CUT.names}
        numbers = np.searchsorted(item.bounds, places["shard"], side="right") - 1
        drafts = {
            f"cut.{group}": store.draft_table(pa.table([places[n][here] for n in CUT.names], schema=CUT))
            for group, here in by_number(numbers, len(item.bounds) - 1)
        }
        most = np.lexsort((column["hash"][found.group], -found.documents))[: CANDIDATES * REPORTED]
        shown = [found.documents[most], *(column[name][found.group[most]] for name in FREQUENT.names[1:])]
        drafts["frequent"] = store.draft_table(pa.table(shown, schema=FREQUENT))
        return store.commit(unit, drafts, counters={"repeated": len(found.group), "cut": int(found.cut.sum())})

    return once(store, unit, work)


@dataclass(frozen=True)
class Mark:
    """One shard's spans."""

    kind: Repeats
    number: int
    shard: Shard
    cut: tuple[Output, ...]


def mark_unit(job: Job) -> Done:
    """Writes the spans of one shard, with the rows of its documents; the output is named as the stage."""
    item: Mark = job.item
    store = store_at(job.uri)
    what = {**dict(item.kind.settings), "number": item.number}
    unit = item.kind.stage.unit(what, (content_of(item.shard.documents, "documents"), *inputs_of(item.cut)))

    def work() -> Receipt:
        rows = item.shard.documents.outputs["documents"].rows or 0
        tables = [store.table(output) for output in item.cut]
        here = [table.filter(pc.equal(table.column("shard"), item.number)) for table in tables]
        row, start, end = (
            np.concatenate([np.zeros(0, np.int64), *(t.column(name).to_numpy().astype(np.int64) for t in here)])
            for name in ("row", "start", "end")
        )
        offsets, first, last = passages.unite(row, start, end, rows)
        spans = edits.spans(offsets, first, last, pa.array([item.kind.span] * len(first), pa.string()))
        counters = {"spans": len(first), "bytes": int((last - first).sum()), "docs": len(np.unique(row))}
        return store.commit(
            unit,
            {item.kind.stage.name: store.draft_table(pa.table([spans], schema=SPANS))},
            counters=counters,
            facts={"locator": item.shard.locator},
        )

    return once(store, unit, work)


@dataclass(frozen=True)
class Summary:
    """What is repeated most."""

    kind: Repeats
    shards: Sequence[Shard]
    frequent: tuple[Output, ...]


def summary_unit(job: Job) -> Done:
    """The passages in most documents, with their words, as facts."""
    item: Summary = job.item
    store = store_at(job.uri)
    unit = item.kind.stage.part("summary").unit(dict(item.kind.settings), inputs_of(item.frequent))

    def work() -> Receipt:
        table = pa.concat_tables([store.table(output) for output in item.frequent])
        shown: list[dict[str, object]] = []
        seen: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for row in table.sort_by([("documents", "descending"), ("hash", "ascending")]).to_pylist():
            taken = seen.setdefault((row["shard"], row["row"]), [])
            if len(shown) == REPORTED or any(row["start"] < end and begin < row["end"] for begin, end in taken):
                continue
            taken.append((row["start"], row["end"]))
            text = item.shards[row["shard"]].texts(np.array([row["row"]], np.int64), store, "raw")[0].as_py().encode()
            passage = text[row["start"] : min(row["end"], row["start"] + SHOWN_BYTES)].decode(errors="ignore").strip()
            shown.append({"documents": row["documents"], "text": passage})
        return store.commit(unit, {}, facts={"most_frequent": shown})

    return once(store, unit, work)
