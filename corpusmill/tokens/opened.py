"""Partitions of a dataset, opened for reading: their rows in mapped files, and where those of an order lie."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from corpusmill.dataset.manifest import PackedShard, Partition
from corpusmill.kernels.gather import pieces_of
from corpusmill.store import Store
from corpusmill.tokens.mapped import Ints, MappedRows, Places
from corpusmill.tokens.order import Rows


def mapped_rows(store: Store, entry: Partition) -> MappedRows:
    """The rows of a partition; nothing is fetched or mapped yet."""

    def pieces(number: int) -> Path | NDArray[np.uint32]:
        shard = entry.shards[number]
        if shard.pieces is not None:
            return store.local_path(shard.pieces)
        return pieces_of(*lists_of(store, shard, "doc_lens"))  # packed before pack version 4

    return MappedRows(
        [shard.payload for shard in entry.shards],
        entry.token_bytes,
        entry.seq_len,
        lambda number: store.local_parts(entry.shards[number].tokens),
        pieces,
    )


def lists_of(store: Store, shard: PackedShard, name: str) -> tuple[Ints, Ints]:
    """Ends and values of a list column of a shard's side table."""
    column = store.table(shard.rows, [name])[name].combine_chunks()
    return column.offsets.to_numpy()[1:], column.values.to_numpy()


def places_of(partitions: Sequence[MappedRows], rows: Rows) -> Places:
    """Where the sequences of an order lie, verified; `partitions` are those of its plan, in the plan's order."""
    if len(partitions) == 1:
        return partitions[0].places(rows.row)
    return Places.scattered(
        len(rows.row),
        [
            (members, part.places(rows.row[members]))
            for k, part in enumerate(partitions)
            if len(members := np.flatnonzero(rows.partition == k))
        ],
    )
