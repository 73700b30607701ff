"""Numbers over the words of each document: how many are on a list, the longest, the median length."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from corpusmill.kernels.words import WordTable


def count_among(table: WordTable, hashes: NDArray[np.uint64], known: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Words of each document that are on a short list, float64[D].

    Args:
        hashes: of the words of the table, uint64[T]. known: of the list.
    """
    counts = np.zeros(len(table), np.float64)
    _count_among(table.offsets, hashes, known, counts)
    return counts


def longest_words(table: WordTable) -> NDArray[np.float64]:
    """Characters of the longest word of each document; 0 without words."""
    found = np.zeros(len(table), np.float64)
    _longest(table.offsets, table.chars, found)
    return found


def median_chars(table: WordTable) -> NDArray[np.float64]:
    """Median characters of the words of each document; 0 without words."""
    found = np.zeros(len(table), np.float64)
    _medians(table.offsets, table.chars, found)
    return found


@numba.njit(nogil=True, cache=True)
def _count_among(
    offsets: NDArray[np.int64], hashes: NDArray[np.uint64], known: NDArray[np.uint64], counts: NDArray[np.float64]
) -> None:
    for d in range(len(offsets) - 1):
        count = 0
        for t in range(offsets[d], offsets[d + 1]):
            for k in range(len(known)):
                count += hashes[t] == known[k]
        counts[d] = count


@numba.njit(nogil=True, cache=True)
def _longest(offsets: NDArray[np.int64], chars: NDArray[np.int32], found: NDArray[np.float64]) -> None:
    for d in range(len(offsets) - 1):
        for t in range(offsets[d], offsets[d + 1]):
            found[d] = max(found[d], chars[t])


@numba.njit(nogil=True, cache=True)
def _medians(offsets: NDArray[np.int64], chars: NDArray[np.int32], found: NDArray[np.float64]) -> None:
    for d in range(len(offsets) - 1):
        count = offsets[d + 1] - offsets[d]
        if count:
            ordered = np.sort(chars[offsets[d] : offsets[d + 1]])
            found[d] = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
