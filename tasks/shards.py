"""One documents shard on its way down the chain: the receipts that speak about its rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from corpusmill.store import Output, Receipt, Store
from tasks import views
from tasks.units import content_of
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
    trail: tuple[Receipt, ...] = ()
    """Receipts of all units so far whose results stay, in order: what the lineage and the funnel are made of."""

    def after(self, decided: Receipt) -> Shard:
        """The shard with the receipt of a unit that decided about its documents."""
        return replace(self, decided=decided, trail=(*self.trail, decided))

    @property
    def place(self) -> str:
        """`source/locator`: the order of shards."""
        return f"{self.source}/{self.locator}"

    def places_of(self, ids: pa.ChunkedArray, store: Store) -> pa.Array:
        """`source/locator` of the files of some documents."""
        if not len(ids):
            return pa.array([], pa.string())
        documents = store.table(self.documents.outputs["documents"], columns=["doc_id", "file"])
        at = pc.index_in(ids, documents.column("doc_id"))
        return pa.array([self.place_in(file) for file in documents.column("file").take(at).to_pylist()], pa.string())

    def place_in(self, file: str | None) -> str:
        """`source/locator` of a file of the shard, by column `file` of its tables."""
        return self.place if file is None else f"{self.source}/{file}"

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


def fixed_binary(column: pa.ChunkedArray) -> NDArray[np.void]:
    """A null-free fixed-size binary column as void rows, which keep trailing zero bytes and sort as bytes."""
    width = column.type.byte_width
    chunks = [np.frombuffer(c.buffers()[1], f"V{width}", len(c), c.offset * width) for c in column.chunks if len(c)]
    return np.concatenate([np.empty(0, f"V{width}"), *chunks])
