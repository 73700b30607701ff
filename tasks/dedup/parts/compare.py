"""Comparing the pairs of a round: the shingle sets that each group needs, then the exact similarities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.kernels.duplicates import jaccard, minhash
from corpusmill.kernels.duplicates.crowded_buckets import decode, unique
from corpusmill.store import Draft, Output, Receipt, Store
from tasks import stages
from tasks.dedup import index, near_duplicates, proof
from tasks.dedup.history import Part, shingling, stored_sets
from tasks.dedup.parts.ranges import Cut, by_number, inputs_of
from tasks.dedup.parts.tables import EDGES, PAIRS, SETS, column, draft
from tasks.shards import Shard
from tasks.units import Done, Job, once, store_at

Ints = NDArray[np.int64]


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
    unit = stages.NEAR.part("sets").unit(
        what, (*inputs_of([item.places, *item.pairs, *item.asks, item.settled]), *texts)
    )

    def work() -> Receipt:
        found = unique(column(item.pairs, "code", store, np.uint64))
        codes = np.setdiff1d(found, column([item.settled], "code", store, np.uint64), assume_unique=True)
        places = store.table(item.places)
        rank = places.column("rank").to_numpy().astype(np.int64)
        mine = np.unique(np.concatenate(decode(codes)))
        asked = column(item.asks, "to", store, np.int64) << 32 | column(item.asks, "rank", store, np.int64)
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
        drafts = {"codes": draft(store, PAIRS, [codes]), **_sent(asked, wanted, sets, item.cut, store)}
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
    unit = stages.NEAR.part("sets").unit(what, inputs_of([*item.asks, item.part.keepers, item.part.sets]))

    def work() -> Receipt:
        asked = column(item.asks, "to", store, np.int64) << 32 | column(item.asks, "rank", store, np.int64)
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
    unit = stages.NEAR.part("verify").unit(what, inputs_of([item.codes, *item.sets, item.settled]))

    def work() -> Receipt:
        codes = column([item.codes], "code", store, np.uint64)
        later, earlier = decode(codes)
        similarity = np.full(len(codes), np.nan)
        own_ranks, own = _read_sets(item.sets[item.group], store)
        for output in item.sets:
            ranks, sets = _read_sets(output, store)
            here = np.flatnonzero(np.isin(earlier, ranks))
            pairs = np.stack([np.searchsorted(own_ranks, later[here]), np.searchsorted(ranks, earlier[here])], axis=1)
            similarity[here] = jaccard.jaccard(own, sets, pairs)
        assert not np.isnan(similarity).any(), "every pivot's set came from its group"
        settled = np.union1d(codes, column([item.settled], "code", store, np.uint64))
        drafts = {"settled": draft(store, PAIRS, [settled])}
        similar = np.flatnonzero(similarity >= config.min_jaccard)
        for number, here in by_number(item.cut.range_of(later[similar]), item.cut.partitions):
            drafts[f"edges.{number}"] = draft(store, EDGES, [codes[similar[here]], similarity[similar[here]]])
        sample = near_duplicates.Sample(proof.SAMPLE_PAIRS)
        new = earlier >= item.cut.first_new
        first = np.uint64(item.cut.first_new)
        sample.add(codes[new] - (first << np.uint64(32) | first), similarity[new])
        drafts["sample"] = draft(store, EDGES, [sample.codes, sample.similarity])
        return store.commit(unit, drafts, counters={"pairs": len(codes)})

    return once(store, unit, work)


def _read_sets(output: Output, store: Store) -> tuple[Ints, jaccard.Sets]:
    table = store.table(output).combine_chunks()
    if not table.num_rows:
        return np.zeros(0, np.int64), jaccard.Sets(np.zeros(1, np.int64), np.zeros(0, np.uint64))
    column = table.column("hashes").chunk(0)
    sets = jaccard.Sets(column.offsets.to_numpy().astype(np.int64), column.values.to_numpy())
    return table.column("rank").to_numpy().astype(np.int64), sets
