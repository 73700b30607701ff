"""Numbers over the words of each document: by kind, how many are on a list, the longest, the median length."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.compiled import inner, kernel
from corpusmill.kernels.bytes.bytehash import U, address_of
from corpusmill.kernels.bytes.bytemasks import bit_count, block, in_span
from corpusmill.kernels.words.table import HAS_LETTER, HAS_NON_PUNCTUATION, IS_WORD, WordTable, word_table

if TYPE_CHECKING:
    from corpusmill.kernels.measures.slices import Slice

STOP_WORDS = ("the", "be", "to", "of", "and", "that", "have", "with")
"""Rae et al. 2021, section A.1.1; compared as they stand, so "The" is none."""

MEASURES = {
    "word_count": {
        "family": "gopher",
        "definition": "datatrove",
        "of": "non_punctuation",
        "says": "tokens that are not only punctuation",
    },
    "mean_word_chars": {
        "family": "gopher",
        "definition": "datatrove",
        "of": "non_punctuation_chars / non_punctuation",
        "says": "mean characters of tokens that are not only punctuation",
    },
    "alpha_word_ratio": {
        "family": "gopher",
        "definition": "datatrove",
        "of": "alphabetic / tokens",
        "says": "tokens with a letter, per token",
    },
    "stop_word_count": {
        "family": "gopher",
        "definition": "datatrove",
        "of": "stop_words",
        "says": "distinct stop words, case-sensitive",
    },
}

COUNTS = (
    "tokens",  # words and symbols
    "words",  # no symbols
    "non_punctuation",  # tokens with a character that is not in datatrove's list of punctuation
    "non_punctuation_chars",  # and their characters
    "alphabetic",  # tokens with a letter
    "stop_words",  # different ones of STOP_WORDS
)
"""Columns of `count_tokens`."""

_WORD, _LETTER, _PLAIN = U(IS_WORD), U(HAS_LETTER), U(HAS_NON_PUNCTUATION)
_BYTE = U(0xFF)


def count(piece: Slice) -> NDArray[np.int64]:
    """Counts of each document, int64[D, len(COUNTS)]."""
    return count_tokens(piece.table)


def count_tokens(table: WordTable) -> NDArray[np.int64]:
    """Counts of each document, int64[D, len(COUNTS)]."""
    counts = np.zeros((len(table), len(COUNTS)), np.int64)
    _count_tokens(table.offsets, table.exact, table.chars, table.flags, address_of(table.flags), *_stop_words(), counts)
    return counts


@cache
def _stop_words() -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Hash and bit of each stop word, in the slot that the end of its hash names; other slots have no bit."""
    hashes = word_table(pa.array([" ".join(STOP_WORDS)], pa.large_string())).exact
    slots = np.uint64(2 * len(hashes))
    while len(np.unique(hashes % slots)) < len(hashes):
        slots *= np.uint64(2)
    keys, bits = np.zeros(slots, np.uint64), np.zeros(slots, np.uint64)
    keys[hashes % slots] = hashes
    bits[hashes % slots] = np.uint64(1) << np.arange(len(hashes), dtype=np.uint64)
    return keys, bits


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


@inner(forceinline=True)
def _with_bit(place: U, shift: U, keep: U, bit: U) -> U:
    """How many of a block of flags have a bit."""
    return bit_count((in_span(place, _BYTE - bit, _BYTE, U(1)) >> shift) & keep)


@kernel
def _count_tokens(
    offsets: NDArray[np.int64],
    exact: NDArray[np.uint64],
    chars: NDArray[np.int32],
    flags: NDArray[np.uint8],
    at_flags: U,
    keys: NDArray[np.uint64],
    bits: NDArray[np.uint64],
    counts: NDArray[np.int64],
) -> None:
    slots = U(len(keys) - 1)
    for d in range(len(offsets) - 1):
        words, plain, plain_chars, alphabetic, stops = U(0), U(0), U(0), U(0), U(0)
        at, end = at_flags + U(offsets[d]), at_flags + U(offsets[d + 1])
        while at < end:
            place, shift, keep = block(at, end)
            words += _with_bit(place, shift, keep, _WORD)
            plain += _with_bit(place, shift, keep, _PLAIN)
            alphabetic += _with_bit(place, shift, keep, _LETTER)
            at += U(64)
        t, after = U(offsets[d]), U(offsets[d + 1])
        while t < after:
            plain_chars += U(chars[t]) * U(flags[t] & _PLAIN != U(0))
            t += U(1)
        t = U(offsets[d])
        while t < after:
            slot = exact[t] & slots
            stops |= bits[slot] * U(keys[slot] == exact[t])
            t += U(1)
        counts[d, 0], counts[d, 1], counts[d, 2] = offsets[d + 1] - offsets[d], words, plain
        counts[d, 3], counts[d, 4], counts[d, 5] = plain_chars, alphabetic, bit_count(stops)


@kernel
def _count_among(
    offsets: NDArray[np.int64], hashes: NDArray[np.uint64], known: NDArray[np.uint64], counts: NDArray[np.float64]
) -> None:
    for d in range(len(offsets) - 1):
        count = 0
        for t in range(offsets[d], offsets[d + 1]):
            for k in range(len(known)):
                count += hashes[t] == known[k]
        counts[d] = count


@kernel
def _longest(offsets: NDArray[np.int64], chars: NDArray[np.int32], found: NDArray[np.float64]) -> None:
    for d in range(len(offsets) - 1):
        for t in range(offsets[d], offsets[d + 1]):
            found[d] = max(found[d], chars[t])


@kernel
def _medians(offsets: NDArray[np.int64], chars: NDArray[np.int32], found: NDArray[np.float64]) -> None:
    for d in range(len(offsets) - 1):
        count = offsets[d + 1] - offsets[d]
        if count:
            ordered = np.sort(chars[offsets[d] : offsets[d + 1]])
            found[d] = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
