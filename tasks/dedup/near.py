"""Deduplicate over all shards: exact by the digest of the normalised text, then near by MinHash and verified keepers.

Both write a table of what they found (`shard`, `row` say which document); `decide` carries it into the decisions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill import schema
from corpusmill.config import Recipe
from corpusmill.errors import CheckFailed
from corpusmill.kernels import jaccard, lsh, minhash, minhash_checks
from corpusmill.kernels.leaders import Keepers, KeeperSearch
from corpusmill.store import Receipt, Store, Unit
from tasks.shards import Shard, Survivors, fixed_binary, gather, survivors
from tasks.units import Done, Tally, content_of, libraries, once

VERSION = 1
LIBRARIES = ("datasketch",)  # the oracle whose verdict stands in the receipt
ORACLE_DOCUMENTS = 200
MAX_Z = 5.0
"""Bound of the collision identity's z-scores: a sound family passes it in all but one of a million runs."""

Ints = NDArray[np.int64]

FOUND = pa.schema(
    [
        pa.field("shard", pa.int64(), nullable=False),
        pa.field("row", pa.int64(), nullable=False),
        pa.field("doc_id", schema.DOC_ID, nullable=False),
        pa.field("keeper", schema.DOC_ID),  # null: kept
        pa.field("similarity", pa.float64()),
        pa.field("cluster", schema.DOC_ID, nullable=False),
        pa.field("cluster_size", pa.int64(), nullable=False),
    ]
)
"""What a deduplicating stage found: one row per document that is in a cluster of two or more, or (near) alive."""


def exact(shards: Sequence[Shard], recipe: Recipe, store: Store) -> Done:
    """Documents with equal normalised text: the first in the order of preference stays."""
    inputs = tuple(content_of(s.decided, "decisions") + content_of(s.groups["digests"], "digests") for s in shards)
    unit = Unit("exact", VERSION, {}, inputs)
    return once(store, unit, lambda: _exact(unit, shards, store))


def _exact(unit: Unit, shards: Sequence[Shard], store: Store) -> Receipt:
    alive = survivors(shards, store)
    text_digest = gather(shards, alive, "digests", "text_digest", store)
    order = np.lexsort((alive.rank, text_digest))
    first = np.ones(len(alive), bool)
    first[1:] = text_digest[order][1:] != text_digest[order][:-1]
    cluster = np.empty(len(alive), np.int64)
    cluster[order] = order[np.flatnonzero(first)[np.cumsum(first) - 1]] if len(alive) else 0
    keeper = np.where(cluster == np.arange(len(alive)), -1, cluster)
    sizes = np.bincount(cluster, minlength=len(alive))[cluster]
    found = _found(alive, keeper, np.ones(len(alive)), cluster, sizes)
    return _commit(unit, "exact", "exact_duplicate", alive, keeper, found, {}, store)


def near(shards: Sequence[Shard], exact: Receipt, recipe: Recipe, store: Store) -> Done:
    """Near duplicates: candidates by LSH, verified by exact Jaccard, first-in-preference keepers.

    Raises:
        CheckFailed: the signatures do not collide as their theory says; nothing was removed.
    """
    dedup = recipe.deduplicate
    inputs = tuple(
        content_of(r, kind)
        for s in shards
        for r, kind in ((s.decided, "decisions"), (s.groups["digests"], "digests"), (s.documents, "documents"))
    )
    unit = Unit(
        "near",
        VERSION,
        {**dedup.what(), "seed": recipe.seed},
        (content_of(exact, "found"), *inputs),
        {},
        libraries(LIBRARIES),
    )
    return once(store, unit, lambda: _near(unit, shards, exact, recipe, store))


def _near(unit: Unit, shards: Sequence[Shard], exact: Receipt, recipe: Recipe, store: Store) -> Receipt:
    dedup = recipe.deduplicate
    proof: dict[str, object] = {"identity": _identity(recipe)}
    alive = survivors(shards, store)
    alive = alive.only(~_is_removed(alive, store.table(exact.outputs["found"])))
    shingles = gather(shards, alive, "digests", "shingles", store)
    search = KeeperSearch(
        _band_keys(shards, alive, recipe, store),
        alive.rank,
        shingles,
        min_jaccard=dedup.min_jaccard,
        max_pivots=dedup.max_pivots,
    )

    def load(number: int, members: Ints) -> jaccard.Sets:
        sets = minhash.shingle_sets(shards[number].texts(alive.row[members], store), dedup.ngram)
        return jaccard.Sets(sets.offsets, sets.hashes)

    while len(pairs := search.next_pairs()):
        search.settle(jaccard.verify(pairs, alive.shard, shingles.astype(np.int64), load))
    keepers = search.result()
    proof["oracle"] = _oracle(shards, alive, recipe, store)
    facts = {
        "proof": proof,
        "rounds": keepers.rounds,
        "comparisons": keepers.comparisons,
        "complete": keepers.complete,
    }
    found = _found_near(alive, keepers)
    return _commit(unit, "near", "near_duplicate", alive, keepers.keeper, found, facts, store)


