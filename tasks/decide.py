"""Decide: add the results of deduplication, and what is held out with a held-out document, to the decisions of one
shard, and sample the rejects of each reason."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusmill import schema
from corpusmill.config import Recipe
from corpusmill.store import Receipt, Store, Unit
from tasks import stages
from tasks.dedup import of_shard
from tasks.shards import Shard
from tasks.units import Done, content_of, once

REJECTS_PER_REASON = 20
TEXT_CHARS = 2000
SHOWN = ("url", "source_id", "date", "title", "author", "licence", "columns")
"""Columns of documents that go with the sample."""


def decide_shard(number: int, shard: Shard, found: Sequence[Receipt], recipe: Recipe, store: Store) -> Done:
    """The decisions of shard `number` after all stages, and its seeded sample of rejects per reason.

    Args:
        found: of stages exact, near and heldout.
    """
    unit = stages.DECIDE.unit(
        {
            "seed": recipe.seed,
            "per_reason": REJECTS_PER_REASON,
            "min_jaccard": recipe.deduplicate.min_jaccard,
            "number": number,
            "place": shard.place,
        },
        (
            content_of(shard.screened, "decisions"),
            content_of(shard.documents, "records"),
            *(layer.content or layer.digest for layer in shard.layers("final")),
            *(content_of(receipt, "found") for receipt in found),
        ),
    )
    return once(store, unit, lambda: _decide(unit, number, shard, found, recipe, store))


def _decide(unit: Unit, number: int, shard: Shard, found: Sequence[Receipt], recipe: Recipe, store: Store) -> Receipt:
    rows = store.table(shard.decisions).to_pylist()
    exact_found, near_found, heldout_found = (receipt.outputs["found"] for receipt in found)
    clusters: dict[bytes, bytes] = {}  # an exact duplicate's keeper may itself have gone as a near duplicate
    hits = of_shard(exact_found, number, store).to_pylist()
    if hits:
        keepers = pa.array([hit["cluster"] for hit in hits], schema.DOC_ID)
        kept = store.table(near_found, columns=["doc_id", "cluster"])
        kept = kept.filter(pc.is_in(kept.column("doc_id"), keepers))
        clusters = dict(zip(kept.column("doc_id").to_pylist(), kept.column("cluster").to_pylist(), strict=True))
    for stage, rows_found in (("exact", hits), ("near", of_shard(near_found, number, store).to_pylist())):
        for hit in rows_found:
            row = rows[hit["row"]]
            row["cluster"] = clusters.get(hit["cluster"], hit["cluster"])
            if hit["keeper"] is not None:
                row.update(stage=stage, reason=hit["reason"], keeper=hit["keeper"], similarity=hit["similarity"])
                row.update(value=hit["similarity"], bound=recipe.deduplicate.min_jaccard if stage == "near" else None)
    bound = recipe.deduplicate.min_jaccard
    for hit in of_shard(heldout_found, number, store).to_pylist():
        row = rows[hit["row"]]
        row.update(stage="pack", reason=hit["reason"], keeper=hit["keeper"], similarity=hit["similarity"])
        row.update(value=hit["similarity"], bound=bound)
    decisions = pa.Table.from_pylist(rows, schema=schema.DECISIONS)
    return store.commit(
        unit,
        {"decisions": store.draft_table(decisions), "rejects": store.draft_table(_rejects(shard, rows, recipe, store))},
        facts={"locator": shard.locator},
    )


def _rejects(shard: Shard, decisions: list[dict[str, Any]], recipe: Recipe, store: Store) -> pa.Table:
    documents = store.table(shard.documents.outputs["documents"], columns=["offset", "file", *SHOWN])
    languages = store.table(shard.attribute("language"), columns=["language"]).column("language")
    ended = ((row["stage"], row["reason"], row["doc_id"], i) for i, row in enumerate(decisions) if row["reason"])
    picked = []
    for stage, reason, order, i in _smallest(ended, recipe.seed):
        row = decisions[i]
        shown = {name: row[name] for name in ("doc_id", "value", "bound", "keeper", "similarity", "benchmark")}
        place = {**documents.slice(i, 1).to_pylist()[0], "language": languages[i].as_py()}
        place["locator"] = shard.place_in(place.pop("file"))
        picked.append({"stage": stage, "reason": reason, "order": order, "row": i, **shown, **place})
    texts = _heads(shard, {reject["row"] for reject in picked}, store)
    for reject in picked:
        reject["text"] = texts[reject.pop("row")]
    known = ("offset", "url", "date", "source_id", "licence")
    records = store.table(shard.documents.outputs["records"], columns=[*known, "stage", "reason", "file"]).to_pylist()
    lost = (
        (row["stage"], row["reason"], f"{shard.place}:{row['offset']}:{i}".encode(), i)
        for i, row in enumerate(records)
        if row["reason"]
    )
    for stage, reason, order, i in _smallest(lost, recipe.seed):
        row = records[i]
        place = {**{name: row[name] for name in known}, "locator": shard.place_in(row["file"])}
        picked.append({"stage": stage, "reason": reason, "order": order, **place})
    picked.sort(key=lambda reject: (reject["stage"], reject["reason"], reject["order"]))
    return pa.Table.from_pylist(picked, schema=schema.REJECTS)  # keepers: when all are known, at publication


def _smallest(ended: Iterable[tuple[str, str, bytes, int]], seed: int) -> list[tuple[str, str, bytes, int]]:
    """For each stage and reason the rows with the smallest keyed hash: the same in any order of work."""
    key = f"rejects|{seed}".encode()
    by_reason: dict[tuple[str, str], list[tuple[bytes, int]]] = {}
    for stage, reason, identity, row in ended:
        order = hashlib.blake2b(identity, digest_size=8, key=key).digest()
        by_reason.setdefault((stage, reason), []).append((order, row))
    return [
        (stage, reason, order, row)
        for (stage, reason), found in sorted(by_reason.items())
        for order, row in sorted(found)[:REJECTS_PER_REASON]
    ]


def _heads(shard: Shard, rows: set[int], store: Store) -> dict[int, str]:
    """The first 2,000 characters of some documents, in the view that may leave the store."""
    wanted = np.array(sorted(rows), np.int64)
    texts = pc.utf8_slice_codeunits(shard.texts(wanted, store, view="final"), 0, TEXT_CHARS)
    return dict(zip(wanted.tolist(), texts.to_pylist(), strict=True))
