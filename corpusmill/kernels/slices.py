"""A slice of texts with what several families of measures need of it, each computed once."""

from __future__ import annotations

from functools import cached_property

import numba
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.kernels.feed_lines import FEED_COUNTS, count_feed_lines
from corpusmill.kernels.lines import LINE_COUNTS, count_lines
from corpusmill.kernels.split_words import normal_table, split_table
from corpusmill.kernels.words import WordTable, text_buffers, word_table


class Slice:
    """D texts."""

    def __init__(self, text: pa.LargeStringArray, table: WordTable | None = None) -> None:
        self.text = text
        if table is not None:
            self.table = table

    @cached_property
    def table(self) -> WordTable:
        """Tokens of the word table."""
        return word_table(self.text)

    @cached_property
    def split(self) -> WordTable:
        """Words between white space."""
        return split_table(self.text)

    @cached_property
    def normal(self) -> WordTable:
        """Normalised words between white space."""
        return normal_table(self.text)

    @cached_property
    def text_bytes(self) -> NDArray[np.int64]:
        """int64[D]."""
        return np.diff(text_buffers(self.text)[1])

    @property
    def chars(self) -> NDArray[np.int64]:
        """Characters of each text, int64[D]."""
        return self._sizes[:, 0]

    @property
    def line_feeds(self) -> NDArray[np.int64]:
        """Line feeds of each text, int64[D]."""
        return self._sizes[:, 1]

    @cached_property
    def _sizes(self) -> NDArray[np.int64]:
        data, bounds = text_buffers(self.text)
        counts = np.zeros((len(self.text), 2), np.int64)
        _count_sizes(data, bounds, counts)
        return counts

    @cached_property
    def lines(self) -> dict[str, NDArray[np.int64]]:
        """Counts over lines and paragraphs (LINE_COUNTS), each int64[D]."""
        counts = count_lines(self.text)
        return {name: counts[:, i] for i, name in enumerate(LINE_COUNTS)}

    def feed_lines(self, style: int, paragraphs: bool = False) -> dict[str, NDArray[np.int64]]:
        """Counts over lines or paragraphs in a style of `feed_lines`, each int64[D]."""
        counts = count_feed_lines(self.text, style, paragraphs)
        return {name: counts[:, i] for i, name in enumerate(FEED_COUNTS)}


def ratio(part: NDArray, whole: NDArray) -> NDArray[np.float64]:
    """Quotients; where the whole is 0, so is the part, and the ratio."""
    return part / np.maximum(whole, 1)


def sums(table: WordTable, values: NDArray) -> NDArray[np.int64]:
    """Sum over the words of each document of whole numbers, one a word: int64[D]."""
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(values, dtype=np.int64)])
    return before[table.offsets[1:]] - before[table.offsets[:-1]]


@numba.njit(nogil=True, cache=True)
def _count_sizes(data: NDArray[np.uint8], bounds: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
    for d in range(len(bounds) - 1):
        chars, feeds = 0, 0
        for byte in data[bounds[d] : bounds[d + 1]]:
            chars += (byte & 0xC0) != 0x80  # the first byte of each character
            feeds += byte == 0x0A
        counts[d, 0], counts[d, 1] = chars, feeds
