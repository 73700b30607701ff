"""A slice of texts with what several families of measures need of it, each computed once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.kernels.measures import lines
from corpusmill.kernels.measures.feed_lines import FEED_COUNTS, count_feed_lines
from corpusmill.kernels.words.joined import joined_table
from corpusmill.kernels.words.split import normal_table, split_table
from corpusmill.kernels.words.table import Scratch, WordTable, text_buffers, word_table


class Slice:
    """D texts.

    Args:
        table: their words, where they are known already.
        scratch: for the words, where they are not: the next slice may have the same.
    """

    def __init__(
        self, text: pa.LargeStringArray, table: WordTable | None = None, scratch: Scratch | None = None
    ) -> None:
        self.text = text
        self._scratch = scratch
        self._counts: dict[str, dict[str, NDArray[np.int64]]] = {}
        if table is not None:
            self.table = table

    @cached_property
    def table(self) -> WordTable:
        """Tokens of the word table."""
        return word_table(self.text, self._scratch)

    @cached_property
    def split(self) -> WordTable:
        """Words of `str.split`."""
        return split_table(self.text)

    @cached_property
    def joined(self) -> WordTable:
        """Tokens with no blank between them put together."""
        return joined_table(self.table)

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
        return self.lines["chars"]

    @property
    def lines(self) -> dict[str, NDArray[np.int64]]:
        """Counts over lines and paragraphs, each int64[D]."""
        return self.counts(lines)

    def counts(self, kernel: Any) -> dict[str, NDArray[np.int64]]:
        """What a module of this folder counts (its COUNTS), each int64[D]."""
        if kernel.__name__ not in self._counts:
            self._counts[kernel.__name__] = _named(kernel.COUNTS, kernel.count(self))
        return self._counts[kernel.__name__]

    def feed_lines(self, style: int, paragraphs: bool = False) -> dict[str, NDArray[np.int64]]:
        """Counts over lines or paragraphs in a style of `feed_lines`, each int64[D]."""
        return _named(FEED_COUNTS, count_feed_lines(self.text, style, paragraphs))


def _named(names: Sequence[str], counts: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    return {name: counts[:, i] for i, name in enumerate(names)}


def ratio(part: NDArray, whole: NDArray) -> NDArray[np.float64]:
    """Quotients; where the whole is 0, so is the part, and the ratio."""
    return part / np.maximum(whole, 1)


def sums(table: WordTable, values: NDArray) -> NDArray[np.int64]:
    """Sum over the words of each document of whole numbers, one a word: int64[D]."""
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(values, dtype=np.int64)])
    return before[table.offsets[1:]] - before[table.offsets[:-1]]
