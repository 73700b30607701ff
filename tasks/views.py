"""Views of stored texts: `raw`, `clean` (without what rule edits cut), `final` (what may leave the store).

Edits are objects beside the documents with the same rows; a view lays them over the text as it is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from corpusmill.kernels.edits import spans as edits
from corpusmill.store import Output, Receipt, Store

View = Literal["raw", "clean", "final"]

LAYERS = ("edits", "cuts", "lines", "substrings", "pii")
"""Kinds of the objects that have spans, in the order of their weight: rule edits, benchmark items, repeated lines,
repeated passages, personal data."""


@dataclass(frozen=True)
class Overlay:
    """What a view takes from the texts of one shard; no spans at all where `spans` is None."""

    spans: pa.ListArray | None

    def over(self, text: pa.LargeStringArray, first: int) -> pa.LargeStringArray:
        """The view of consecutive texts, of which the first is row `first` of the shard."""
        return text if self.spans is None else _applied(text, self.spans.slice(first, len(text)))

    def take(self, text: pa.LargeStringArray, rows: pa.Array) -> pa.LargeStringArray:
        """The view of single texts, given with their rows in the shard."""
        return text if self.spans is None else _applied(text, self.spans.take(rows))


def _applied(text: pa.LargeStringArray, spans: pa.ListArray) -> pa.LargeStringArray:
    from corpusmill.kernels.pii.find import MASKS  # with it come the checks of identity numbers of many countries

    return edits.apply(text, spans, MASKS)


def layers(view: View, groups: Mapping[str, Receipt], later: Sequence[Output] = ()) -> tuple[Output, ...]:
    """The objects a view is made of, cuts before masks. `later` are cuts made after judging (benchmark items, repeated
    lines)."""
    found = []
    if view != "raw" and "edits" in groups:
        found.append(groups["edits"].outputs["edits"])
    if view == "final":
        found += later
        if "pii" in groups:
            found.append(groups["pii"].outputs["pii"])
    return tuple(found)


def overlay(made_of: Sequence[Output], store: Store) -> Overlay:
    """Read the spans of a view of one shard."""
    found = []
    for layer in made_of:
        column = store.table(layer, columns=["spans"]).column("spans").combine_chunks()
        if len(column.values):
            found.append(column)
    return Overlay(edits.united(found) if found else None)


def batches(
    documents: Receipt, made_of: Sequence[Output], store: Store, *, columns: Sequence[str], batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """Batches of a documents shard with `text` as the view has it."""
    over = overlay(made_of, store)
    first = 0
    for batch in store.batches(documents.outputs["documents"], columns=list(columns), batch_rows=batch_rows):
        text = over.over(batch.column("text"), first)
        first += batch.num_rows
        yield batch.set_column(batch.schema.get_field_index("text"), batch.schema.field("text"), text)
