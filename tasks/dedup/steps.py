"""The units of parts.py: each reads a few narrow tables and writes a few."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.kernels import jaccard, lsh, minhash
from corpusmill.kernels.crowds import Bounds, Crowd, decode, next_round, unique
from corpusmill.kernels.leaders import Keepers, best_keepers, independent_set
from corpusmill.store import Draft, Output, Receipt, Store, Unit
from tasks.dedup import index, proof, search
from tasks.dedup.alive import attribute, digests_column, salts
from tasks.dedup.cut import Cut, by_number, cut, inputs_of
from tasks.dedup.found import Outcome, commit
from tasks.dedup.history import SETS as INDEX_SETS
from tasks.dedup.history import Earlier, Part, batches, shingling, stored_sets
from tasks.shards import Shard
from tasks.units import Done, Job, content_of, once, store_at

VERSION = 1
"""Of the units in between; the verdict's own is search.VERSION."""

Ints = NDArray[np.int64]
Codes = NDArray[np.uint64]


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in columns.items()])


PLACES = _schema(rank=pa.uint32(), shard=pa.int32(), row=pa.int32(), size=pa.int32())
ENTRIES = _schema(key=pa.uint64(), rank=pa.uint32(), size=pa.int32(), group=pa.int32())
STATE = _schema(rank=pa.uint32(), size=pa.int32(), group=pa.int32(), pivot=pa.bool_(), begins=pa.bool_())
PAIRS = _schema(code=pa.uint64())
ASKS = _schema(rank=pa.uint32(), to=pa.int32())
SETS = pa.schema([pa.field("rank", pa.uint32(), nullable=False), INDEX_SETS.field("hashes")])
EDGES = _schema(code=pa.uint64(), similarity=pa.float64())


@dataclass(frozen=True)
class Plan:
    """Rank the documents and cut them."""

    shards: Sequence[Shard]
    exact: Receipt
    earlier: Earlier | None


def plan_unit(job: Job) -> Done:
    """Writes `group.<g>`: place, rank and set size of the documents of each group of shards."""
    item: Plan = job.item
    store, config = store_at(job.uri), job.recipe.deduplicate
    whole = search.unit_of(item.shards, item.exact, job.recipe, item.earlier)
    unit = Unit("near.plan", VERSION, {"of": whole.key, "memory_mb": config.memory_mb}, ())

    def work() -> Receipt:
        gate = proof.identity(job.recipe)
        docs = search.left_by_exact(item.shards, item.exact, job.recipe, store)
        sizes = attribute(item.shards, docs, digests_column("shingles", store), np.int32)
        per_shard = np.bincount(docs.shard, sizes, len(item.shards)).astype(np.int64) * 8
        old = [part.leaders.rows or 0 for part in (item.earlier.parts if item.earlier else ())]
        made = cut(len(docs), per_shard, old, config.bands, config.memory_mb * 2**20)
        drafts = {}
        edges = docs.bounds(len(item.shards))[list(made.bounds)]
        for group, (begin, end) in enumerate(pairwise(edges.tolist())):
            ranks = docs.rank[begin:end] + np.uint32(made.first_new)
            columns = [ranks, docs.shard[begin:end], docs.row[begin:end], sizes[begin:end]]
            drafts[f"group.{group}"] = _draft(store, PLACES, columns)
        return store.commit(unit, drafts, facts={**made.to_json(), "identity": gate})

    return once(store, unit, work)


@dataclass(frozen=True)
class Bands:
    """Band keys of one group."""

    cut: Cut
    group: int
    shards: Sequence[Shard]
    places: Output


