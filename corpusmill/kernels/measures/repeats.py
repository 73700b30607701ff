"""Repeated word n-grams of documents, n = 2 to 10: the characters that the Gopher repetition rules look at.

Definitions are those of datatrove's filter, on the tokens of the word table (symbols count, case counts):

* top n-gram: the most frequent one (the earliest of equals), its characters with one space between tokens, times its
  count, even where that is 1;
* duplicated n-grams: read from left to right; an n-gram met before adds its characters (without spaces) and is stepped
  over whole; any other is noted, and reading goes on at the next token.

One deviation: n-grams compare token by token, where datatrove joins the tokens of duplicated n-grams without a
separator, so that "1 23" equals "12 3" there.

Method: an n-gram is identified by its first place. A pair of tokens is looked for in a table, open addressing, of first
places; longer ones are pairs too, of the (n - 1)-grams at two places, and can only repeat where both of these do. So
each n looks at the places that n - 1 left, soon none, and no n-gram is hashed or compared as a whole. With four slots a
pair, and what is found taken without a branch, the processor seldom guesses wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from corpusmill.compiled import inner, kernel
from corpusmill.kernels.bytes.bytehash import U
from corpusmill.kernels.words.table import WordTable

if TYPE_CHECKING:
    from corpusmill.kernels.measures.slices import Slice

TOP_NGRAMS = (2, 3, 4)
DUP_NGRAMS = (5, 6, 7, 8, 9, 10)
MEASURES = {
    "top_{n}gram_char_ratio": {
        "n": (2, 3, 4),
        "family": "gopher",
        "definition": "datatrove",
        "of": "top_{n}gram_chars / chars",
        "says": "characters of the most frequent n-gram with blanks, times its count, even if that is 1",
    },
    "dup_{n}gram_char_ratio": {
        "n": (5, 6, 7, 8, 9, 10),
        "family": "gopher",
        "definition": "datatrove",
        "of": "dup_{n}gram_chars / chars",
        "says": "characters of repeated n-grams; read from left to right, each copy skipped as a whole",
    },
}

COUNTS = (*(f"top_{n}gram_chars" for n in TOP_NGRAMS), *(f"dup_{n}gram_chars" for n in DUP_NGRAMS))
"""Columns of `count_repeats`."""

_BASE = U(0x9E3779B97F4A7C15)
_MET = np.int32(0x7FFFFFFF)
"""In place of how often an n-gram occurs, where it was met already."""


def count(piece: Slice) -> NDArray[np.int64]:
    """Counts of each document, int64[D, len(COUNTS)]."""
    return count_repeats(piece.table)


def count_repeats(table: WordTable) -> NDArray[np.int64]:
    """Characters of repeated n-grams of each document, int64[D, len(COUNTS)]."""
    counts = np.zeros((len(table), len(COUNTS)), np.int64)
    longest = int(np.diff(table.offsets).max(initial=0))
    heads = np.empty(1 << max(4, (4 * longest).bit_length()), np.int32)
    room = np.empty((5, longest + 1), np.int32)
    _count(table.offsets, table.exact, table.chars, heads, room[0], room[1], room[2], room[3], room[4], counts)
    return counts


@inner(forceinline=True)
def _cleared(heads: NDArray[np.int32], pairs: U) -> U:
    """Empty a table for a number of pairs, four slots or more each; its slots less one."""
    slots = U(16)
    while slots < U(4) * pairs:
        slots *= U(2)
    heads[:slots] = 0
    return slots - U(1)


@inner(forceinline=True)
def _first(heads: NDArray[np.int32], slot: U, i: U) -> U:
    """The first place in a slot, or the place itself where it is empty; without a branch, which none could foretell."""
    head = U(heads[slot])
    return head - U(1) + U(head == U(0)) * (i + U(1))


@inner(forceinline=True)
def _pairs(
    exact: NDArray[np.uint64],
    begin: U,
    words: U,
    heads: NDArray[np.int32],
    group: NDArray[np.int32],
    times: NDArray[np.int32],
) -> None:
    """First place of the pair of tokens at each place, and at first places how often it occurs."""
    mask = _cleared(heads, words)
    i, last = U(0), words - U(1)
    while i < last:
        one, two = exact[begin + i], exact[begin + i + U(1)]
        slot = ((one * _BASE + two) >> U(20)) & mask
        first = _first(heads, slot, i)
        while exact[begin + first] != one or exact[begin + first + U(1)] != two:
            slot = (slot + U(1)) & mask
            first = _first(heads, slot, i)
        heads[slot] = first + U(1)
        times[i] = 0
        times[first] += 1
        group[i] = first
        i += U(1)


@inner(forceinline=True)
def _longer(
    exact: NDArray[np.uint64],
    last: U,
    places: NDArray[np.int32],
    found: U,
    heads: NDArray[np.int32],
    rest: NDArray[np.int32],
    shorter: NDArray[np.int32],
    group: NDArray[np.int32],
    times: NDArray[np.int32],
) -> None:
    """As `_pairs`, of pairs of shorter n-grams at some places; `last`: where the last token of place 0 is.

    Most need no table: they end with the same token as the n-gram at the first place of their shorter one.
    """
    left, j = U(0), U(0)
    while j < found:
        i = U(places[j])
        first = U(shorter[i])
        same = U(exact[last + i] == exact[last + first])
        times[i] = 0
        times[first] += same
        group[i] = first
        rest[left] = i
        left += U(1) - same
        j += U(1)
    mask = _cleared(heads, left)
    j = U(0)
    while j < left:
        i = U(rest[j])
        one, two = shorter[i], shorter[i + U(1)]
        slot = ((U(one) * _BASE + U(two)) * _BASE >> U(32)) & mask
        first = _first(heads, slot, i)
        while shorter[first] != one or shorter[first + U(1)] != two:
            slot = (slot + U(1)) & mask
            first = _first(heads, slot, i)
        heads[slot] = first + U(1)
        times[first] += 1
        group[i] = first
        j += U(1)


@kernel
def _count(
    offsets: NDArray[np.int64],
    exact: NDArray[np.uint64],
    chars: NDArray[np.int32],
    heads: NDArray[np.int32],
    places: NDArray[np.int32],
    rest: NDArray[np.int32],
    group: NDArray[np.int32],
    shorter: NDArray[np.int32],
    times: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> None:
    for d in range(len(offsets) - 1):
        begin, words = U(offsets[d]), U(offsets[d + 1]) - U(offsets[d])
        if words < U(2):
            continue
        _pairs(exact, begin, words, heads, group, times)
        found, i = U(0), U(0)
        while i < words - U(1):
            places[found] = i
            found += U(times[U(group[i])] > 1)
            i += U(1)
        for n in range(2, 11):
            size = U(n)
            if words < size or (found == U(0) and n > 4):
                break
            if n > 2:
                group, shorter = shorter, group
                _longer(exact, begin + size - U(1), places, found, heads, rest, shorter, group, times)
                found = _repeated(places, group, times, found)
            if n < 5:
                counts[d, n - 2] = _top(chars, begin, size, places, found, group, times)
            else:
                counts[d, n - 2] = _duplicated(chars, begin, size, places, found, group, times)
            found = _neighbours(places, found)


@inner(forceinline=True)
def _chars(chars: NDArray[np.int32], at: U, size: U) -> int:
    """Characters of the n-gram at a place."""
    total = 0
    for k in range(size):
        total += chars[at + U(k)]
    return total


@inner(forceinline=True)
def _top(
    chars: NDArray[np.int32],
    begin: U,
    size: U,
    places: NDArray[np.int32],
    found: U,
    group: NDArray[np.int32],
    times: NDArray[np.int32],
) -> int:
    most, earliest, j = 1, U(0), U(0)
    while j < found:  # the earliest of equals
        first = U(group[U(places[j])])
        if times[first] > most:
            most, earliest = times[first], first
        j += U(1)
    return most * (_chars(chars, begin + earliest, size) + int(size) - 1)


@inner(forceinline=True)
def _duplicated(
    chars: NDArray[np.int32],
    begin: U,
    size: U,
    places: NDArray[np.int32],
    found: U,
    group: NDArray[np.int32],
    times: NDArray[np.int32],
) -> int:
    done, j, total = U(0), U(0), 0
    while j < found:
        i = U(places[j])
        first = U(group[i])
        j += U(1)
        if i >= done:
            if times[first] == _MET:
                total += _chars(chars, begin + i, size)
                done = i + size
            times[first] = _MET
    return total


@inner(forceinline=True)
def _repeated(places: NDArray[np.int32], group: NDArray[np.int32], times: NDArray[np.int32], found: U) -> U:
    """Keep the places whose n-gram occurs twice or more; how many."""
    kept, j = U(0), U(0)
    while j < found:
        places[kept] = places[j]
        kept += U(times[U(group[U(places[j])])] > 1)
        j += U(1)
    return kept


@inner(forceinline=True)
def _neighbours(places: NDArray[np.int32], found: U) -> U:
    """Keep the places before a next place; how many."""
    kept, j = U(0), U(1)
    while j < found:
        i, after = places[j - U(1)], places[j]
        places[kept] = i
        kept += U(after == i + 1)
        j += U(1)
    return kept
