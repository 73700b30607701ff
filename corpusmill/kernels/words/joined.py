"""Words cut at blanks, made from the word table: tokens with nothing between them are one word ("don't." and
"well-known" are one each, "a - b" is three). What separates tokens (white space, controls, U+200B) separates words.

It takes a seventh of the time of the word table; cutting the bytes again (`split_table`) takes longer than that table.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from corpusmill.compiled import kernel
from corpusmill.kernels.bytes.bytehash import U
from corpusmill.kernels.words.table import WordTable

_BASE = U(0x9E3779B97F4A7C15)


def joined_table(table: WordTable) -> WordTable:
    """Words between blanks of each document, with their places and characters.

    A word of one token has that token's `exact` hash; `folded` is the same as `exact`; flags: what any token has.
    """
    offsets = np.empty(len(table.offsets), np.int64)
    most = len(table.start)
    start, stop, chars = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.int32)
    exact, flags = np.empty(most, np.uint64), np.empty(most, np.uint8)
    n = int(
        _join(
            *(table.offsets, table.start, table.stop, table.chars, table.exact, table.flags),
            *(offsets, start, stop, chars, exact, flags),
        )
    )
    return WordTable(offsets, start[:n], stop[:n], chars[:n], exact[:n], exact[:n], flags[:n])


@kernel
def _join(
    offsets: NDArray[np.int64],
    start: NDArray[np.int32],
    stop: NDArray[np.int32],
    chars: NDArray[np.int32],
    exact: NDArray[np.uint64],
    flags: NDArray[np.uint8],
    word_offsets: NDArray[np.int64],
    word_start: NDArray[np.int32],
    word_stop: NDArray[np.int32],
    word_chars: NDArray[np.int32],
    word_exact: NDArray[np.uint64],
    word_flags: NDArray[np.uint8],
) -> U:
    n = U(0)  # words begun; without a branch: whether a token begins one is not to be foreseen
    for d in range(len(offsets) - 1):
        word_offsets[d] = n
        before, begin, length, key, facts = U(0xFFFFFFFF), U(0), U(0), U(0), U(0)
        t, end = U(offsets[d]), U(offsets[d + 1])
        while t < end:
            first = U(U(start[t]) != before)
            rest = first - U(1)  # all bits where the token goes on with a word
            n += first
            begin = (begin & rest) | (U(start[t]) & ~rest)
            before = U(stop[t])
            length = (length & rest) + U(chars[t])
            key = ((key * _BASE) & rest) + exact[t]
            facts = (facts & rest) | U(flags[t])
            w = n - U(1)
            word_start[w], word_stop[w], word_chars[w], word_exact[w], word_flags[w] = begin, before, length, key, facts
            t += U(1)
    word_offsets[len(offsets) - 1] = n
    return n
