"""What a run proves about itself: on made-up pairs before it starts, on the corpus's own pairs and on planted ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.config import Recipe
from corpusmill.errors import CheckFailed
from corpusmill.kernels.duplicates import minhash_checks, planted_pairs
from corpusmill.store import Store
from tasks.dedup.documents import Alive, Ints
from tasks.dedup.history import shingling
from tasks.shards import Shard

ORACLE_DOCUMENTS = 200
PLANTED_DOCUMENTS = 60
SAMPLE_PAIRS = 200
MAX_Z = 5.0
"""Bound of z-scores: a sound family passes it in all but one of a million runs."""


def identity(recipe: Recipe) -> dict[str, object]:
    """The gate: signatures of pairs of known similarity agree as often as theory says.

    Raises:
        CheckFailed: they do not.
    """
    pairs = minhash_checks.collision_identity(recipe.deduplicate.num_perm, recipe.seed)
    worst = max(abs(pair.z) for pair in pairs)
    if worst > MAX_Z:
        raise CheckFailed(
            f"MinHash signatures do not collide as often as theory expects (|z| = {worst:.1f})",
            f"expected at most {MAX_Z} on pairs of known similarity",
            "Nothing was removed. Choose another seed, and please report this.",
        )
    return {"z_by_jaccard": {str(pair.jaccard): round(pair.z, 3) for pair in pairs}, "max_abs_z": round(worst, 3)}


def documents(shards: Sequence[Shard], docs: Alive, store: Store) -> pa.LargeStringArray:
    """Up to 200 texts of this run: those with the smallest doc_id, in the order of shards and rows."""
    chosen = np.sort(np.argsort(docs.doc_id, kind="stable")[:ORACLE_DOCUMENTS])
    return texts_of(shards, docs, chosen, store)


def texts_of(shards: Sequence[Shard], docs: Alive, chosen: Ints, store: Store) -> pa.LargeStringArray:
    """Texts of some documents (ascending positions)."""
    parts = [
        shards[int(number)].texts(docs.row[chosen[docs.shard[chosen] == number]], store)
        for number in np.unique(docs.shard[chosen])
    ]
    return pa.concat_arrays([pa.array([], pa.large_string()), *parts])


def oracle(texts: pa.LargeStringArray, recipe: Recipe) -> dict[str, object] | None:
    """Our estimates beside datasketch's on documents of this run.

    Raises:
        CheckFailed: our error is larger than theory allows.
    """
    config = recipe.deduplicate
    checked = minhash_checks.datasketch_check(
        texts,
        kind=shingling(recipe),
        num_perm=config.num_perm,
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


def planted(texts: pa.LargeStringArray, recipe: Recipe) -> dict[str, object]:
    """Precision and recall on copies of documents of this run, edited at several rates."""
    config = recipe.deduplicate
    return planted_pairs.planted(
        texts.slice(0, PLANTED_DOCUMENTS),
        shingling(recipe),
        num_perm=config.num_perm,
        bands=config.bands,
        seed=recipe.seed,
        min_jaccard=config.min_jaccard,
    )


def s_curve(
    shards: Sequence[Shard],
    docs: Alive,
    pairs: Ints,
    similarity: NDArray[np.float64],
    recipe: Recipe,
    store: Store,
) -> dict[str, object]:
    """How often pairs that this run verified meet under fresh permutations, beside the S-curve.

    The run's own permutations chose these pairs, so they cannot judge themselves.

    Args:
        pairs: int64[M, 2], positions in `docs`.
        similarity: exact, float64[M].
    """
    config = recipe.deduplicate
    chosen = np.unique(pairs)
    return planted_pairs.s_curve(
        texts_of(shards, docs, chosen, store),
        shingling(recipe),
        np.searchsorted(chosen, pairs),
        similarity,
        num_perm=config.num_perm,
        bands=config.bands,
        seed=recipe.seed,
    )
