"""The index of what a build kept: made with it where the recipe asks for it, read by later builds (history.py)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.config import Recipe
from corpusmill.kernels.duplicates import lsh, minhash
from corpusmill.store import Draft, Store
from tasks.dedup.documents import Alive, attribute, digests_column
from tasks.dedup.history import KEEPERS, KEYS, SET_GROUP_BYTES, SETS, shingling
from tasks.dedup.outcome import binary
from tasks.shards import Shard

SLICE_ROWS = 1 << 18
KINDS = ("leaders", "keys", "sets")


def write(
    shards: Sequence[Shard],
    kept: Alive,
    shingles: NDArray[np.int32],
    entries: Iterable[tuple[NDArray[np.uint64], NDArray[np.uint32]]],
    recipe: Recipe,
    store: Store,
) -> dict[str, Draft]:
    """The three tables of a build's index.

    Args:
        kept: the documents kept, in the order of shards and rows.
        shingles: int32 of each.
        entries: keys and keepers' numbers in slices, ascending by key and then by keeper over all slices.
    """
    order = np.argsort(kept.rank, kind="stable")
    digests = attribute(shards, kept, digests_column("text_digest", store), "V16")
    with store.table_writer(KEEPERS) as keepers:
        for begin in range(0, len(order), SLICE_ROWS):
            take = order[begin : begin + SLICE_ROWS]
            columns = [binary(kept.doc_id[take]), binary(digests[take]), pa.array(shingles[take], pa.int32())]
            keepers.write(pa.table([*columns, pa.array(take, pa.int64())], names=KEEPERS.names))
    with store.table_writer(KEYS) as keys:
        for key, keeper in entries:
            keys.write(pa.table([pa.array(key), pa.array(keeper)], names=KEYS.names))
    with store.table_writer(SETS, row_group_bytes=SET_GROUP_BYTES) as sets:
        for number, (begin, end) in enumerate(pairwise(kept.bounds(len(shards)).tolist())):
            if end > begin:
                made = minhash.shingle_sets(
                    shards[number].texts(kept.row[begin:end].astype(np.int64), store), shingling(recipe)
                )
                sets.write(pa.table([sets_column(made.offsets, made.hashes)], names=SETS.names))
    return {"leaders": keepers.draft, "keys": keys.draft, "sets": sets.draft}


def sets_column(offsets: NDArray[np.int64], hashes: NDArray[np.uint64]) -> pa.LargeListArray:
    """Sets as a column."""
    values = pa.array(hashes[offsets[0] : offsets[-1]])
    return pa.LargeListArray.from_arrays(pa.array(offsets - offsets[0]), values, type=SETS.field("hashes").type)


def keeper_of_rank(kept: Alive) -> NDArray[np.uint32]:
    """uint32: number of each kept document among the keepers."""
    number = np.empty(len(kept), np.uint32)
    number[np.argsort(kept.rank, kind="stable")] = np.arange(len(kept), dtype=np.uint32)
    return number


def entries_of(
    keys: NDArray[np.uint64], keeper: NDArray[np.uint32], shingles: NDArray[np.int32]
) -> Iterable[tuple[NDArray[np.uint64], NDArray[np.uint32]]]:
    """Entries of documents whose keys are held: uint64[K, B]; documents without shingles have none."""
    by_keeper = np.argsort(keeper, kind="stable")
    by_keeper = by_keeper[shingles[by_keeper] > 0]
    flat = keys[by_keeper].ravel()
    order = lsh.sort_by_key(flat)
    owner = np.repeat(keeper[by_keeper], keys.shape[1])
    for begin in range(0, len(order), SLICE_ROWS):
        take = order[begin : begin + SLICE_ROWS]
        yield flat[take], owner[take]
