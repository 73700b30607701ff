"""One documents shard on its way down the chain: the receipts that speak about its rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from corpusmill import schema
from corpusmill.store import Output, Receipt, Store
from tasks.units import Done


@dataclass(frozen=True)
class Shard:
    """Receipts of one source file (block) from extraction to its decisions so far.

    `decided` is the receipt whose `decisions` hold: of filter, then decontaminate, then decide.
    """

    source: str
    snapshot: str
    locator: str
    documents: Receipt
    groups: dict[str, Receipt]
    filtered: Receipt
    screened: Receipt
    decided: Receipt
    done: tuple[Done, ...] = ()

    @property
    def place(self) -> str:
        """`source/locator`: the order of shards."""
        return f"{self.source}/{self.locator}"

    def attribute(self, group: str) -> Output:
        """The object of one attribute group."""
        return self.groups[group].outputs[group]

    @property
    def decisions(self) -> Output:
        """The object of the decisions that hold."""
        return self.decided.outputs["decisions"]


@dataclass(frozen=True)
class Survivors:
    """Narrow columns of the documents that are alive, over all shards, for the global stages.

    `shard` and `row` say where each stands; preference (most wanted first) is text bytes descending, date, doc_id.
    """

    shard: np.ndarray  # int32[n]
    row: np.ndarray  # int32[n]
    doc_id: np.ndarray  # S16[n]
    text_bytes: np.ndarray  # int64[n]
    words: np.ndarray  # int64[n]
    rank: np.ndarray  # int64[n]: place in the order of preference

    def __len__(self) -> int:
        return len(self.row)


def survivors(shards: list[Shard], store: Store) -> Survivors:
    """Every document that no stage has ended yet, in the order of shards and rows."""
    parts: list[list[np.ndarray]] = []
    for number, shard in enumerate(shards):
        stage = store.table(shard.decisions, columns=["stage"]).column("stage")
        alive = np.flatnonzero(stage.is_null().to_numpy()).astype(np.int32)
        docs = store.table(shard.documents.outputs["documents"], columns=["doc_id", "date"]).take(pa.array(alive))
        sizes = store.table(shard.attribute("measures"), columns=["text_bytes", "word_total"]).take(pa.array(alive))
        parts.append(
            [
                np.full(len(alive), number, np.int32),
                alive,
                fixed_binary(docs.column("doc_id")),
                sizes.column("text_bytes").to_numpy(),
                sizes.column("word_total").to_numpy(),
                np.array([d or "" for d in docs.column("date").to_pylist()], dtype="U32"),
            ]
        )
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    shard_no, row, doc_id, text_bytes, words, date = columns
    order = np.lexsort((doc_id, date, -text_bytes))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return Survivors(shard_no, row, doc_id, text_bytes, words, rank)


def gather(shards: list[Shard], alive: Survivors, group: str, column: str, store: Store) -> np.ndarray:
    """One attribute column of the survivors, in their order (fixed-size binaries as bytes, S dtype)."""
    parts = []
    for number, shard in enumerate(shards):
        rows = alive.row[alive.shard == number]
        values = store.table(shard.attribute(group), columns=[column]).column(column).take(pa.array(rows))
        parts.append(fixed_binary(values) if pa.types.is_fixed_size_binary(values.type) else values.to_numpy())
    return np.concatenate(parts)


def fixed_binary(column: pa.ChunkedArray | pa.Array) -> np.ndarray:
    """A null-free fixed-size binary column as numpy void rows (`V` dtype keeps trailing zero bytes; it sorts as bytes)."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # pyarrow returns a chunked array for zero chunks
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], column.type)
    width = array.type.byte_width
    if not len(array):
        return np.empty(0, f"V{width}")
    raw = np.frombuffer(array.buffers()[1], np.uint8, len(array) * width, array.offset * width)
    return raw.view(f"V{width}")


def doc_id_array(values: np.ndarray, valid: np.ndarray | None = None) -> pa.Array:
    """Void rows of 16 bytes as an Arrow doc_id column; null where not `valid`."""
    array = pa.FixedSizeBinaryArray.from_buffers(schema.DOC_ID, len(values), [None, pa.py_buffer(values.tobytes())])
    if valid is None:
        return array
    return pa.array([v if ok else None for v, ok in zip(array.to_pylist(), valid, strict=True)], schema.DOC_ID)
