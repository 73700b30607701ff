"""LSH bands and buckets: candidate near-duplicates without comparing all pairs.

Method: Leskovec, Rajaraman, Ullman, Mining of Massive Datasets, ch. 3.4 (bands x rows over MinHash signatures).

Arrays: N documents, K = bands * rows permutations, B bands.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corpusmill.compiled import kernel
from corpusmill.kernels.bytes.hashing import mix64

Ints = NDArray[np.int64]
Keys = NDArray[np.uint64]


@dataclass(frozen=True)
class Buckets:
    """Buckets of at least two documents in one band, in the order of their keys."""

    members: Ints
    """int64[M]: documents, ascending within a bucket."""
    offsets: Ints
    """int64[buckets + 1] into `members`."""


def collision_probability(jaccard: float, bands: int, rows: int) -> float:
    """Probability that two documents of this similarity share a bucket: 1 - (1 - J**rows)**bands."""
    return 1.0 - _power(1.0 - _power(jaccard, rows), bands)


def band_keys(signatures: NDArray[np.uint32], bands: int, rows: int) -> Keys:
    """Key of each document in each band; equal keys mean equal rows (but for one in 2**64).

    Args:
        signatures: uint32[N, K], K = bands * rows.

    Returns:
        uint64[N, B].
    """
    if signatures.ndim != 2 or signatures.shape[1] != bands * rows:
        raise ValueError(f"signatures of shape {signatures.shape} do not hold {bands} bands of {rows} rows")
    return _band_keys(np.ascontiguousarray(signatures), bands, rows)


def buckets(keys: Keys) -> Buckets:
    """Documents with equal keys in one band: most keys occur once and are left out before the others are sorted.

    Args:
        keys: uint64[N] of one band; position = document.
    """
    keys = np.ascontiguousarray(keys)
    repeated = _maybe_repeated(keys)
    order, offsets = _runs(keys[repeated], sort_by_key(keys[repeated]))
    return Buckets(repeated[order], offsets)


def bucket_entries(keys: Keys, rank: NDArray[np.uint32]) -> tuple[Ints, Ints]:
    """Buckets of entries (key, document) of any bands in any order: the same as `buckets` band by band.

    Args:
        keys: uint64[M] of one range of keys; all entries of a key are here.
        rank: uint32[M], the document of each entry.

    Returns:
        positions of the entries in buckets of two or more, by key and then by rank, and int64[buckets + 1] into them.
    """
    repeated = _maybe_repeated(keys)
    by_rank = repeated[sort_by_key(rank[repeated].astype(np.uint64) << np.uint64(31))]
    order, offsets = _runs(keys[by_rank], sort_by_key(keys[by_rank]))
    return by_rank[order], offsets


def partition_of(keys: Keys, partitions: int) -> NDArray[np.int64]:
    """Range of keys that each key lies in: the upper 32 bits, cut into equal ranges."""
    return ((keys >> np.uint64(32)) * np.uint64(partitions) >> np.uint64(32)).astype(np.int64)


@kernel
def spread(values: Keys) -> Keys:
    """Hash of each value: an order that has nothing to do with theirs."""
    out = np.empty_like(values)
    for i in range(len(values)):
        out[i] = mix64(values[i])
    return out


def _power(base: float, exponent: int) -> float:
    product = 1.0  # by multiplication: libm's pow differs between machines
    for _ in range(exponent):
        product *= base
    return product


@kernel
def _band_keys(signatures: NDArray[np.uint32], bands: int, rows: int) -> Keys:
    keys = np.empty((signatures.shape[0], bands), np.uint64)
    for i in range(signatures.shape[0]):
        for b in range(bands):
            key = np.uint64(b + 1)
            for r in range(rows):
                key = mix64(key ^ np.uint64(signatures[i, b * rows + r])) + np.uint64(0x9E3779B97F4A7C15)
            keys[i, b] = key
    return keys


@kernel
def sort_by_key(keys: Keys) -> Ints:
    """Positions in ascending order of key, equal keys in ascending position: int64[N].

    Radix sort on the upper 33 bits (3 passes of 11), then insertion in the rare runs that differ below.
    """
    n = len(keys)
    order, other = np.arange(n), np.empty(n, np.int64)
    for shift in (31, 42, 53):
        slots = np.zeros(2049, np.int64)
        for i in range(n):
            slots[(keys[i] >> np.uint64(shift) & np.uint64(2047)) + 1] += 1
        for s in range(2048):
            slots[s + 1] += slots[s]
        for i in range(n):
            digit = keys[order[i]] >> np.uint64(shift) & np.uint64(2047)
            other[slots[digit]] = order[i]
            slots[digit] += 1
        order, other = other, order
    for i in range(1, n):
        document = order[i]
        j = i
        while j > 0 and keys[order[j - 1]] > keys[document]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = document
    return order


@kernel
def _maybe_repeated(keys: Keys) -> Ints:
    """Positions whose key occurs again, and a few more (about 1 in 8 of the others), ascending.

    Two bitmaps of 8 to 16 bits a key: bits seen, and bits seen twice.
    """
    n = len(keys)
    words = 1
    while words * 8 < n:
        words *= 2
    seen, twice, mask = np.zeros(words, np.uint64), np.zeros(words, np.uint64), np.uint64(words - 1)
    for i in range(n):
        bit = np.uint64(1) << (keys[i] & np.uint64(63))
        word = keys[i] >> np.uint64(6) & mask
        twice[word] |= seen[word] & bit
        seen[word] |= bit
    positions, count = np.empty(n, np.int64), 0
    for i in range(n):
        positions[count] = i
        count += twice[keys[i] >> np.uint64(6) & mask] >> (keys[i] & np.uint64(63)) & np.uint64(1) != 0
    return positions[:count].copy()


@kernel
def _runs(keys: Keys, order: Ints) -> tuple[Ints, Ints]:
    n = len(order)
    members, offsets = np.empty(n, np.int64), np.empty(n // 2 + 1, np.int64)
    filled = found = begin = 0
    offsets[0] = 0
    for i in range(1, n + 1):
        if i == n or keys[order[i]] != keys[order[begin]]:
            if i - begin > 1:
                members[filled : filled + i - begin] = order[begin:i]
                filled += i - begin
                found += 1
                offsets[found] = filled
            begin = i
    return members[:filled].copy(), offsets[: found + 1].copy()
