"""Near-duplicate detection measured on pairs whose similarity is known: planted copies, and pairs of a corpus itself.

Theory: a pair of similarity J meets in one of B bands of R rows with probability 1 - (1 - J**R)**B (lsh.py).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.kernels.duplicates import jaccard, lsh, minhash

RATES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
"""Shares of words that are replaced in a planted copy."""
FRESH_SEEDS = 8
BINS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

Floats = NDArray[np.float64]


def wilson(hits: int, trials: int, z: float = 1.96) -> tuple[float, float]:
    """Interval of a share (Wilson 1927), at 95 % for z = 1.96; (0, 1) where nothing was tried."""
    if not trials:
        return 0.0, 1.0
    share, extra = hits / trials, z * z / trials
    middle = (share + extra / 2) / (1 + extra)
    half = z * math.sqrt(share * (1 - share) / trials + extra / (4 * trials)) / (1 + extra)
    return max(0.0, middle - half), min(1.0, middle + half)


def share(hits: int, trials: int) -> dict[str, object]:
    """A share with its interval, for a report; null where nothing was tried."""
    low, high = wilson(hits, trials)
    value = round(hits / trials, 4) if trials else None
    return {"hits": hits, "of": trials, "share": value, "interval": [round(low, 4), round(high, 4)]}


def planted(
    texts: pa.LargeStringArray,
    kind: minhash.Shingling,
    *,
    num_perm: int,
    bands: int,
    seed: int,
    min_jaccard: float,
) -> dict[str, object]:
    """Copy documents with some of their words replaced, and look for the copies as a run does.

    Truth is the similarity of the two texts' shingle sets, compared here as Python sets: a pair from `min_jaccard` on
    is a duplicate. Recall is the share of these that meet and are verified; precision the share of those verified that
    are duplicates.
    """
    originals = [text for text in texts.to_pylist() if len(text.split()) >= 20]
    rows: list[dict[str, object]] = []
    totals = np.zeros(3, np.int64)  # duplicates, found, found and duplicates
    expected_all = 0.0
    for rate in RATES:
        copies = [edited(text, rate, f"{seed}|{rate}|{i}") for i, text in enumerate(originals)]
        both = pa.array([t for pair in zip(originals, copies, strict=True) for t in pair], pa.large_string())
        sets = jaccard.Sets(*minhash.shingle_sets(both, kind))
        truth = np.array([_as_python_sets(sets, 2 * i) for i in range(len(originals))])
        met = _meet(minhash.signatures(both, ngram=kind.n, num_perm=num_perm, seed=seed, shingling=kind), bands)
        pairs = np.arange(2 * len(originals)).reshape(-1, 2)
        found = met & (jaccard.jaccard(sets, sets, pairs) >= min_jaccard)
        similar = truth >= min_jaccard
        expected = _expected(truth[similar], num_perm, bands)
        rows.append(
            {
                "rate": rate,
                "mean_jaccard": round(float(truth.mean()), 4) if len(truth) else None,
                "expected_recall": round(expected / int(similar.sum()), 4) if similar.any() else None,
                "recall": share(int((found & similar).sum()), int(similar.sum())),
            }
        )
        totals += np.array([similar.sum(), found.sum(), (found & similar).sum()], np.int64)
        expected_all += expected
    duplicates, found_all, right = totals.tolist()
    return {
        "documents": len(originals),
        "recall": share(right, duplicates),
        "expected_recall": round(expected_all / duplicates, 4) if duplicates else None,
        "precision": share(right, found_all),
        "by_rate": rows,
    }


def edited(text: str, rate: float, name: str) -> str:
    """The text with a share of its words replaced by made-up ones, at places drawn by `name`."""
    words = text.split()
    count = max(1, round(rate * len(words)))
    drawn = hashlib.shake_128(name.encode()).digest(8 * len(words))
    for number, place in enumerate(np.argsort(np.frombuffer(drawn, "<u8"), kind="stable")[:count].tolist()):
        words[place] = "zq" + hashlib.sha256(f"{name}|{number}".encode()).hexdigest()[:8].translate(_LETTERS)
    return " ".join(words)


_LETTERS = str.maketrans("0123456789", "ghijklmnop")


def s_curve(
    texts: pa.LargeStringArray,
    kind: minhash.Shingling,
    pairs: NDArray[np.int64],
    similarity: Floats,
    *,
    num_perm: int,
    bands: int,
    seed: int,
) -> dict[str, object]:
    """How often pairs of known similarity meet under `FRESH_SEEDS` seeds that did not choose them."""
    sets = minhash.shingle_sets(texts, kind)
    met = np.zeros(len(pairs), np.int64)
    for fresh in range(1, FRESH_SEEDS + 1):
        signed = minhash.sign(sets, *minhash.permutations(num_perm, seed + fresh * 1_000_003)).signature
        keys = lsh.band_keys(signed, bands, num_perm // bands)
        met += (keys[pairs[:, 0]] == keys[pairs[:, 1]]).any(axis=1)
    rows = []
    for low, high in pairwise(BINS):
        here = (similarity >= low) & ((similarity < high) | (high == 1.0))
        trials = int(here.sum()) * FRESH_SEEDS
        if trials:
            expected = _expected(similarity[here], num_perm, bands) / int(here.sum())
            measured = share(int(met[here].sum()), trials)
            rows.append({"from": low, "to": high, "expected": round(expected, 4), "met": measured})
    chances = _chances(similarity, num_perm, bands)
    spread = math.sqrt(float((chances * (1 - chances)).sum()) * FRESH_SEEDS)
    z = (float(met.sum()) - float(chances.sum()) * FRESH_SEEDS) / spread if spread else 0.0
    return {"pairs": len(pairs), "seeds": FRESH_SEEDS, "z": round(z, 3), "by_jaccard": rows}


def _meet(signed: minhash.Signatures, bands: int) -> NDArray[np.bool_]:
    """Whether documents 0 and 1, 2 and 3, and so on share a band; those without shingles do not."""
    keys = lsh.band_keys(signed.signature, bands, signed.signature.shape[1] // bands)
    filled = (signed.shingles[::2] > 0) & (signed.shingles[1::2] > 0)
    return (keys[::2] == keys[1::2]).any(axis=1) & filled


def _as_python_sets(sets: jaccard.Sets, first: int) -> float:
    a, b = (set(sets.values[sets.offsets[i] : sets.offsets[i + 1]].tolist()) for i in (first, first + 1))
    return len(a & b) / len(a | b) if a | b else 0.0


def _chances(similarity: Sequence[float] | Floats, num_perm: int, bands: int) -> Floats:
    return np.array([lsh.collision_probability(float(j), bands, num_perm // bands) for j in similarity])


def _expected(similarity: Sequence[float] | Floats, num_perm: int, bands: int) -> float:
    return float(_chances(similarity, num_perm, bands).sum())