def bands_unit(job: Job) -> Done:
    """Writes `keys.<p>`: entries of each range of keys."""
    if isinstance(job.item, OldBands):
        return _old_bands(job)
    item: Bands = job.item
    store, config = store_at(job.uri), job.recipe.deduplicate
    salt = salts(item.shards, config)
    what = {
        "partitions": item.cut.partitions,
        "group": item.group,
        "bands": config.bands,
        "num_perm": config.num_perm,
        "salts": [format(int(s), "x") for s in salt],
    }
    signed = tuple(content_of(shard.groups["digests"], "digests") for shard in item.shards)
    unit = Unit("near.bands", VERSION, what, (*inputs_of([item.places]), *signed))

    def entries() -> Iterator[list[NDArray[Any]]]:
        places = store.table(item.places)
        rank, shard, row, size = (places.column(name).to_numpy() for name in PLACES.names)
        for number, here in by_number(shard - item.cut.bounds[item.group], len(item.shards)):
            here = here[size[here] > 0]
            if not len(here):
                continue
            keys = search.signed_keys(item.shards[number], row[here], job.recipe, store) ^ salt[number]
            repeat = np.repeat(here, config.bands)
            yield [keys.ravel(), rank[repeat], size[repeat], np.full(len(repeat), item.group, np.int32)]

    return once(store, unit, lambda: _write_entries(unit, item.cut, entries(), store))


@dataclass(frozen=True)
class OldBands:
    """Band keys of an earlier build's index."""

    cut: Cut
    number: int
    part: Part


def _old_bands(job: Job) -> Done:
    item: OldBands = job.item
    store = store_at(job.uri)
    part, first, group = item.part, item.cut.old[item.number], item.cut.groups + item.number
    what = {"partitions": item.cut.partitions, "group": group, "first": first}
    unit = Unit("near.bands", VERSION, what, inputs_of([part.keys, part.leaders]))

    def entries() -> Iterator[list[NDArray[Any]]]:
        sizes = store.table(part.leaders, columns=["shingles"]).column("shingles").to_numpy()
        for batch in batches(part.keys, ["key", "leader"], store):
            leader = batch.column("leader").to_numpy()
            groups = np.full(len(leader), group, np.int32)
            yield [batch.column("key").to_numpy(), leader + np.uint32(first), sizes[leader], groups]

    return once(store, unit, lambda: _write_entries(unit, item.cut, entries(), store))


def _write_entries(unit: Unit, made: Cut, entries: Iterator[list[NDArray[Any]]], store: Store) -> Receipt:
    with ExitStack() as stack:
        writers = [
            stack.enter_context(store.table_writer(ENTRIES, row_group_bytes=1 << 22)) for _ in range(made.partitions)
        ]
        for columns in entries:
            for number, here in by_number(lsh.partition_of(columns[0], made.partitions), made.partitions):
                if len(here):
                    writers[number].write(pa.table([c[here] for c in columns], schema=ENTRIES))
    return store.commit(unit, {f"keys.{number}": writer.draft for number, writer in enumerate(writers)})


@dataclass(frozen=True)
class Buckets:
    """One round over one range of keys: of all entries, then of the crowded buckets that a round left."""

    cut: Cut
    entries: tuple[Output, ...]
    state: Output | None
    removed: Output | None


