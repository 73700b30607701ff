"""How many different stop words of each of several languages a text has.

A stop word is matched as the word table cuts it, case and all: "für" is one token, Thai "และ" three that touch. So
lists for scripts written without spaces work too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.compiled import kernel
from corpusmill.kernels.bytes.bytehash import U
from corpusmill.kernels.words.table import WordTable, word_table


def count_stop_words(table: WordTable, lists: Sequence[Sequence[str]]) -> NDArray[np.int64]:
    """Different stop words of each list in each document, int64[D, len(lists)].

    Raises:
        ValueError: a stop word without a token.
    """
    counts = np.zeros((len(table), len(lists)), np.int64)
    words = sorted({word for each in lists for word in each})
    if not words or not len(table):
        return counts
    cut = word_table(pa.array(words, pa.large_string()))
    if (empty := np.flatnonzero(np.diff(cut.offsets) == 0)).size:
        raise ValueError(f"stop word {words[int(empty[0])]!r} has no word in it")
    number = {word: i for i, word in enumerate(words)}
    member = np.zeros((len(words), len(lists)), np.int64)
    for column, each in enumerate(lists):
        member[[number[word] for word in each], column] = 1
    heads, follow = _by_first_token(cut)
    seen = np.full(len(words), -1, np.int64)
    _count(
        table.offsets, table.exact, table.start, table.stop, cut.offsets, cut.exact, heads, follow, member, seen, counts
    )
    return counts


def _by_first_token(cut: WordTable) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Open addressing by the hash of the first token: first word there, and the next with the same slot, or -1."""
    slots = 1 << (4 * len(cut)).bit_length()
    heads, follow = np.full(slots, -1, np.int64), np.full(len(cut), -1, np.int64)
    for i, at in enumerate(cut.offsets[:-1]):
        slot = int(cut.exact[at]) & (slots - 1)
        follow[i], heads[slot] = heads[slot], i
    return heads, follow


@kernel
def _count(
    offsets: NDArray[np.int64],
    exact: NDArray[np.uint64],
    start: NDArray[np.int32],
    stop: NDArray[np.int32],
    word_offsets: NDArray[np.int64],
    word_exact: NDArray[np.uint64],
    heads: NDArray[np.int64],
    follow: NDArray[np.int64],
    member: NDArray[np.int64],
    seen: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> None:
    mask = U(len(heads) - 1)
    for d in range(len(offsets) - 1):
        for t in range(offsets[d], offsets[d + 1]):
            word = heads[exact[t] & mask]
            while word >= 0:
                size = word_offsets[word + 1] - word_offsets[word]
                same = seen[word] != d and t + size <= offsets[d + 1]
                k = 0
                while same and k < size:
                    same = exact[t + k] == word_exact[word_offsets[word] + k]
                    same = same and (k == 0 or start[t + k] == stop[t + k - 1])
                    k += 1
                if same:
                    seen[word] = d
                    for column in range(member.shape[1]):
                        counts[d, column] += member[word, column]
                word = follow[word]
