"""Repeated word n-grams of documents, n = 2 to 10: the characters that the Gopher repetition rules look at.

Definitions are those of datatrove's filter, on the tokens of the word table (symbols count, case counts):

* top n-gram: the most frequent one (the earliest of equals), its characters with one space between tokens, times its
  count, even where that is 1;
* duplicated n-grams: read from left to right; an n-gram met before adds its characters (without spaces) and is stepped
  over whole; any other is noted, and reading goes on at the next token.

One deviation: n-grams compare token by token, where datatrove joins the tokens of duplicated n-grams without a
separator, so that "1 23" equals "12 3" there.

Method: the hash of any n-gram from prefix sums of a polynomial (Rabin-Karp modulo 2**64). An n-gram can only repeat
where its first n - 1 tokens do, so each n looks at the places that n - 1 left, soon a few.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from corpusmill.kernels.bytehash import U
from corpusmill.kernels.words import WordTable

TOP_NGRAMS = (2, 3, 4)
DUP_NGRAMS = (5, 6, 7, 8, 9, 10)
REPEAT_COUNTS = (*(f"top_{n}gram_chars" for n in TOP_NGRAMS), *(f"dup_{n}gram_chars" for n in DUP_NGRAMS))
"""Columns of `count_repeats`."""

_BASE = U(0x9E3779B97F4A7C15)


def count_repeats(table: WordTable) -> NDArray[np.int64]:
    """Characters of repeated n-grams of each document, int64[D, len(REPEAT_COUNTS)]."""
    counts = np.zeros((len(table), len(REPEAT_COUNTS)), np.int64)
    longest = int(np.diff(table.offsets).max(initial=0))
    slots = 1 << max(4, (2 * longest).bit_length())
    _count(
        table.offsets,
        table.exact,
        table.chars,
        np.empty(longest + 1, np.uint64),
        np.empty(longest + 1, np.int64),
        np.empty(longest + 1, np.int32),
        np.empty(longest + 1, np.int32),
        np.empty(slots, np.uint64),
        np.zeros(slots, np.int64),
        np.empty(slots, np.int32),
        np.empty(slots, np.int32),
        counts,
    )
    return counts


@numba.njit(nogil=True, cache=True)
def _count(
    offsets: NDArray[np.int64],
    exact: NDArray[np.uint64],
    chars: NDArray[np.int32],
    prefix: NDArray[np.uint64],
    length: NDArray[np.int64],
    places: NDArray[np.int32],
    slot_at: NDArray[np.int32],
    keys: NDArray[np.uint64],
    stamps: NDArray[np.int64],
    times: NDArray[np.int32],
    first: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> None:
    stamp = 0  # a slot is used where it bears the current stamp: nothing is cleared between documents and n
    for d in range(len(offsets) - 1):
        begin, words = U(offsets[d]), U(offsets[d + 1]) - U(offsets[d])
        prefix[0], length[0] = U(0), 0
        i = U(0)
        while i < words:
            prefix[i + U(1)] = prefix[i] * _BASE + exact[begin + i]
            length[i + U(1)] = length[i] + chars[begin + i]
            places[i] = i
            i += U(1)
        slots = U(16)
        while slots < U(2) * words:
            slots *= U(2)
        found = words  # places at which the (n - 1)-gram is repeated
        power = _BASE
        for n in range(2, 11):
            power *= _BASE
            size = U(n)
            if words < size:
                break
            stamp += 1
            most, earliest = 1, U(0)
            j = U(0)
            while j < found:
                i = U(places[j])
                if i + size > words:
                    found = j
                    break
                key = prefix[i + size] - prefix[i] * power
                slot = (key ^ (key >> U(32))) & (slots - U(1))
                while stamps[slot] == stamp and keys[slot] != key:
                    slot = (slot + U(1)) & (slots - U(1))
                if stamps[slot] != stamp:
                    stamps[slot], keys[slot], times[slot], first[slot] = stamp, key, 1, i
                else:
                    times[slot] += 1
                    if times[slot] > most or (times[slot] == most and U(first[slot]) < earliest):
                        most, earliest = times[slot], U(first[slot])
                slot_at[j] = slot
                j += U(1)
            kept, done, dup_chars = U(0), U(0), 0
            j = U(0)
            while j < found:
                i, slot = U(places[j]), U(slot_at[j])
                j += U(1)
                if times[slot] < 2:
                    continue
                places[kept] = i
                kept += U(1)
                if i >= done:
                    if first[slot] < 0:
                        dup_chars += length[i + size] - length[i]
                        done = i + size
                    first[slot] = -1  # met
            found = kept
            if n < 5:
                counts[d, n - 2] = most * (length[earliest + size] - length[earliest] + n - 1)
            else:
                counts[d, n - 2] = dup_chars
