"""The verdict of a search that went through the store: keepers, the run's proof, the index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpusmill.kernels.duplicates.crowded_buckets import Codes, decode
from corpusmill.kernels.duplicates.keepers import Keepers, best_keepers
from corpusmill.store import Draft, Output, Receipt, Store, Unit
from tasks.dedup import index, near_duplicates, proof
from tasks.dedup.documents import attribute, digests_column
from tasks.dedup.history import Earlier
from tasks.dedup.outcome import Outcome, commit
from tasks.dedup.parts.ranges import Cut
from tasks.dedup.parts.rounds import read_removed
from tasks.dedup.parts.tables import column
from tasks.shards import Shard
from tasks.units import Done, Job, once, store_at


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
    """The verdict, as `near_duplicates.near` would give it."""

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
    unit = near_duplicates.unit_of(item.shards, item.exact, job.recipe, item.earlier)
    return once(store, unit, lambda: _finish(unit, job, item, store))


def _finish(unit: Unit, job: Job, item: Finish, store: Store) -> Receipt:
    first, n = item.cut.first_new, item.cut.docs
    removed = read_removed(item.searched.removed, item.cut, store)
    best, similarity = np.full(first + n, -1, np.int64), np.zeros(first + n)
    for outputs in item.searched.edges:
        codes = column(outputs, "code", store, np.uint64)
        best_keepers(removed, *decode(codes), column(outputs, "similarity", store, np.float64), best, similarity)
    docs = near_duplicates.left_by_exact(item.shards, item.exact, job.recipe, store)
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
    keepers = old_ranks - np.array(item.cut.old)[parts]
    old = near_duplicates.old_documents(keepers, parts, item.earlier, store)
    exact = np.where(gone, similarity[first:][docs.rank], np.nan)
    outcome = Outcome(keeper, exact, np.zeros(n, np.int8), ("near_duplicate",), old)
    searched = item.searched
    result = Keepers(keeper, exact, keeper, keeper, searched.rounds, searched.comparisons, searched.complete)
    facts = near_duplicates.facts_of(result, searched.largest, searched.crowded, len(old))
    sample = near_duplicates.Sample(proof.SAMPLE_PAIRS)
    for output in searched.samples:
        sample.add(column([output], "code", store, np.uint64), column([output], "similarity", store, np.float64))
    gate: Any = item.plan.facts["identity"]
    facts["proof"] = near_duplicates.proofs(gate, item.shards, docs, sample, job.recipe, store)
    more: dict[str, Draft] = {}
    if job.recipe.deduplicate.index:
        kept = docs.only(~gone)
        sizes = attribute(item.shards, kept, digests_column("shingles", store), np.int32)
        more = index.write(item.shards, kept, sizes, _kept_entries(item, removed, store), job.recipe, store)
    return commit(unit, "near", docs, outcome, facts, store, every=True, more=more)


def _kept_entries(item: Finish, removed: NDArray[np.bool_], store: Store) -> Iterator[tuple[Codes, NDArray[np.uint32]]]:
    """Entries of the kept documents of this build, range of keys by range of keys."""
    first = item.cut.first_new
    keeper = (np.cumsum(~removed[first:]) - 1).astype(np.uint32)
    for number in range(item.cut.partitions):
        own = [receipt.outputs[f"keys.{number}"] for receipt in item.bands[: item.cut.groups]]
        key, rank = column(own, "key", store, np.uint64), column(own, "rank", store, np.int64) - first
        kept = ~removed[first:][rank]
        key, owner = key[kept], keeper[rank[kept]]
        order = np.lexsort((owner, key))
        yield key[order], owner[order]