def buckets_unit(job: Job) -> Done:
    """Writes `state`, and for each group `pairs.<g>` of its documents and `asks.<g>`: whose sets others want."""
    item: Buckets = job.item
    store, config = store_at(job.uri), job.recipe.deduplicate
    bounds = Bounds(config.min_jaccard, config.max_pivots, item.cut.first_new)
    what = {**item.cut.to_json(), "min_jaccard": config.min_jaccard, "max_pivots": config.max_pivots}
    unit = Unit("near.buckets", VERSION, what, inputs_of([*item.entries, item.state, item.removed]))

    def work() -> Receipt:
        crowd, ranks, groups = _restored(item.state, store) if item.state else _first(item, store)
        sizes = np.diff(crowd.offsets)
        codes, new_pivots, after = next_round(crowd, read_removed(item.removed, item.cut, store), bounds)
        later, earlier = decode(codes := unique(codes))
        of_later, of_earlier = (groups[np.searchsorted(ranks, side)] for side in (later, earlier))
        after = after if item.state else after.crowded()
        drafts = {"state": _state(after, groups[np.searchsorted(ranks, after.members)], store)}
        for group, here in by_number(of_later, item.cut.groups):
            drafts[f"pairs.{group}"] = _draft(store, PAIRS, [codes[here]])
        wanted = np.unique(of_later[of_later != of_earlier] << 32 | earlier[of_later != of_earlier])
        whose = groups[np.searchsorted(ranks, wanted & 2**32 - 1)]
        for group, here in by_number(whose, item.cut.groups + len(item.cut.old) - 1):
            drafts[f"asks.{group}"] = _draft(store, ASKS, [wanted[here] & 2**32 - 1, wanted[here] >> 32])
        facts: dict[str, object] = {
            "new_pivots": new_pivots,
            "largest": int(sizes.max(initial=0)),
            "crowded": int((sizes > config.max_pivots + 1).sum()),
        }
        return store.commit(unit, drafts, facts=facts)

    return once(store, unit, work)


def _first(item: Buckets, store: Store) -> tuple[Crowd, Ints, Ints]:
    """All buckets of a range that hold a document of this build; ranks ascending, and the group of each."""
    tables = [store.table(output) for output in item.entries]
    key, rank, size, group = (
        np.concatenate([table.column(name).to_numpy() for table in tables]) for name in ENTRIES.names
    )
    order, offsets = lsh.bucket_entries(key, rank)
    members = rank[order].astype(np.int64)
    new = members[offsets[1:] - 1] >= item.cut.first_new  # the last of a bucket
    kept = np.repeat(new, np.diff(offsets))
    members, order = members[kept], order[kept]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.diff(offsets)[new])])
    ranks, first = np.unique(members, return_index=True)
    return Crowd.fresh(members, size[order], offsets), ranks, group[order][first].astype(np.int64)


def _state(crowd: Crowd, groups: Ints, store: Store) -> Draft:
    begins = np.zeros(len(crowd.members), np.bool_)
    begins[crowd.offsets[:-1]] = True
    return _draft(store, STATE, [crowd.members, crowd.sizes, groups, crowd.pivot, begins])


def _restored(state: Output, store: Store) -> tuple[Crowd, Ints, Ints]:
    table = store.table(state)
    members = table.column("rank").to_numpy().astype(np.int64)
    pivot, begins = (table.column(name).combine_chunks().to_numpy(zero_copy_only=False) for name in ("pivot", "begins"))
    offsets = np.concatenate([np.flatnonzero(begins), [len(members)]]).astype(np.int64)
    ranks, first = np.unique(members, return_index=True)
    crowd = Crowd(members, table.column("size").to_numpy(), offsets, pivot.astype(np.bool_))
    return crowd, ranks, table.column("group").to_numpy()[first].astype(np.int64)


@dataclass(frozen=True)
class Sets:
    """Shingle sets of one group's documents that are compared in a round."""

    cut: Cut
    group: int
    shards: Sequence[Shard]
    places: Output
    pairs: tuple[Output, ...]
    asks: tuple[Output, ...]
    settled: Output | None


