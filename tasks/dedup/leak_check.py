"""Leaks: whether a document that token shards hold to train on equals, or is near, one that they hold out.

It begins with what was packed, and knows nothing of who was to go where: publication refuses a dataset with a leak.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill import schema
from corpusmill.config import Recipe
from corpusmill.dataset.manifest import HELDOUT
from corpusmill.errors import CheckFailed
from corpusmill.store import Output, Receipt, Store, Unit
from tasks import stages
from tasks.dedup.documents import Flags
from tasks.dedup.history import Earlier
from tasks.dedup.neighbours import Neighbours, Places, compared, inputs_of
from tasks.dedup.outcome import binary
from tasks.shards import Shard, fixed_binary
from tasks.units import Done, once

LEAKS = pa.schema(
    [
        pa.field("doc_id", schema.DOC_ID, nullable=False),
        pa.field("heldout", schema.DOC_ID, nullable=False),  # the held-out document that it is most similar to
        pa.field("similarity", pa.float64(), nullable=False),
    ]
)
"""One row per document that is packed to train on, though it is held out, or a copy of one that is."""


def find_leaks(
    shards: Sequence[Shard], packs: Sequence[Receipt], recipe: Recipe, store: Store, earlier: Earlier | None
) -> Done:
    """Compare what was packed to train on with what was packed as held out: output `leaks`, which should be empty.

    Raises:
        CheckFailed: the shards hold a document that was never extracted.
    """
    docs = tuple(output.content or output.digest for _, output in _packed(packs))
    unit = stages.LEAKS.unit(compared(recipe, earlier), (*docs, *inputs_of(shards)))
    return once(store, unit, lambda: _leaks(unit, shards, packs, recipe, store, earlier))


def check(receipt: Receipt, store: Store) -> None:
    """Raise CheckFailed if the dataset trains on what it holds out."""
    found = store.table(receipt.outputs["leaks"])
    if found.num_rows:
        first = found.slice(0, 1).to_pylist()[0]
        raise CheckFailed(
            f"{found.num_rows} documents to train on are held out, or are copies of held-out ones",
            f"{first['doc_id'].hex()} has a similarity of {first['similarity']:.3f} to the held-out"
            f" {first['heldout'].hex()}; nothing was published",
            "This is an error in corpusmill: please report it with the recipe.",
        )


def _packed(packs: Sequence[Receipt]) -> list[tuple[bool, Output]]:
    """Whether it is held out, and the table, of all documents that were packed."""
    tables = [(kind, output) for receipt in packs for kind, output in sorted(receipt.outputs.items())]
    return [(kind == f"{HELDOUT}.docs", output) for kind, output in tables if kind.endswith(".docs")]


def _leaks(
    unit: Unit,
    shards: Sequence[Shard],
    packs: Sequence[Receipt],
    recipe: Recipe,
    store: Store,
    earlier: Earlier | None,
) -> Receipt:
    ids: dict[bool, list[NDArray[np.void]]] = {True: [], False: []}
    for is_held, output in _packed(packs):
        ids[is_held].append(fixed_binary(store.table(output, columns=["doc_id"]).column("doc_id")))
    heldout, trained = (np.concatenate([np.zeros(0, "V16"), *ids[is_held]]) for is_held in (True, False))
    both = np.intersect1d(heldout, trained)
    docs = _placed(np.unique(np.concatenate([heldout, trained])), shards, store)
    search = Neighbours(shards, docs, recipe, store, earlier)
    held = _among(docs.doc_id, np.unique(heldout))
    few = np.concatenate([np.flatnonzero(held), len(docs) + np.arange(len(search.before))])
    found, whose, similarity = search.of(few, ~held)
    columns = [
        binary(np.concatenate([both, docs.doc_id[found]])),
        binary(np.concatenate([both, search.ids[whose]])),
        np.concatenate([np.ones(len(both)), similarity]),
    ]
    facts = {"heldout": len(heldout), "trained": len(trained), "comparisons": search.comparisons}
    return store.commit(unit, {"leaks": store.draft_table(pa.table(columns, schema=LEAKS))}, facts=facts)


def _placed(ids: NDArray[np.void], shards: Sequence[Shard], store: Store) -> Places:
    """Where documents, V16[N] ascending, lie."""
    shard, row, known = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)], [np.zeros(0, "V16")]
    for number, one in enumerate(shards):
        here = fixed_binary(store.table(one.documents.outputs["documents"], columns=["doc_id"]).column("doc_id"))
        rows = np.flatnonzero(_among(here, ids)).astype(np.int32)
        shard.append(np.full(len(rows), number, np.int32))
        row.append(rows)
        known.append(here[rows])
    docs = Places(np.concatenate(shard), np.concatenate(row), np.concatenate(known))
    if len(docs) != len(ids):
        raise CheckFailed(
            f"the token shards hold {len(ids)} documents, of which {len(docs)} were extracted",
            "every packed document has one row in the extracted ones; nothing was published",
            "This is an error in corpusmill: please report it with the recipe.",
        )
    return docs


def _among(values: NDArray[np.void], known: NDArray[np.void]) -> Flags:
    """bool[N]: which of the values are among the known ones, V16 ascending."""
    if not len(known):
        return np.zeros(len(values), np.bool_)
    flags: Flags = known[np.minimum(np.searchsorted(known, values), len(known) - 1)] == values
    return flags
