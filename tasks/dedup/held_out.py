"""Held out: what equals a held-out document or is near one is held out with it, whatever its source and snapshot.

One kept document in `pack.heldout_one_in` is drawn, by a hash of its id. Where each snapshot is deduplicated for itself
others have kept copies of it, and a search among all documents misses a few pairs. So all kept documents pass by an
index of those drawn (neighbours.py). What is found is held out too, and the others pass by it in turn, until nothing is
found: no text that is trained on is near one that is held out. What the datasets of an index (history.py) held out
counts as drawn.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusmill import schema
from corpusmill.config import Recipe
from corpusmill.store import Receipt, Store, Unit
from tasks import stages
from tasks.dedup.history import Earlier
from tasks.dedup.neighbours import Neighbours, Places, compared, inputs_of
from tasks.dedup.outcome import GROUP_BYTES, binary
from tasks.shards import Shard, fixed_binary
from tasks.units import Done, content_of, once

REASON = "heldout_copy"

COPIES = pa.schema(
    [
        pa.field("shard", pa.int64(), nullable=False),
        pa.field("row", pa.int64(), nullable=False),
        pa.field("doc_id", schema.DOC_ID, nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("keeper", schema.DOC_ID, nullable=False),  # the held-out document that it is most similar to
        pa.field("similarity", pa.float64(), nullable=False),
    ]
)
"""One row per document that is held out as a copy; by shard and row."""


def drawn(doc_ids: Iterable[bytes], one_in: int) -> list[bool]:
    """Whether each kept document is held out for itself: by a hash of its id, which is that of its cluster."""
    hashes = (hashlib.blake2b(doc_id, digest_size=8, key=b"heldout").digest() for doc_id in doc_ids)
    return [int.from_bytes(hashed, "big") % one_in == 0 for hashed in hashes]


def hold_out(shards: Sequence[Shard], near: Receipt, recipe: Recipe, store: Store, earlier: Earlier | None) -> Done:
    """Documents to hold out since they are copies of held-out ones: output `found`."""
    unit = stages.HELDOUT.unit(
        {**compared(recipe, earlier), "one_in": recipe.pack.heldout_one_in},
        (content_of(near, "found"), *inputs_of(shards)),
    )
    return once(store, unit, lambda: _heldout(unit, shards, near, recipe, store, earlier))


def _heldout(
    unit: Unit, shards: Sequence[Shard], near: Receipt, recipe: Recipe, store: Store, earlier: Earlier | None
) -> Receipt:
    docs = _kept(near, store)
    search = Neighbours(shards, docs, recipe, store, earlier)
    held = np.array(drawn(map(bytes, docs.doc_id), recipe.pack.heldout_one_in), np.bool_)
    count, rounds = int(held.sum()), 0
    whose, similarity = np.full(len(docs), -1, np.int64), np.zeros(len(docs))
    few = np.concatenate([np.flatnonzero(held), len(docs) + np.arange(len(search.before))])
    while len(few) and not held.all():
        few, whose_few, how = search.of(few, ~held)
        whose[few], similarity[few], held[few] = whose_few, how, True
        rounds += 1
    copies = np.flatnonzero(whose >= 0)
    found = [
        docs.shard[copies].astype(np.int64),
        docs.row[copies].astype(np.int64),
        binary(docs.doc_id[copies]),
        pa.array([REASON] * len(copies), pa.string()),
        binary(search.ids[whose[copies]]),
        similarity[copies],
    ]
    with store.table_writer(COPIES, row_group_bytes=GROUP_BYTES) as out:
        out.write(pa.table(found, schema=COPIES))
    facts = {
        "drawn": count,
        "drawn_before": len(search.before),
        "copies": len(copies),
        "rounds": rounds,
        "comparisons": search.comparisons,
    }
    return store.commit(unit, {"found": out.draft}, facts=facts)


def _kept(near: Receipt, store: Store) -> Places:
    """The documents that deduplication kept."""
    found = store.table(near.outputs["found"], columns=["shard", "row", "doc_id", "reason"])
    found = found.filter(pc.is_null(found.column("reason")))
    shard, row = (found.column(name).to_numpy().astype(np.int32) for name in ("shard", "row"))
    return Places(shard, row, fixed_binary(found.column("doc_id")))
