"""Exact duplicates: documents with equal payload bytes, equal normalised text or one URL; the preferred one stays.

A document whose text an earlier dataset kept goes too, where the recipe names one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.config import Recipe
from corpusmill.kernels.duplicates.url_keys import normalised
from corpusmill.store import Receipt, Store, Unit
from tasks import stages
from tasks.dedup.documents import Alive, Ints, alive, attribute, digests_column, salts, scores_read
from tasks.dedup.history import Earlier, batches
from tasks.dedup.outcome import Old, Outcome, commit
from tasks.shards import Shard, fixed_binary
from tasks.units import Done, content_of, once

REASONS = {"payload": "same_payload", "text": "exact_duplicate", "url": "same_url"}


def exact(shards: Sequence[Shard], recipe: Recipe, store: Store, earlier: Earlier | None = None) -> Done:
    """Documents that are equal by one of the recipe's keys, looked at in turn: the first in preference stays."""
    config = recipe.deduplicate
    inputs = tuple(content_of(s.decided, "decisions") + content_of(s.groups["digests"], "digests") for s in shards)
    if {"payload", "url"} & set(config.exact):
        inputs += tuple(content_of(s.documents, "documents") for s in shards)
    inputs += scores_read(shards, config)
    settings: dict[str, object] = {
        "by": list(config.exact),
        "prefer": list(config.prefer),
        "policy": config.policy,
        "snapshots": [] if config.policy == "across" else [f"{s.source}/{s.snapshot}" for s in shards],
        "against": earlier.identity if earlier else [],
    }
    unit = stages.EXACT.unit(settings, inputs)
    return once(store, unit, lambda: _exact(unit, shards, recipe, store, earlier))


@dataclass
class _Verdict:
    """Who goes for whom so far; filled key by key."""

    keeper: Ints
    similarity: NDArray[np.float64]
    reason: NDArray[np.int8]


def _exact(unit: Unit, shards: Sequence[Shard], recipe: Recipe, store: Store, earlier: Earlier | None) -> Receipt:
    config = recipe.deduplicate
    docs = alive(shards, config, store)
    salt = salts(shards, config)[docs.shard]
    n = len(docs)
    verdict = _Verdict(np.full(n, -1, np.int64), np.full(n, np.nan), np.zeros(n, np.int8))
    old = Old.none()
    for code, key in enumerate(config.exact):
        left = np.flatnonzero(verdict.keeper < 0)
        values = _values(key, shards, docs.only(verdict.keeper < 0), store)
        if key == "text" and earlier:
            keeper, old = _kept_before(values, earlier, store)
            _remove(verdict, left[keeper >= 0], n + keeper[keeper >= 0], code, 1.0)
            left, values = left[keeper < 0], values[keeper < 0]
        known = values != np.zeros(1, "V16") if key == "url" else np.ones(len(left), bool)
        left, values = left[known], values[known]
        first = _first_of(values, docs.rank[left], salt[left])
        gone = first != np.arange(len(left))
        _remove(verdict, left[gone], left[first[gone]], code, np.nan if key == "url" else 1.0)
    _settle(verdict, n)
    reasons = tuple(REASONS[key] for key in config.exact)
    outcome = Outcome(verdict.keeper, verdict.similarity, verdict.reason, reasons, old)
    facts = {"by": list(config.exact), "kept_before": len(old)}
    return commit(unit, "exact", docs, outcome, facts, store, every=False)


def _remove(verdict: _Verdict, gone: Ints, keeper: Ints, code: int, similarity: float) -> None:
    verdict.keeper[gone], verdict.reason[gone], verdict.similarity[gone] = keeper, code, similarity


def _settle(verdict: _Verdict, n: int) -> None:
    """Where a keeper went by a later key, its copies point to what kept it; how similar they are is then not known."""
    keeper = verdict.keeper
    while True:
        moved = np.flatnonzero((keeper >= 0) & (keeper < n))
        moved = moved[keeper[keeper[moved]] >= 0]
        if not len(moved):
            return
        verdict.similarity[moved] = np.minimum(verdict.similarity[moved], verdict.similarity[keeper[moved]])  # NaN wins
        keeper[moved] = keeper[keeper[moved]]


def _first_of(values: NDArray[np.void], rank: NDArray[np.uint32], salt: NDArray[np.uint64]) -> Ints:
    """int64[M]: for each document the first in rank of those with its value and salt."""
    halves = _halves(values)
    order = np.lexsort((rank, salt, halves[:, 0], halves[:, 1]))
    keys = np.stack([halves[order, 0], halves[order, 1], salt[order]])
    begins = np.ones(len(order), bool)
    begins[1:] = (keys[:, 1:] != keys[:, :-1]).any(axis=0)
    first = np.empty(len(order), np.int64)
    first[order] = order[np.flatnonzero(begins)[np.cumsum(begins) - 1]] if len(order) else 0
    return first


def _values(key: str, shards: Sequence[Shard], docs: Alive, store: Store) -> NDArray[np.void]:
    """V16 of each document; zeros where it has no URL."""
    if key == "text":
        return attribute(shards, docs, digests_column("text_digest", store), "V16")
    column = "payload_digest" if key == "payload" else "url"

    def read(shard: Shard, rows: pa.Array) -> NDArray[Any]:
        values = store.table(shard.documents.outputs["documents"], columns=[column]).column(column).take(rows)
        return fixed_binary(values) if key == "payload" else _url_digests(values.to_pylist())

    return attribute(shards, docs, read, "V16")


def _url_digests(urls: Sequence[str | None]) -> NDArray[np.void]:
    keys = (normalised(url or "") for url in urls)
    raw = b"".join(hashlib.sha256(key.encode()).digest()[:16] if key else bytes(16) for key in keys)
    return np.frombuffer(raw, "V16")


def _kept_before(values: NDArray[np.void], earlier: Earlier, store: Store) -> tuple[Ints, Old]:
    """For each document the number of the old document with the same text; -1 where there is none."""
    keeper = np.full(len(values), -1, np.int64)
    ours = _halves(values)
    order = np.argsort(ours[:, 0], kind="stable")
    upper = ours[order, 0]
    ids: list[NDArray[np.void]] = []
    manifests: list[str] = []
    for part in earlier.parts:
        for batch in batches(part.keepers, ["doc_id", "text_digest"], store):
            theirs = _halves(fixed_binary(pa.chunked_array([batch.column("text_digest")])))
            doc_id = fixed_binary(pa.chunked_array([batch.column("doc_id")]))
            begin, end = np.searchsorted(upper, theirs[:, 0], "left"), np.searchsorted(upper, theirs[:, 0], "right")
            for row in np.flatnonzero(end > begin).tolist():
                copies = order[begin[row] : end[row]]
                copies = copies[(ours[copies, 1] == theirs[row, 1]) & (keeper[copies] < 0)]
                if len(copies):
                    keeper[copies] = len(manifests)
                    manifests.append(part.manifest)
                    ids.append(doc_id[row : row + 1])
    return keeper, Old(np.concatenate([np.empty(0, "V16"), *ids]), tuple(manifests))


def _halves(values: NDArray[np.void]) -> NDArray[np.uint64]:
    """uint64[N, 2]."""
    return np.frombuffer(values.tobytes(), "<u8").reshape(-1, 2)
