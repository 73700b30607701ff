"""Repeated word n-grams of documents, n = 2 to 10: the characters that the Gopher repetition rules look at.

Definitions are those of datatrove's filter, on the tokens of the word table (symbols count, case counts):

* top n-gram: the most frequent one (the earliest of equals), its characters with one space between tokens, times its
  count, even where that is 1;
* duplicated n-grams: read from left to right; an n-gram met before adds its characters (without spaces) and is stepped
  over whole; any other is noted, and reading goes on at the next token.

One deviation: n-grams compare token by token, where datatrove joins the tokens of duplicated n-grams without a
separator, so that "1 23" equals "12 3" there.

Method: the hash of any n-gram from prefix sums of a polynomial (Rabin-Karp modulo 2**64). An n-gram can only repeat
where the two of n - 1 tokens in it do, so each n looks at the places that n - 1 left, soon none. Before n = 2 a filter
of one byte a slot leaves out most places: two equal pairs share a slot, so a pair alone in its slot occurs once.
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
_FILTER_SLOTS = 8
"""Slots of the filter a token: one in eight pairs that occur once shares one."""
_MOST_FILTER_SLOTS = 1 << 18
"""It stays in the processor's second cache."""


def count_repeats(table: WordTable) -> NDArray[np.int64]:
    """Characters of repeated n-grams of each document, int64[D, len(REPEAT_COUNTS)]."""
    counts = np.zeros((len(table), len(REPEAT_COUNTS)), np.int64)
    longest = int(np.diff(table.offsets).max(initial=0))
    _count(
        table.offsets,
        table.exact,
        table.chars,
        np.empty(min(_MOST_FILTER_SLOTS, 1 << (_FILTER_SLOTS * longest).bit_length()), np.uint8),
        np.empty((2, longest + 1), np.uint64),
        np.empty(longest + 1, np.int64),
        np.empty((7, longest + 1), np.int32),
        np.empty(1 << max(4, (4 * longest).bit_length()), np.int32),
        counts,
    )
    return counts


@numba.njit(nogil=True, cache=True)
def _pairs(
    exact: NDArray[np.uint64],
    begin: U,
    words: U,
    filter_slots: NDArray[np.uint8],
    places: NDArray[np.int32],
) -> U:
    """Places at which a pair of tokens may be one that occurs twice or more; how many."""
    slots = U(16)
    while slots < U(_FILTER_SLOTS) * words and slots < U(len(filter_slots)):
        slots *= U(2)
    slots = min(slots, U(len(filter_slots)))
    filter_slots[:slots] = 0
    mask = slots - U(1)
    i, last = begin, begin + words - U(1)
    while i < last:
        slot = (exact[i] * _BASE + exact[i + U(1)]) & mask
        seen = filter_slots[slot]
        filter_slots[slot] = np.uint8(1) | (seen << np.uint8(1))  # bit 1: a second one came
        i += U(1)
    found, i = U(0), begin
    while i < last:
        slot = (exact[i] * _BASE + exact[i + U(1)]) & mask
        places[found] = i - begin
        found += U(filter_slots[slot] > np.uint8(1))
        i += U(1)
    return found


@numba.njit(nogil=True, cache=True)
def _count(
    offsets: NDArray[np.int64],
    exact: NDArray[np.uint64],
    chars: NDArray[np.int32],
    filter_slots: NDArray[np.uint8],
    hashes: NDArray[np.uint64],
    length: NDArray[np.int64],
    room: NDArray[np.int32],
    heads: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> None:
    """Equal n-grams form a group. Groups are numbered in the order of their first places; `heads` is a table, open
    addressing, of group numbers by hash.

    An n-gram is told by two groups of n - 1: its own and that of the next place. Most members of a group go on as its
    first member does (`usual`): they need no look at the table.
    """
    prefix, keys = hashes[0], hashes[1]
    places, group_at, next_at = room[0], room[1], room[2]  # by candidate
    times, first, usual, heir = room[3], room[4], room[5], room[6]  # by group
    for d in range(len(offsets) - 1):
        begin, words = U(offsets[d]), U(offsets[d + 1]) - U(offsets[d])
        if words < U(2):
            continue
        found = _pairs(exact, begin, words, filter_slots, places)
        prefix[0], length[0] = U(0), 0
        i = U(0)
        while i < words:
            prefix[i + U(1)] = prefix[i] * _BASE + exact[begin + i]
            length[i + U(1)] = length[i] + chars[begin + i]
            i += U(1)
        power, groups = _BASE, U(0)
        for n in range(2, 11):
            power *= _BASE
            size = U(n)
            if words < size:
                break
            slots = U(16)
            while slots < U(2) * found:
                slots *= U(2)
            heads[:slots] = -1
            usual[:groups] = -1
            groups = U(0)
            j = U(0)
            while j < found:
                i = U(places[j])
                before = U(0)
                if n > 2:
                    before = U(group_at[j])
                    if usual[before] == next_at[j]:
                        group_at[j] = heir[before]
                        times[U(heir[before])] += 1
                        j += U(1)
                        continue
                    if usual[before] < 0:
                        usual[before], heir[before] = next_at[j], groups
                        group_at[j], times[groups], first[groups] = groups, 1, i
                        groups += U(1)
                        j += U(1)
                        continue
                key = prefix[i + size] - prefix[i] * power
                slot = (key ^ (key >> U(32))) & (slots - U(1))
                while heads[slot] >= 0 and keys[U(heads[slot])] != key:
                    slot = (slot + U(1)) & (slots - U(1))
                if heads[slot] < 0:
                    heads[slot], keys[groups], times[groups], first[groups] = groups, key, 0, i
                    groups += U(1)
                group_at[j] = heads[slot]
                times[U(heads[slot])] += 1
                j += U(1)
            if n < 5:
                most, group, j = 1, U(0), U(0)
                while j < groups:  # the earliest of equals
                    if times[j] > most:
                        most, group = times[j], j
                    j += U(1)
                earliest = U(first[group]) if most > 1 else U(0)
                counts[d, n - 2] = most * (length[earliest + size] - length[earliest] + n - 1)
            else:
                done, j, dup_chars = U(0), U(0), 0
                while j < found:
                    i, group = U(places[j]), U(group_at[j])
                    j += U(1)
                    if i >= done and times[group] > 1:
                        if first[group] < 0:
                            dup_chars += length[i + size] - length[i]
                            done = i + size
                        first[group] = -1  # met
                counts[d, n - 2] = dup_chars
            found = _neighbours(places, group_at, next_at, times, found)


@numba.njit(nogil=True, cache=True)
def _neighbours(
    places: NDArray[np.int32],
    group_at: NDArray[np.int32],
    next_at: NDArray[np.int32],
    times: NDArray[np.int32],
    found: U,
) -> U:
    """Keep the candidates whose n-gram and the one at the next place are both repeated; how many."""
    kept, j = U(0), U(1)
    while j < found:
        i, group, after = places[j - U(1)], group_at[j - U(1)], group_at[j]
        places[kept], group_at[kept], next_at[kept] = i, group, after
        both = (places[j] == i + 1) & (times[U(group)] > 1) & (times[U(after)] > 1)
        kept += U(both)
        j += U(1)
    return kept
