"""The numbers that rules are about: one function per measure, named as its column (schema.MEASURES).

Definition "datatrove": the Gopher quality and repetition filters of datatrove 0.10.1, on the tokens of our word table
in place of spaCy's. There a "word" of a denominator is any token, punctuation included; `word_count` and
`mean_word_chars` leave out tokens that are only punctuation. A ratio without a denominator (an empty text) is 0, so
every value of every text is finite. Ratios are quotients of whole numbers: the same on every machine.

To add a measure: a function here, a column in schema.MEASURES, its like in tests/kernels/reference.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import numba
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.kernels.lines import LINE_COUNTS, count_lines
from corpusmill.kernels.repeats import DUP_NGRAMS, REPEAT_COUNTS, TOP_NGRAMS, count_repeats
from corpusmill.kernels.words import HAS_LETTER, HAS_NON_PUNCTUATION, IS_WORD, slices, text_buffers, word_table
from corpusmill.schema import MEASURES

DEFINITION = "datatrove"
"""What rules call the definitions of this file."""

STOP_WORDS = ("the", "be", "to", "of", "and", "that", "have", "with")
"""Rae et al. 2021, section A.1.1; compared as they stand, so "The" is none."""

Counts = Mapping[str, NDArray[np.int64]]
"""Whole numbers of D documents, each int64[D]: text_bytes, TOKEN_COUNTS, LINE_COUNTS, REPEAT_COUNTS."""

TOKEN_COUNTS = (
    "tokens",  # words and symbols
    "words",  # no symbols
    "non_punctuation",  # tokens with a character that is not in datatrove's list of punctuation
    "non_punctuation_chars",  # and their characters
    "alphabetic",  # tokens with a letter
    "stop_words",  # different ones of STOP_WORDS
)
"""Columns of the counts over tokens."""


def measures(text: pa.LargeStringArray) -> pa.RecordBatch:
    """Every measure of every document, one row a document (schema.MEASURES).

    Raises:
        ValueError: not a large_string array, or one with nulls.
    """
    parts = [count(part) for _, part in slices(text)] or [count(text)]
    counts = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    columns = [pa.array(_BY_NAME[field.name](counts), field.type) for field in MEASURES]
    return pa.RecordBatch.from_arrays(columns, schema=MEASURES)


def count(text: pa.LargeStringArray) -> Counts:
    """Everything that measures are quotients of."""
    _, bounds = text_buffers(text)
    table = word_table(text)
    tokens = np.zeros((len(text), len(TOKEN_COUNTS)), np.int64)
    _count_tokens(table.offsets, table.exact, table.chars, table.flags, _stop_word_hashes(), tokens)
    counts = {"text_bytes": np.diff(bounds)}
    for names, values in (
        (TOKEN_COUNTS, tokens),
        (LINE_COUNTS, count_lines(text)),
        (REPEAT_COUNTS, count_repeats(table)),
    ):
        counts |= {name: values[:, i] for i, name in enumerate(names)}
    return counts


Measure = Callable[[Counts], NDArray]
_BY_NAME: dict[str, Measure] = {}


def measure(function: Measure) -> Measure:
    """Make a function the measure of its name."""
    _BY_NAME[function.__name__] = function
    return function


def _ratio(part: NDArray[np.int64], whole: NDArray[np.int64]) -> NDArray[np.float64]:
    return part / np.maximum(whole, 1)  # where the whole is 0, so is the part


@measure
def text_bytes(c: Counts) -> NDArray:
    """UTF-8 bytes of the text."""
    return c["text_bytes"]


@measure
def word_total(c: Counts) -> NDArray:
    """Words of the word table, symbols not counted: the unit of the funnel."""
    return c["words"]


@measure
def word_count(c: Counts) -> NDArray:
    """Tokens that are not only punctuation."""
    return c["non_punctuation"].astype(np.float64)


@measure
def mean_word_chars(c: Counts) -> NDArray:
    """Mean characters of the tokens that are not only punctuation."""
    return _ratio(c["non_punctuation_chars"], c["non_punctuation"])


@measure
def hash_ratio(c: Counts) -> NDArray:
    """Number signs per token."""
    return _ratio(c["hash_marks"], c["tokens"])


@measure
def ellipsis_ratio(c: Counts) -> NDArray:
    """Ellipses, as three dots or as one character, per token."""
    return _ratio(c["ellipses"], c["tokens"])


@measure
def bullet_line_ratio(c: Counts) -> NDArray:
    """Share of lines that begin with a bullet or a hyphen."""
    return _ratio(c["bullet_lines"], c["lines"])


@measure
def ellipsis_line_ratio(c: Counts) -> NDArray:
    """Share of lines that end with an ellipsis."""
    return _ratio(c["ellipsis_lines"], c["lines"])


@measure
def alpha_word_ratio(c: Counts) -> NDArray:
    """Share of tokens with a letter."""
    return _ratio(c["alphabetic"], c["tokens"])


@measure
def stop_word_count(c: Counts) -> NDArray:
    """How many different stop words of the list occur."""
    return c["stop_words"].astype(np.float64)


@measure
def dup_line_ratio(c: Counts) -> NDArray:
    """Second and later copies among the lines."""
    return _ratio(c["dup_segments"], c["segments"])


@measure
def dup_paragraph_ratio(c: Counts) -> NDArray:
    """Second and later copies among the paragraphs."""
    return _ratio(c["dup_paragraphs"], c["paragraphs"])


@measure
def dup_line_char_ratio(c: Counts) -> NDArray:
    """Characters of second and later copies of lines, of all characters of the text."""
    return _ratio(c["dup_segment_chars"], c["chars"])


@measure
def dup_paragraph_char_ratio(c: Counts) -> NDArray:
    """Characters of second and later copies of paragraphs, of all characters of the text."""
    return _ratio(c["dup_paragraph_chars"], c["chars"])


def _char_ratio(column: str) -> Measure:
    return lambda c: _ratio(c[column], c["chars"])


# Characters of the most frequent n-gram, and of repeated n-grams, of all characters of the text.
_BY_NAME.update({f"top_{n}gram_char_ratio": _char_ratio(f"top_{n}gram_chars") for n in TOP_NGRAMS})
_BY_NAME.update({f"dup_{n}gram_char_ratio": _char_ratio(f"dup_{n}gram_chars") for n in DUP_NGRAMS})


@cache
def _stop_word_hashes() -> NDArray[np.uint64]:
    return word_table(pa.array([" ".join(STOP_WORDS)], pa.large_string())).exact


_WORD, _LETTER, _NON_PUNCTUATION = np.uint8(IS_WORD), np.uint8(HAS_LETTER), np.uint8(HAS_NON_PUNCTUATION)
_LONGEST_STOP_WORD = max(map(len, STOP_WORDS))


@numba.njit(nogil=True, cache=True)
def _count_tokens(
    offsets: NDArray[np.int64],
    exact: NDArray[np.uint64],
    chars: NDArray[np.int32],
    flags: NDArray[np.uint8],
    stop_words: NDArray[np.uint64],
    counts: NDArray[np.int64],
) -> None:
    for d in range(len(offsets) - 1):
        words, plain, plain_chars, alphabetic, stops = 0, 0, 0, 0, 0
        for t in range(offsets[d], offsets[d + 1]):
            words += flags[t] & _WORD != 0
            alphabetic += flags[t] & _LETTER != 0
            if flags[t] & _NON_PUNCTUATION:
                plain += 1
                plain_chars += chars[t]
            if chars[t] <= _LONGEST_STOP_WORD:
                for s in range(len(stop_words)):
                    if exact[t] == stop_words[s]:
                        stops |= 1 << s
        counts[d, 0] = offsets[d + 1] - offsets[d]
        counts[d, 1], counts[d, 2], counts[d, 3], counts[d, 4] = words, plain, plain_chars, alphabetic
        while stops:  # distinct ones
            counts[d, 5] += stops & 1
            stops >>= 1


assert set(_BY_NAME) == set(MEASURES.names), "a measure without a column, or a column without a measure"
