"""Counting n-grams of a token stream by sorting: positions in the order of the words that end there, last word first.

In that suffix order the occurrences of an n-gram are neighbours for every n at once, so the counts of all orders are
sequential scans of two bytes a token: how many words a position shares with the one before it, and how many words there
are before the sentence begins. No table of n-grams is held. Positions are sorted part by part (ranges of last words),
so the sort needs memory for one part (Heafield et al. 2013, who sort n-grams on disk, use the same order).

A token stream is uint32[T]: BEGIN_ID, the words of a sentence, END_ID, and so on; words are numbered from FIRST_WORD.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from corpusmill.compiled import inner, kernel

NOTHING, BEGIN_ID, END_ID, FIRST_WORD = 0, 1, 2, 3
PART = 1 << 24
"""Positions sorted at a time, unless one word alone has more: 20 bytes each while they are sorted."""

Ids = NDArray[np.uint32]
Codes = NDArray[np.uint8]


def in_suffix_order(tokens: Ids, words: int, order: int, part: int = PART) -> Iterator[tuple[Ids, Codes, Codes]]:
    """Positions of all tokens but BEGIN_ID in suffix order, part by part.

    Args:
        tokens: the stream.
        words: one more than the greatest id in it.
        order: words of the longest n-gram.
        part: positions of a part.

    Yields:
        positions; how many words each shares with the one before it (0 at the start of a part, at most `order`); its
        depth: the words from the beginning of its sentence up to it, BEGIN_ID among them, at most `order`.
    """
    counts = _histogram(tokens, words)
    counts[BEGIN_ID] = 0
    room = np.zeros(words + 1, np.int64)
    first = END_ID
    while first < words:
        after, size = first, 0
        while after < words and (after == first or size + counts[after] <= part):
            size += int(counts[after])
            after += 1
        if size:
            positions = np.empty(size, np.uint32)
            _gather(tokens, first, after, positions)
            spare = np.empty_like(positions)
            for back in range(order - 1, -1, -1):
                _sort_by(tokens, positions, back, room, spare)
                positions, spare = spare, positions
            shared, depth = np.empty(size, np.uint8), np.empty(size, np.uint8)
            _codes(tokens, positions, order, shared, depth)
            yield positions, shared, depth
        first = after


@kernel
def _histogram(tokens: Ids, words: int) -> NDArray[np.int64]:
    counts = np.zeros(words, np.int64)
    for i in range(len(tokens)):
        counts[tokens[i]] += 1
    return counts


@kernel
def _gather(tokens: Ids, first: int, after: int, positions: Ids) -> None:
    n = 0
    for i in range(len(tokens)):
        if first <= tokens[i] < after:
            positions[n] = i
            n += 1


@inner(forceinline=True)
def _word(tokens: Ids, position: int, back: int) -> int:
    """The word `back` before a position; NOTHING beyond the beginning of its sentence."""
    for k in range(back):
        if tokens[position - k] == BEGIN_ID:
            return NOTHING
    return tokens[position - back]


@kernel
def _sort_by(tokens: Ids, positions: Ids, back: int, room: NDArray[np.int64], out: Ids) -> None:
    """Positions by the word `back` before each, into `out`; equal ones keep their order (a counting sort)."""
    room[:] = 0
    for i in range(len(positions)):
        room[_word(tokens, positions[i], back) + 1] += 1
    for w in range(1, len(room)):
        room[w] += room[w - 1]
    for i in range(len(positions)):
        w = _word(tokens, positions[i], back)
        out[room[w]] = positions[i]
        room[w] += 1


@kernel
def _codes(tokens: Ids, positions: Ids, order: int, shared: Codes, depth: Codes) -> None:
    for s in range(len(positions)):
        here = np.int64(positions[s])
        deep = 1
        while deep < order and tokens[here - deep + 1] != BEGIN_ID:
            deep += 1
        depth[s] = deep
        same = 0
        if s > 0:
            before = np.int64(positions[s - 1])
            while same < deep and same < depth[s - 1] and tokens[here - same] == tokens[before - same]:
                same += 1
        shared[s] = same


@kernel
def counts_of_counts(
    shared: Codes, depth: Codes, order: int, prune: NDArray[np.int64], seen: NDArray[np.int64]
) -> None:
    """Add the n-grams of one part to `seen`, int64[order, 6]: of each length how many there are, how many have the
    adjusted counts 1, 2, 3 and 4, and how many are kept.

    The adjusted count of an n-gram is how many different words stand before it; it is how often it occurs where it has
    the full length or begins a sentence (Kneser, Ney 1995).

    Args:
        prune: int64[order]: n-grams that occur so often or less are not kept.
    """
    occurs, adjusted = np.zeros(order + 1, np.int64), np.zeros(order + 1, np.int64)
    for s in range(len(shared) + 1):
        same = np.int64(shared[s]) if s < len(shared) else 0
        deep = np.int64(depth[s]) if s < len(shared) else 0
        for k in range(same + 1, order + 1):
            if occurs[k] > 0:
                seen[k - 1, 0] += 1
                if adjusted[k] <= 4:
                    seen[k - 1, adjusted[k]] += 1
                seen[k - 1, 5] += int(occurs[k] > prune[k - 1])
                occurs[k] = 0
                adjusted[k] = 0
        for k in range(1, deep + 1):
            occurs[k] += 1
            if k == deep or same < k + 1:  # of full length, or begins a sentence; else a new word stands before it
                adjusted[k] += 1


@kernel
def ngrams_of(
    positions: Ids,
    shared: Codes,
    depth: Codes,
    k: int,
    parent: int,
    first: Ids,
    occurs: Ids,
    adjusted: Ids,
    parents: Ids,
) -> tuple[int, int]:
    """The n-grams of length k of one part, in suffix order.

    Args:
        positions, shared, depth: the part.
        parent: number of the part's first (k-1)-gram among those of all parts.
        first, occurs, adjusted, parents: filled: a position where it ends, how often it occurs, its adjusted count, the
            number of its last k - 1 words.

    Returns:
        how many k-grams there are, and the number of the first (k-1)-gram of the next part.
    """
    n, above = -1, parent - 1
    for s in range(len(shared)):
        same, deep = np.int64(shared[s]), np.int64(depth[s])
        above += int(same < k - 1 <= deep)
        if deep < k:
            continue
        if same < k:
            n += 1
            first[n], occurs[n], adjusted[n], parents[n] = positions[s], 0, 0, max(above, 0)
        occurs[n] += 1
        adjusted[n] += int(deep == k or same < k + 1)
    return n + 1, above + 1


@kernel
def number_positions(positions: Ids, shared: Codes, depth: Codes, k: int, number: int, numbers: Ids) -> int:
    """Write to `numbers`, uint32[T], the number of the n-gram of length k that ends at each position of one part.

    Args:
        number: of the part's first k-gram.

    Returns:
        the number of the first k-gram of the next part.
    """
    number -= 1
    for s in range(len(shared)):
        if depth[s] >= k:
            number += int(shared[s] < k)
            numbers[positions[s]] = number
    return number + 1
