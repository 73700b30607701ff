"""Buckets of quality: which part of its source a document is packed in, and where a held-out one would have been."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusmill.dataset.manifest import Manifest
from corpusmill.store import Output, Store


def parts(name: str, bounds: Sequence[float], scores: pa.ChunkedArray) -> list[str]:
    """What follows its source in the name of each document's partition: `-<name><number of bounds reached>`.

    Args:
        name: of the classifier. bounds: ascending, 0 to 1. scores: int32[n] in millionths; null counts as 0.
    """
    millionths = np.array([round(bound * 1_000_000) for bound in bounds], np.int64)
    return [f"-{name}{k}" for k in np.searchsorted(millionths, pc.fill_null(scores, 0).to_numpy(), side="right")]


def parts_of(store: Store, manifest: Manifest, ids: Sequence[bytes]) -> list[str]:
    """`parts` of documents by their ids, in that order; empty where the dataset has no buckets, or not this document.

    Reads the id of every document of the dataset, 16 bytes each.
    """
    if manifest.buckets is None or "lineage" not in manifest.tables:
        return [""] * len(ids)
    name, bounds = manifest.buckets
    wanted, found = pa.array(sorted(set(ids)), pa.binary(16)), dict[bytes, str]()
    for objects in _objects(store, manifest, ("documents", f"quality:{name}")):
        documents = store.table(objects["documents"], ["doc_id"]).column(0)
        rows = np.flatnonzero(pc.is_in(documents, value_set=wanted).to_numpy())
        scores = store.table(objects[f"quality:{name}"], [f"quality_{name}_e6"]).column(0)
        named = parts(name, bounds, scores.take(rows))
        found |= zip(documents.take(rows).to_pylist(), named, strict=True)
    return [found.get(one, "") for one in ids]


def _objects(store: Store, manifest: Manifest, kinds: Sequence[str]) -> list[Mapping[str, Output]]:
    """These objects of every shard of documents that has them all."""
    places: dict[str, dict[str, Output]] = {}
    for row in store.table(manifest.table("lineage")).to_pylist():
        if row["kind"] in kinds:
            places.setdefault(row["locator"], {})[row["kind"]] = Output.from_json(row)
    return [objects for objects in places.values() if len(objects) == len(kinds)]