def sets_unit(job: Job) -> Done:
    """Writes `codes`, the pairs of this group that are new, and `to.<g>`: the sets that each group needs of this."""
    if isinstance(job.item, OldSets):
        return _old_sets(job)
    item: Sets = job.item
    store = store_at(job.uri)
    texts = tuple(text for shard in item.shards for text in shard.view_inputs("clean"))
    what: dict[str, object] = {**item.cut.to_json(), "group": item.group, **shingling(job.recipe).identity}
    unit = Unit("near.sets", VERSION, what, (*inputs_of([item.places, *item.pairs, *item.asks, item.settled]), *texts))

    def work() -> Receipt:
        found = unique(_column(item.pairs, "code", store, np.uint64))
        codes = np.setdiff1d(found, _column([item.settled], "code", store, np.uint64), assume_unique=True)
        places = store.table(item.places)
        rank = places.column("rank").to_numpy().astype(np.int64)
        mine = np.unique(np.concatenate(decode(codes)))
        asked = _column(item.asks, "to", store, np.int64) << 32 | _column(item.asks, "rank", store, np.int64)
        asked = np.unique(np.concatenate([asked, item.group << 32 | mine[np.isin(mine, rank)]]))
        wanted = np.unique(asked & 2**32 - 1)
        at = np.flatnonzero(np.isin(rank, wanted))  # by shard and row
        shard = places.column("shard").to_numpy()[at] - item.cut.bounds[item.group]
        rows = places.column("row").to_numpy()[at].astype(np.int64)
        parts = [
            jaccard.Sets(*minhash.shingle_sets(item.shards[number].texts(rows[here], store), shingling(job.recipe)))
            for number, here in by_number(shard, len(item.shards))
            if len(here)
        ]
        sets = jaccard.take(jaccard.join(parts), np.argsort(rank[at], kind="stable"))
        drafts = {"codes": _draft(store, PAIRS, [codes]), **_sent(asked, wanted, sets, item.cut, store)}
        return store.commit(unit, drafts, counters={"pairs": len(codes)})

    return once(store, unit, work)


@dataclass(frozen=True)
class OldSets:
    """Shingle sets of an earlier build's documents, from its index."""

    cut: Cut
    number: int
    part: Part
    asks: tuple[Output, ...]


def _old_sets(job: Job) -> Done:
    item: OldSets = job.item
    store = store_at(job.uri)
    first = item.cut.old[item.number]
    what = {**item.cut.to_json(), "first": first}
    unit = Unit("near.sets", VERSION, what, inputs_of([*item.asks, item.part.leaders, item.part.sets]))

    def work() -> Receipt:
        asked = _column(item.asks, "to", store, np.int64) << 32 | _column(item.asks, "rank", store, np.int64)
        asked = np.unique(asked)
        wanted = np.unique(asked & 2**32 - 1)
        sets = stored_sets(item.part, wanted - first, store)
        return store.commit(unit, _sent(asked, wanted, sets, item.cut, store), counters={"pairs": 0})

    return once(store, unit, work)


def _sent(asked: Ints, wanted: Ints, sets: jaccard.Sets, made: Cut, store: Store) -> dict[str, Draft]:
    """`to.<g>`: what each group asked for (group << 32 | rank), of the sets of the ranks `wanted`."""
    drafts = {}
    for group, here in by_number(asked >> 32, made.groups):
        ranks = asked[here] & 2**32 - 1
        chosen = jaccard.take(sets, np.searchsorted(wanted, ranks))
        with store.table_writer(SETS) as out:
            out.write(
                pa.table([pa.array(ranks, pa.uint32()), index.sets_column(chosen.offsets, chosen.values)], schema=SETS)
            )
        drafts[f"to.{group}"] = out.draft
    return drafts


@dataclass(frozen=True)
class Verify:
    """Exact similarities of one group's pairs of a round."""

    cut: Cut
    group: int
    codes: Output
    sets: tuple[Output, ...]
    settled: Output | None


