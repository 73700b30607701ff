"""Ranks and bands: ranks and groups of shards, then the band keys of each group, dealt out by ranges of keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpusmill.store import Output, Receipt
from tasks import stages
from tasks.dedup import near_duplicates, proof
from tasks.dedup.documents import attribute, digests_column, salts
from tasks.dedup.history import Earlier, Part, batches
from tasks.dedup.parts.ranges import Cut, by_number, cut, inputs_of
from tasks.dedup.parts.tables import ENTRIES, PLACES, by_range, draft
from tasks.shards import Shard
from tasks.units import Done, Job, content_of, once, store_at


@dataclass(frozen=True)
class Ranks:
    """Rank the documents and cut them."""

    shards: Sequence[Shard]
    exact: Receipt
    earlier: Earlier | None


def ranks_unit(job: Job) -> Done:
    """Writes `group.<g>`: place, rank and set size of the documents of each group of shards."""
    item: Ranks = job.item
    store, config = store_at(job.uri), job.recipe.deduplicate
    whole = near_duplicates.unit_of(item.shards, item.exact, job.recipe, item.earlier)
    unit = stages.NEAR.part("plan").unit({"of": whole.key, "memory_mb": config.memory_mb})

    def work() -> Receipt:
        gate = proof.identity(job.recipe)
        docs = near_duplicates.left_by_exact(item.shards, item.exact, job.recipe, store)
        sizes = attribute(item.shards, docs, digests_column("shingles", store), np.int32)
        per_shard = np.bincount(docs.shard, sizes, len(item.shards)).astype(np.int64) * 8
        old = [part.keepers.rows or 0 for part in (item.earlier.parts if item.earlier else ())]
        made = cut(len(docs), per_shard, old, config.bands, config.memory_mb * 2**20)
        drafts = {}
        edges = docs.bounds(len(item.shards))[list(made.bounds)]
        for group, (begin, end) in enumerate(pairwise(edges.tolist())):
            ranks = docs.rank[begin:end] + np.uint32(made.first_new)
            columns = [ranks, docs.shard[begin:end], docs.row[begin:end], sizes[begin:end]]
            drafts[f"group.{group}"] = draft(store, PLACES, columns)
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
    unit = stages.NEAR.part("bands").unit(what, (*inputs_of([item.places]), *signed))

    def entries() -> Iterator[list[NDArray[Any]]]:
        places = store.table(item.places)
        rank, shard, row, size = (places.column(name).to_numpy() for name in PLACES.names)
        for number, here in by_number(shard - item.cut.bounds[item.group], len(item.shards)):
            here = here[size[here] > 0]
            if not len(here):
                continue
            keys = near_duplicates.signed_keys(item.shards[number], row[here], job.recipe, store) ^ salt[number]
            repeat = np.repeat(here, config.bands)
            yield [keys.ravel(), rank[repeat], size[repeat], np.full(len(repeat), item.group, np.int32)]

    return once(
        store, unit, lambda: store.commit(unit, by_range(store, "keys", ENTRIES, entries(), item.cut.partitions))
    )


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
    unit = stages.NEAR.part("bands").unit(what, inputs_of([part.keys, part.keepers]))

    def entries() -> Iterator[list[NDArray[Any]]]:
        sizes = store.table(part.keepers, columns=["shingles"]).column("shingles").to_numpy()
        for batch in batches(part.keys, ["key", "leader"], store):
            keeper = batch.column("leader").to_numpy()
            groups = np.full(len(keeper), group, np.int32)
            yield [batch.column("key").to_numpy(), keeper + np.uint32(first), sizes[keeper], groups]

    return once(
        store, unit, lambda: store.commit(unit, by_range(store, "keys", ENTRIES, entries(), item.cut.partitions))
    )
