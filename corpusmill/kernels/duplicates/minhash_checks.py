"""Two proofs that signatures estimate Jaccard similarity: on made-up sets before a run, and against datasketch in a
run.

Theory (Broder 1997): the share of equal places of two signatures of K permutations has mean J and standard error
sqrt(J (1 - J) / K).
"""

from __future__ import annotations

import hashlib
import importlib.util
import math
import sys
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.kernels.duplicates.minhash import ShingleSets, Shingling, permutations, shingles, sign

SIMILARITIES = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.98)
"""Similarities of the made-up pairs."""


@dataclass(frozen=True)
class Identity:
    """How signatures of made-up pairs of one similarity agree."""

    jaccard: float
    """Exact similarity of each pair."""
    estimate: float
    """Mean share of equal places."""
    z: float
    """(estimate - jaccard) in standard errors of the mean; beyond 4 or so the signatures are wrong."""


def collision_identity(num_perm: int, seed: int, *, pairs: int = 40, size: int = 1000) -> list[Identity]:
    """Agreement of signatures on made-up pairs of known similarity, by the permutations of a run.

    Args:
        num_perm: permutations K.
        seed: of the permutations.
        pairs: pairs of each similarity.
        size: elements of the union of a pair.
    """
    out = []
    for jaccard in SIMILARITIES:
        common = round(jaccard * size)
        elements = _elements(f"{seed}|{jaccard}", pairs * size).reshape(pairs, size)
        half = common + (size - common) // 2
        left, right = elements[:, :half], np.concatenate([elements[:, :common], elements[:, half:]], axis=1)
        sets = [part for pair in zip(left, right, strict=True) for part in pair]
        estimates = _agreement(_as_sets(sets), num_perm, seed)
        exact = common / size
        error = math.sqrt(exact * (1 - exact) / (num_perm * pairs))
        mean = float(estimates.mean())
        out.append(Identity(exact, mean, (mean - exact) / error))
    return out


@dataclass(frozen=True)
class Comparison:
    """Our estimates and datasketch's beside exact similarities."""

    documents: int
    pairs: int
    rmse: float
    """Root mean square error of our estimates."""
    peer_rmse: float
    """Of datasketch's."""
    theory: float
    """What theory expects of both."""
    max_deviation: float
    """Largest error of ours."""
    max_difference: float
    """Largest difference of the two estimates of a pair."""

    @property
    def passed(self) -> bool:
        """Whether our error is that of theory: within a quarter and four standard errors of a root mean square."""
        return self.rmse <= self.theory * (1.25 + 4 / math.sqrt(2 * max(self.pairs, 1)))


def datasketch_check(
    text: pa.LargeStringArray, *, kind: Shingling, num_perm: int, seed: int, max_documents: int = 200
) -> Comparison | None:
    """Compare our signatures with datasketch's on the shingles of real documents.

    Each of the first `max_documents` texts with 10 shingles or more is paired with its own beginning, a share of its
    different shingles: 0.2, 0.35, 0.5, 0.65, 0.8, 0.95 in turn, which is the exact similarity of the pair.

    Returns:
        None where no text has 10 shingles.
    """
    chosen = [part for part in _in_text_order(text, kind) if len(part) >= 10][:max_documents]
    if not chosen:
        return None
    cut = [max(1, round(len(part) * (0.2 + 0.15 * (i % 6)))) for i, part in enumerate(chosen)]
    exact = np.array([c / len(part) for c, part in zip(cut, chosen, strict=True)])
    sets = [half for c, part in zip(cut, chosen, strict=True) for half in (part, part[:c])]
    ours = _agreement(_as_sets(sets), num_perm, seed)
    empty = _datasketch_minhash()(num_perm=num_perm, seed=seed % 2**32)
    peer = np.array([_agreement_by(empty, part, c) for c, part in zip(cut, chosen, strict=True)])
    return Comparison(
        documents=len(chosen),
        pairs=len(chosen),
        rmse=_rms(ours - exact),
        peer_rmse=_rms(peer - exact),
        theory=math.sqrt(float((exact * (1 - exact)).mean()) / num_perm),
        max_deviation=float(np.abs(ours - exact).max()),
        max_difference=float(np.abs(ours - peer).max()),
    )


def _agreement_by(empty: Any, part: NDArray[np.uint64], cut: int) -> float:
    """Datasketch's estimate for a set and the beginning of it; the shingles of the beginning are hashed once."""
    raw = [int(h).to_bytes(8, "little") for h in part]
    beginning = empty.copy()
    beginning.update_batch(raw[:cut])
    whole = beginning.copy()
    whole.update_batch(raw[cut:])
    return float(whole.jaccard(beginning))


def _datasketch_minhash() -> Any:
    """Datasketch's class MinHash, without the rest of that package, which imports SciPy's integration for 0.45 s."""
    loaded = "datasketch" in sys.modules
    if not loaded:
        spec = importlib.util.find_spec("datasketch")
        assert spec is not None, "datasketch is a dependency"
        sys.modules["datasketch"] = importlib.util.module_from_spec(spec)  # not executed: says where its modules are
    try:
        from datasketch.minhash import MinHash

        return MinHash
    finally:
        if not loaded:
            del sys.modules["datasketch"]


def _in_text_order(text: pa.LargeStringArray, kind: Shingling) -> list[NDArray[np.uint64]]:
    offsets, hashes = shingles(kind.table(text), kind.n)
    out = []
    for begin, end in pairwise(offsets):
        _, first = np.unique(hashes[begin:end], return_index=True)
        out.append(hashes[begin + np.sort(first)])
    return out


def _agreement(sets: ShingleSets, num_perm: int, seed: int) -> NDArray[np.float64]:
    """Share of equal places of the signatures of sets 0 and 1, 2 and 3, and so on."""
    signature = sign(sets, *permutations(num_perm, seed)).signature
    return (signature[::2] == signature[1::2]).mean(axis=1)


def _as_sets(parts: list[NDArray[np.uint64]]) -> ShingleSets:
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum([len(part) for part in parts], dtype=np.int64)])
    return ShingleSets(offsets, np.concatenate(parts))


def _elements(name: str, count: int) -> NDArray[np.uint64]:
    """Hashes as a run would meet them, from an extendable-output function: the same everywhere."""
    return np.frombuffer(hashlib.shake_128(name.encode()).digest(8 * count), "<u8").astype(np.uint64)


def _rms(errors: NDArray[np.float64]) -> float:
    return math.sqrt(float((errors**2).mean()))