def verify_unit(job: Job) -> Done:
    """Writes `settled`, all pairs looked at so far; `edges.<r>`, those similar by range of ranks; and a `sample`."""
    item: Verify = job.item
    store, config = store_at(job.uri), job.recipe.deduplicate
    what = {**item.cut.to_json(), "min_jaccard": config.min_jaccard, "sample": proof.SAMPLE_PAIRS}
    unit = Unit("near.verify", VERSION, what, inputs_of([item.codes, *item.sets, item.settled]))

    def work() -> Receipt:
        codes = _column([item.codes], "code", store, np.uint64)
        later, earlier = decode(codes)
        similarity = np.full(len(codes), np.nan)
        own_ranks, own = _read_sets(item.sets[item.group], store)
        for output in item.sets:
            ranks, sets = _read_sets(output, store)
            here = np.flatnonzero(np.isin(earlier, ranks))
            pairs = np.stack([np.searchsorted(own_ranks, later[here]), np.searchsorted(ranks, earlier[here])], axis=1)
            similarity[here] = jaccard.jaccard(own, sets, pairs)
        assert not np.isnan(similarity).any(), "every pivot's set came from its group"
        settled = np.union1d(codes, _column([item.settled], "code", store, np.uint64))
        drafts = {"settled": _draft(store, PAIRS, [settled])}
        similar = np.flatnonzero(similarity >= config.min_jaccard)
        for number, here in by_number(item.cut.range_of(later[similar]), item.cut.partitions):
            drafts[f"edges.{number}"] = _draft(store, EDGES, [codes[similar[here]], similarity[similar[here]]])
        sample = search.Sample(proof.SAMPLE_PAIRS)
        new = earlier >= item.cut.first_new
        first = np.uint64(item.cut.first_new)
        sample.add(codes[new] - (first << np.uint64(32) | first), similarity[new])
        drafts["sample"] = _draft(store, EDGES, [sample.codes, sample.similarity])
        return store.commit(unit, drafts, counters={"pairs": len(codes)})

    return once(store, unit, work)


def _read_sets(output: Output, store: Store) -> tuple[Ints, jaccard.Sets]:
    table = store.table(output).combine_chunks()
    if not table.num_rows:
        return np.zeros(0, np.int64), jaccard.Sets(np.zeros(1, np.int64), np.zeros(0, np.uint64))
    column = table.column("hashes").chunk(0)
    sets = jaccard.Sets(column.offsets.to_numpy().astype(np.int64), column.values.to_numpy())
    return table.column("rank").to_numpy().astype(np.int64), sets


@dataclass(frozen=True)
class Removed:
    """Who goes, by all edges found so far."""

    cut: Cut
    edges: tuple[tuple[Output, ...], ...]
    """By range of ranks."""


def removed_unit(job: Job) -> Done:
    """Writes `removed`: a bit a rank."""
    item: Removed = job.item
    store = store_at(job.uri)
    flat = [output for outputs in item.edges for output in outputs]
    unit = Unit("near.removed", VERSION, item.cut.to_json(), inputs_of(flat))

    def work() -> Receipt:
        removed = np.zeros(item.cut.first_new + item.cut.docs, np.bool_)
        for outputs in item.edges:
            codes = np.sort(_column(outputs, "code", store, np.uint64))
            independent_set(removed, *decode(codes))
        return store.commit(unit, {"removed": store.draft_bytes(np.packbits(removed).tobytes())})

    return once(store, unit, work)


def read_removed(output: Output | None, made: Cut, store: Store) -> NDArray[np.bool_]:
    """bool of each rank."""
    ranks = made.first_new + made.docs
    if output is None:
        return np.zeros(ranks, np.bool_)
    return np.unpackbits(np.frombuffer(store.bytes(output), np.uint8), count=ranks).astype(np.bool_)


@dataclass(frozen=True)
class Searched:
    """What the rounds gave."""

    edges: tuple[tuple[Output, ...], ...]
    samples: tuple[Output, ...]
    removed: Output | None
    rounds: int
    comparisons: int
    complete: bool
    largest: int
    crowded: int


@dataclass(frozen=True)
class Finish:
    """The verdict, as search.near would give it."""

    shards: Sequence[Shard]
    exact: Receipt
    earlier: Earlier | None
    cut: Cut
    plan: Receipt
    bands: tuple[Receipt, ...]
    searched: Searched


def finish_unit(job: Job) -> Done:
    """The receipt of stage near: keepers, proof, index."""
    item: Finish = job.item
    store = store_at(job.uri)
    unit = search.unit_of(item.shards, item.exact, job.recipe, item.earlier)
    return once(store, unit, lambda: _finish(unit, job, item, store))


