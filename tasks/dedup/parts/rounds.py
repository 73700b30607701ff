"""One round of the search: which pairs of each range of keys to compare, and by all edges so far who goes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corpusmill.kernels.duplicates import lsh
from corpusmill.kernels.duplicates.crowded_buckets import Bounds, CrowdedBuckets, decode, next_round, unique
from corpusmill.kernels.duplicates.keepers import independent_set
from corpusmill.store import Draft, Output, Receipt, Store
from tasks import stages
from tasks.dedup.parts.ranges import Cut, by_number, inputs_of
from tasks.dedup.parts.tables import ASKS, ENTRIES, PAIRS, STATE, column, draft
from tasks.units import Done, Job, once, store_at

Ints = NDArray[np.int64]


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
    unit = stages.NEAR.part("buckets").unit(what, inputs_of([*item.entries, item.state, item.removed]))

    def work() -> Receipt:
        buckets, ranks, groups = _restored(item.state, store) if item.state else _first(item, store)
        sizes = np.diff(buckets.offsets)
        codes, new_pivots, after = next_round(buckets, read_removed(item.removed, item.cut, store), bounds)
        later, earlier = decode(codes := unique(codes))
        of_later, of_earlier = (groups[np.searchsorted(ranks, side)] for side in (later, earlier))
        after = after if item.state else after.crowded()
        drafts = {"state": _state(after, groups[np.searchsorted(ranks, after.members)], store)}
        for group, here in by_number(of_later, item.cut.groups):
            drafts[f"pairs.{group}"] = draft(store, PAIRS, [codes[here]])
        wanted = np.unique(of_later[of_later != of_earlier] << 32 | earlier[of_later != of_earlier])
        whose = groups[np.searchsorted(ranks, wanted & 2**32 - 1)]
        for group, here in by_number(whose, item.cut.groups + len(item.cut.old) - 1):
            drafts[f"asks.{group}"] = draft(store, ASKS, [wanted[here] & 2**32 - 1, wanted[here] >> 32])
        facts: dict[str, object] = {
            "new_pivots": new_pivots,
            "largest": int(sizes.max(initial=0)),
            "crowded": int((sizes > config.max_pivots + 1).sum()),
        }
        return store.commit(unit, drafts, facts=facts)

    return once(store, unit, work)


def _first(item: Buckets, store: Store) -> tuple[CrowdedBuckets, Ints, Ints]:
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
    return CrowdedBuckets.fresh(members, size[order], offsets), ranks, group[order][first].astype(np.int64)


def _state(buckets: CrowdedBuckets, groups: Ints, store: Store) -> Draft:
    begins = np.zeros(len(buckets.members), np.bool_)
    begins[buckets.offsets[:-1]] = True
    return draft(store, STATE, [buckets.members, buckets.sizes, groups, buckets.pivot, begins])


def _restored(state: Output, store: Store) -> tuple[CrowdedBuckets, Ints, Ints]:
    table = store.table(state)
    members = table.column("rank").to_numpy().astype(np.int64)
    pivot, begins = (table.column(name).combine_chunks().to_numpy(zero_copy_only=False) for name in ("pivot", "begins"))
    offsets = np.concatenate([np.flatnonzero(begins), [len(members)]]).astype(np.int64)
    ranks, first = np.unique(members, return_index=True)
    buckets = CrowdedBuckets(members, table.column("size").to_numpy(), offsets, pivot.astype(np.bool_))
    return buckets, ranks, table.column("group").to_numpy()[first].astype(np.int64)


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
    unit = stages.NEAR.part("removed").unit(item.cut.to_json(), inputs_of(flat))

    def work() -> Receipt:
        removed = np.zeros(item.cut.first_new + item.cut.docs, np.bool_)
        for outputs in item.edges:
            codes = np.sort(column(outputs, "code", store, np.uint64))
            independent_set(removed, *decode(codes))
        return store.commit(unit, {"removed": store.draft_bytes(np.packbits(removed).tobytes())})

    return once(store, unit, work)


def read_removed(output: Output | None, made: Cut, store: Store) -> NDArray[np.bool_]:
    """bool of each rank."""
    ranks = made.first_new + made.docs
    if output is None:
        return np.zeros(ranks, np.bool_)
    return np.unpackbits(np.frombuffer(store.bytes(output), np.uint8), count=ranks).astype(np.bool_)
