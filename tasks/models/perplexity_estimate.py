"""N-grams of a token stream, counted and smoothed length by length.

What is read at random, and so must fit into memory, is 8 bytes a token (the stream, and the number of the n-gram that
ends at each token) and 12 bytes for each context of one length; all else is walked in order, block by block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corpusmill.kernels.perplexity.counts import (
    BEGIN_ID,
    counts_of_counts,
    in_suffix_order,
    ngrams_of,
    number_positions,
)
from corpusmill.kernels.perplexity.estimate import Discounts, bits_e6, context_sums, discounts, probabilities
from tasks.models.perplexity_stream import Scratch, Stream

BLOCK = 1 << 22
"""N-grams that are worked on at a time."""


@dataclass
class Ngrams:
    """All n-grams of one length, numbered in suffix order."""

    first: NDArray[np.uint32]
    """A position where it ends."""
    occurs: NDArray[np.uint32]
    probability: NDArray[np.float64]
    freed: NDArray[np.float64]
    """As a context, what it leaves to the order below, as a part of `total`; both empty for the longest n-grams."""
    total: NDArray[np.uint32]
    """Sum of the adjusted counts of what follows it; 0 where nothing does."""


class Estimate:
    """The n-grams of a stream, length by length."""

    def __init__(self, stream: Stream, order: int, prune: NDArray[np.int64], scratch: Scratch) -> None:
        self.stream, self.order, self.prune, self._scratch = stream, order, prune, scratch
        size = len(stream.tokens) - stream.facts["sentences"]
        self._positions = scratch.array(size, np.uint32)
        self._shared, self._depth = scratch.array(size, np.uint8), scratch.array(size, np.uint8)
        self._parts: list[slice] = []
        self.seen = np.zeros((order, 6), np.int64)
        done = 0
        for positions, shared, depth in in_suffix_order(stream.tokens, len(stream.hashes), order):
            part = slice(done, done + len(positions))
            self._positions[part], self._shared[part], self._depth[part] = positions, shared, depth
            counts_of_counts(shared, depth, order, prune, self.seen)
            self._parts.append(part)
            done = part.stop
            scratch.release()
        self.discounts: list[Discounts] = [discounts(row) for row in self.seen]
        self.unknown_e6 = 0

    def lengths(self) -> Iterator[Ngrams]:
        """Single words first; each with the weights it has as a context.

        The n-grams of single words end with "<s>", which is a context but never predicted.
        """
        numbers = np.zeros(len(self.stream.tokens), np.uint32)
        words = self.stream.facts["vocabulary"] + 2  # </s> and the unknown word too
        shorter = Ngrams(*_none(), np.array([1 / words]), np.zeros(1), np.zeros(1, np.uint32))
        for k in range(1, self.order + 1):
            made = self._length(k, numbers, shorter)
            if k == self.order:
                numbers = np.zeros(0, np.uint32)  # all contexts are summed up: who writes n-grams needs the memory
            if k > 1:
                yield shorter
            else:
                weights = bits_e6(shorter.freed / shorter.total / words)
                self.unknown_e6 = int(weights[0])
            shorter = made
            if k < self.order:
                self._number(k, numbers)
        yield shorter

    def _length(self, k: int, numbers: NDArray[np.uint32], shorter: Ngrams) -> Ngrams:
        """N-grams of length k; fills the sums of their contexts."""
        count, array = int(self.seen[k - 1, 0]), self._scratch.array
        first, occurs, adjusted, parents = (array(count, np.uint32) for _ in range(4))
        done = parent = 0
        for part in self._parts:
            columns = (column[done:] for column in (first, occurs, adjusted, parents))
            sorted_part = (self._positions[part], self._shared[part], self._depth[part])
            found, parent = ngrams_of(*sorted_part, k, parent, *columns)
            done += found
            self._scratch.release()
        discount, prune = np.array(self.discounts[k - 1].values), int(self.prune[k - 1])
        total, freed = shorter.total, shorter.freed
        for block in self._blocks(count):
            context_sums(first[block], occurs[block], adjusted[block], numbers, discount, prune, total, freed)
        extra = int(k == 1)  # <s>
        probability = array(count + extra, np.float64)
        for block in self._blocks(count):
            ngrams = (first[block], adjusted[block], parents[block])
            probabilities(*ngrams, numbers, discount, total, freed, shorter.probability, probability[block])
        if extra:
            probability[count] = 1.0
            first, occurs = (np.append(column, np.uint32(value)) for column, value in ((first, 0), (occurs, 1)))
        following = 0 if k == self.order else count + extra
        return Ngrams(first, occurs, probability, np.zeros(following), np.zeros(following, np.uint32))

    def _blocks(self, count: int) -> Iterator[slice]:
        """Ranges of n-grams; the memory for each is let go of after it."""
        for begin in range(0, count, BLOCK):
            yield slice(begin, min(begin + BLOCK, count))
            self._scratch.release()

    def _number(self, k: int, numbers: NDArray[np.uint32]) -> None:
        number = 0
        for part in self._parts:
            sorted_part = (self._positions[part], self._shared[part], self._depth[part])
            number = number_positions(*sorted_part, k, number, numbers)
            self._scratch.release()
        if k == 1:
            numbers[self.stream.tokens == BEGIN_ID] = number


def _none() -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    return np.zeros(0, np.uint32), np.zeros(0, np.uint32)