def _band_keys(shards: Sequence[Shard], alive: Survivors, recipe: Recipe, store: Store) -> lsh.Keys:
    """uint64[N, bands] of the survivors; signatures, four times their size or more, are held a shard at a time."""
    dedup = recipe.deduplicate
    keys = []
    for number, shard in enumerate(shards):
        column = store.table(shard.attribute("digests"), columns=["signature"]).column("signature")
        raw = fixed_binary(column.take(alive.row[alive.shard == number]))
        signatures = np.frombuffer(raw.tobytes(), "<u4").reshape(len(raw), dedup.num_perm)
        keys.append(lsh.band_keys(signatures, dedup.bands, dedup.num_perm // dedup.bands))
    return np.concatenate(keys)


def _identity(recipe: Recipe) -> dict[str, object]:
    """The gate: signatures of pairs of known similarity agree as often as theory says."""
    pairs = minhash_checks.collision_identity(recipe.deduplicate.num_perm, recipe.seed)
    worst = max(abs(pair.z) for pair in pairs)
    if worst > MAX_Z:
        raise CheckFailed(
            f"MinHash signatures do not collide as often as their similarity says (|z| = {worst:.1f})",
            f"expected at most {MAX_Z} on pairs of known similarity",
            "Nothing was removed. Choose another seed, and please report this.",
        )
    return {"z_by_jaccard": {str(pair.jaccard): round(pair.z, 3) for pair in pairs}, "max_abs_z": round(worst, 3)}


def _oracle(shards: Sequence[Shard], alive: Survivors, recipe: Recipe, store: Store) -> dict[str, object] | None:
    """Our estimates beside datasketch's on up to 200 documents of this run (those with the smallest doc_id).

    Raises:
        CheckFailed: our error is larger than theory allows.
    """
    chosen = np.sort(np.argsort(alive.doc_id, kind="stable")[:ORACLE_DOCUMENTS])
    texts = [
        shards[int(number)].texts(alive.row[chosen[alive.shard[chosen] == number]], store)
        for number in np.unique(alive.shard[chosen])
    ]
    dedup = recipe.deduplicate
    checked = minhash_checks.datasketch_check(
        pa.concat_arrays([pa.array([], pa.large_string()), *texts]),
        ngram=dedup.ngram,
        num_perm=dedup.num_perm,
        seed=recipe.seed,
        max_documents=ORACLE_DOCUMENTS,
    )
    if checked is None:
        return None
    if not checked.passed:
        raise CheckFailed(
            f"MinHash estimates of this run's documents are off by {checked.rmse:.4f} (root mean square)",
            f"theory expects {checked.theory:.4f}; datasketch is off by {checked.peer_rmse:.4f}",
            "Nothing was removed. Choose another seed, and please report this.",
        )
    return {k: round(v, 4) if isinstance(v, float) else v for k, v in asdict(checked).items()}


def _is_removed(alive: Survivors, found: pa.Table) -> NDArray[np.bool_]:
    gone = found.filter(found.column("keeper").is_valid())
    pairs = set(zip(gone.column("shard").to_pylist(), gone.column("row").to_pylist(), strict=True))
    return np.array([pair in pairs for pair in zip(alive.shard.tolist(), alive.row.tolist(), strict=True)], bool)


def _found_near(alive: Survivors, keepers: Keepers) -> pa.Table:
    return _found(alive, keepers.keeper, keepers.similarity, keepers.cluster, keepers.cluster_size, every=True)


def _found(
    alive: Survivors, keeper: Ints, similarity: NDArray[np.float64], cluster: Ints, size: Ints, every: bool = False
) -> pa.Table:
    take = np.arange(len(alive)) if every else np.flatnonzero(size > 1)
    gone = keeper[take] >= 0
    ids = [value.tobytes() for value in alive.doc_id]
    return pa.table(
        {
            "shard": alive.shard[take],
            "row": alive.row[take],
            "doc_id": pa.array([ids[i] for i in take], schema.DOC_ID),
            "keeper": pa.array([ids[k] if k >= 0 else None for k in keeper[take]], schema.DOC_ID),
            "similarity": pa.array(similarity[take], mask=~gone),
            "cluster": pa.array([ids[c] for c in cluster[take]], schema.DOC_ID),
            "cluster_size": size[take],
        },
        schema=FOUND,
    )


def _commit(
    unit: Unit,
    row: str,
    reason: str,
    alive: Survivors,
    keeper: Ints,
    found: pa.Table,
    facts: dict[str, object],
    store: Store,
) -> Receipt:
    gone = keeper >= 0
    tally = Tally(row)
    tally.add_in(len(alive), int(alive.text_bytes.sum()), int(alive.words.sum()))
    tally.add_out(int((~gone).sum()), int(alive.text_bytes[~gone].sum()), int(alive.words[~gone].sum()))
    if gone.any():
        tally.add_reason(reason, int(gone.sum()), int(alive.text_bytes[gone].sum()), int(alive.words[gone].sum()))
    return store.commit(
        unit, {"found": store.draft_table(found)}, counters=tally.counters(), reasons=tally.reason_counts(), facts=facts
    )