def _finish(unit: Unit, job: Job, item: Finish, store: Store) -> Receipt:
    first, n = item.cut.first_new, item.cut.docs
    removed = read_removed(item.searched.removed, item.cut, store)
    best, similarity = np.full(first + n, -1, np.int64), np.zeros(first + n)
    for outputs in item.searched.edges:
        codes = _column(outputs, "code", store, np.uint64)
        best_keepers(removed, *decode(codes), _column(outputs, "similarity", store, np.float64), best, similarity)
    docs = search.left_by_exact(item.shards, item.exact, job.recipe, store)
    gone = removed[first:][docs.rank]
    keeper_rank = best[first:][docs.rank]
    old_ranks = np.unique(keeper_rank[gone & (keeper_rank < first)])
    position = np.argsort(docs.rank, kind="stable")
    keeper = np.full(n, -1, np.int64)
    new = np.flatnonzero(gone & (keeper_rank >= first))
    keeper[new] = position[keeper_rank[new] - first]
    olds = np.flatnonzero(gone & (keeper_rank < first))
    keeper[olds] = n + np.searchsorted(old_ranks, keeper_rank[olds])
    parts = np.searchsorted(np.array(item.cut.old), old_ranks, side="right") - 1
    leaders = old_ranks - np.array(item.cut.old)[parts]
    old = search.old_documents(leaders, parts, item.earlier, store)
    exact = np.where(gone, similarity[first:][docs.rank], np.nan)
    outcome = Outcome(keeper, exact, np.zeros(n, np.int8), ("near_duplicate",), old)
    searched = item.searched
    result = Keepers(keeper, exact, keeper, keeper, searched.rounds, searched.comparisons, searched.complete)
    facts = search.facts_of(result, searched.largest, searched.crowded, len(old))
    sample = search.Sample(proof.SAMPLE_PAIRS)
    for output in searched.samples:
        sample.add(_column([output], "code", store, np.uint64), _column([output], "similarity", store, np.float64))
    gate: Any = item.plan.facts["identity"]
    facts["proof"] = search.proofs(gate, item.shards, docs, sample, job.recipe, store)
    more: dict[str, Draft] = {}
    if job.recipe.deduplicate.index:
        kept = docs.only(~gone)
        sizes = attribute(item.shards, kept, digests_column("shingles", store), np.int32)
        more = index.write(item.shards, kept, sizes, _kept_entries(item, removed, store), job.recipe, store)
    return commit(unit, "near", docs, outcome, facts, store, every=True, more=more)


def _kept_entries(item: Finish, removed: NDArray[np.bool_], store: Store) -> Iterator[tuple[Codes, NDArray[np.uint32]]]:
    """Entries of the kept documents of this build, range of keys by range of keys."""
    first = item.cut.first_new
    leader = (np.cumsum(~removed[first:]) - 1).astype(np.uint32)
    for number in range(item.cut.partitions):
        own = [receipt.outputs[f"keys.{number}"] for receipt in item.bands[: item.cut.groups]]
        key, rank = _column(own, "key", store, np.uint64), _column(own, "rank", store, np.int64) - first
        kept = ~removed[first:][rank]
        key, owner = key[kept], leader[rank[kept]]
        order = np.lexsort((owner, key))
        yield key[order], owner[order]


def _column(outputs: Sequence[Output | None], name: str, store: Store, kind: Any) -> NDArray[Any]:
    """One column of several tables, as one array."""
    parts = [store.table(output, columns=[name]).column(name).to_numpy() for output in outputs if output]
    return np.concatenate([np.zeros(0, kind), *parts]).astype(kind, copy=False)


def _draft(store: Store, schema: pa.Schema, columns: Sequence[NDArray[Any]]) -> Draft:
    return store.draft_table(
        pa.table([pa.array(c, schema.field(i).type) for i, c in enumerate(columns)], schema=schema)
    )
