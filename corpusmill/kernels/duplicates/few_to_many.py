"""Which of many documents may be near one of a few: the many pass by an index of the few, and are not held.

Method: LSH bands over MinHash signatures (lsh.py), finer than a search among all documents could afford: where one side
is small, crowded buckets cost little. So a pair of the wanted similarity is missed once in a million times at most, and
what shares a band is compared by all places of its signature before any text is read.

Arrays: F few documents, D documents of a batch of the many, K permutations, B bands.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from corpusmill.compiled import kernel
from corpusmill.kernels.bytes.hashing import mix64
from corpusmill.kernels.duplicates.lsh import band_keys, collision_probability

Ints = NDArray[np.int64]
Signatures = NDArray[np.uint32]

MISSED = 1e-6
"""Share of the pairs of the wanted similarity that may share no band."""
SIGMAS = 6
"""Standard errors by which signatures may agree less than their pair's similarity says: once in 10**9 pairs."""
MOST_PAIRS = 1 << 20
"""Pairs that are given at a time, at least."""


def fine_rows(num_perm: int, min_jaccard: float) -> int:
    """Rows of a band: the most by which pairs of this similarity are met, but for `MISSED` of them."""
    for rows in range(num_perm, 1, -1):
        if num_perm % rows == 0 and 1 - collision_probability(min_jaccard, num_perm // rows, rows) <= MISSED:
            return rows
    return 1


def least_agreement(num_perm: int, min_jaccard: float) -> int:
    """Equal places, of all K, from which two signatures may be those of a pair of this similarity."""
    error = math.sqrt(num_perm * min_jaccard * (1 - min_jaccard))
    return max(1, math.floor(num_perm * min_jaccard - SIGMAS * error))


class Few:
    """An index of a few documents: some 13 bytes a band of each, beside their signatures."""

    def __init__(self, signatures: Signatures, min_jaccard: float) -> None:
        """Index documents that have shingles, by their signatures: uint32[F, K]."""
        self._signatures = np.ascontiguousarray(signatures)
        num_perm = signatures.shape[1]
        self._rows = fine_rows(num_perm, min_jaccard)
        self._bands = num_perm // self._rows
        self._least = least_agreement(num_perm, min_jaccard)
        self._table = _indexed(band_keys(self._signatures, self._bands, self._rows))

    def near(self, signatures: Signatures) -> Iterator[Ints]:
        """Pairs (document of the batch, one of the few) that may be near, int64[M, 2], each once.

        Args:
            signatures: uint32[D, K] of documents that have shingles.
        """
        signatures = np.ascontiguousarray(signatures)
        keys = band_keys(signatures, self._bands, self._rows)
        begin = 0
        while begin < len(signatures) and len(self._signatures):
            pairs, begin = _met(keys, signatures, begin, self._table, self._signatures, self._least, MOST_PAIRS)
            yield pairs


@kernel
def _indexed(keys: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.int32]]:
    """A table of open addressing: key of each slot, its last entry or -1, and of each entry the one before it.

    Entry d * B + b is band b of document d.
    """
    entries = keys.size
    slots = 16
    while slots < 2 * entries:
        slots *= 2
    held, last, before = np.zeros(slots, np.uint64), np.full(slots, -1, np.int32), np.full(entries, -1, np.int32)
    mask = np.uint64(slots - 1)
    for d in range(keys.shape[0]):
        for b in range(keys.shape[1]):
            key = keys[d, b]
            slot = mix64(key) & mask
            while last[slot] >= 0 and held[slot] != key:
                slot = (slot + np.uint64(1)) & mask
            held[slot] = key
            entry = d * keys.shape[1] + b
            before[entry] = last[slot]
            last[slot] = entry
    return held, last, before


@kernel
def _met(
    keys: NDArray[np.uint64],
    signatures: Signatures,
    begin: int,
    table: tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.int32]],
    few: Signatures,
    least: int,
    most: int,
) -> tuple[Ints, int]:
    """Pairs of the documents from `begin` on until there are `most`, and the document to go on with."""
    held, last, before = table
    mask, bands, width = np.uint64(len(held) - 1), keys.shape[1], few.shape[1]
    seen = np.full(len(few), -1, np.int64)
    pairs, count = np.empty((1024, 2), np.int64), 0
    d = begin
    while d < len(keys) and count < most:
        for b in range(bands):
            key = keys[d, b]
            slot = mix64(key) & mask
            while last[slot] >= 0 and held[slot] != key:
                slot = (slot + np.uint64(1)) & mask
            entry = last[slot]
            while entry >= 0:
                other = entry // bands
                entry = before[entry]
                if seen[other] == d:
                    continue
                seen[other] = d
                agreed = 0
                for k in range(width):
                    agreed += signatures[d, k] == few[other, k]
                if agreed < least:
                    continue
                if count == len(pairs):
                    pairs = np.concatenate((pairs, np.empty_like(pairs)))
                pairs[count, 0], pairs[count, 1] = d, other
                count += 1
        d += 1
    return pairs[:count].copy(), d
