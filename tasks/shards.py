"""One documents shard on its way down the chain: the receipts that speak about its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.kernels.leaders import preference_rank
from corpusmill.store import Output, Receipt, Store
from tasks import views
from tasks.units import Done, content_of
from tasks.views import View

Ints = NDArray[np.int64]


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
    cuts: tuple[Output, ...] = ()
    """Objects with spans that stages after judging cut from the text: of view `final`."""
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

    def layers(self, view: View) -> tuple[Output, ...]:
        """The objects that a view lays over the text."""
        return views.layers(view, self.groups, self.cuts)

    def view_inputs(self, view: View) -> tuple[str, ...]:
        """Content digests of what a view is made of: inputs of every unit that reads it."""
        contents = [content_of(self.documents, "documents")]
        return (*contents, *(layer.content or layer.digest for layer in self.layers(view)))

    def texts(self, rows: Ints, store: Store, view: View = "clean") -> pa.Array:
        """Texts of some rows (ascending), read batch by batch."""
        over = views.overlay(self.layers(view), store)
        picked, begin = [pa.array([], pa.large_string())], 0
        for batch in store.batches(self.documents.outputs["documents"], columns=["text"]):
            here = rows[(rows >= begin) & (rows < begin + batch.num_rows)]
            if len(here):
                picked.append(over.take(batch.column("text").take(pa.array(here - begin)), pa.array(here)))
            begin += batch.num_rows
        return pa.concat_arrays(picked)


@dataclass(frozen=True)
class Survivors:
    """Narrow columns of the documents that are alive, over all shards, in the order of shards and rows; N documents."""

    shard: Ints  # int64[N]: number of the shard
    row: Ints  # int64[N]: row in the shard
    doc_id: NDArray[np.void]  # V16[N]
    text_bytes: Ints
    words: Ints
    rank: Ints  # int64[N]: place in the order of preference, 0 first

    def __len__(self) -> int:
        return len(self.row)

    def only(self, keep: NDArray[np.bool_]) -> Survivors:
        """Those of them that `keep` marks."""
        return Survivors(*(getattr(self, f.name)[keep] for f in fields(self)))


def survivors(shards: Sequence[Shard], store: Store) -> Survivors:
    """Every document that no stage has ended yet."""
    shard_no, rows, doc_ids, sizes, words, dates = [], [], [], [], [], []
    for number, shard in enumerate(shards):
        stage = store.table(shard.decisions, columns=["stage"]).column("stage")
        alive = np.flatnonzero(stage.is_null().to_numpy())
        docs = store.table(shard.documents.outputs["documents"], columns=["doc_id", "date"]).take(alive)
        measured = store.table(shard.attribute("measures"), columns=["text_bytes", "word_total"]).take(alive)
        shard_no.append(np.full(len(alive), number, np.int64))
        rows.append(alive)
        doc_ids.append(fixed_binary(docs.column("doc_id")))
        sizes.append(measured.column("text_bytes").to_numpy())
        words.append(measured.column("word_total").to_numpy())
        dates += docs.column("date").to_pylist()
    ids, text_bytes = np.concatenate(doc_ids), np.concatenate(sizes)
    rank = preference_rank(text_bytes, dates, [i.tobytes() for i in ids])
    return Survivors(np.concatenate(shard_no), np.concatenate(rows), ids, text_bytes, np.concatenate(words), rank)


def gather(shards: Sequence[Shard], alive: Survivors, group: str, column: str, store: Store) -> NDArray[Any]:
    """One attribute column of the survivors, in their order (fixed-size binaries as void rows)."""
    parts = []
    for number, shard in enumerate(shards):
        rows = alive.row[alive.shard == number]
        values = store.table(shard.attribute(group), columns=[column]).column(column).take(rows)
        parts.append(fixed_binary(values) if pa.types.is_fixed_size_binary(values.type) else values.to_numpy())
    return np.concatenate(parts)


def fixed_binary(column: pa.ChunkedArray) -> NDArray[np.void]:
    """A null-free fixed-size binary column as void rows, which keep trailing zero bytes and sort as bytes."""
    width = column.type.byte_width
    chunks = [np.frombuffer(c.buffers()[1], f"V{width}", len(c), c.offset * width) for c in column.chunks if len(c)]
    return np.concatenate([np.empty(0, f"V{width}"), *chunks])
