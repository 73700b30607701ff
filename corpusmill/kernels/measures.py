"""The numbers that rules are about, by family (kernels/families.py): one function per measure, named as its column.

Here are the base and families `gopher` and `body`; `datatrove_measures` has datatrove's others, `flavours` those of
other projects.

Definition "datatrove": the Gopher quality and repetition filters of datatrove 0.10.1, on the tokens of our word table
in place of spaCy's. There a "word" of a denominator is any token, punctuation included; `word_count` and
`mean_word_chars` leave out tokens that are only punctuation. A ratio without a denominator (an empty text) is 0, so
every value of every text is finite. Ratios are quotients of whole numbers: the same on every machine.

To add a measure: a function here, its name in kernels/families.py, its like in tests/kernels/reference.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import numba
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.kernels import datatrove_measures, flavours
from corpusmill.kernels.bytehash import U
from corpusmill.kernels.families import FAMILIES, STOP_WORD_MEASURE, MeasureSpec
from corpusmill.kernels.repeats import DUP_NGRAMS, REPEAT_COUNTS, TOP_NGRAMS, count_repeats
from corpusmill.kernels.slices import Slice, ratio
from corpusmill.kernels.stop_words import count_stop_words
from corpusmill.kernels.words import HAS_LETTER, HAS_NON_PUNCTUATION, IS_WORD, WordTable, slices, word_table

STOP_WORDS = ("the", "be", "to", "of", "and", "that", "have", "with")
"""Rae et al. 2021, section A.1.1; compared as they stand, so "The" is none."""

Counts = Mapping[str, NDArray[np.int64]]
"""Whole numbers of D documents, each int64[D]: TOKEN_COUNTS, LINE_COUNTS, REPEAT_COUNTS."""

Columns = dict[str, NDArray]
"""measure -> its values, one a document."""

TOKEN_COUNTS = (
    "tokens",  # words and symbols
    "words",  # no symbols
    "non_punctuation",  # tokens with a character that is not in datatrove's list of punctuation
    "non_punctuation_chars",  # and their characters
    "alphabetic",  # tokens with a letter
    "stop_words",  # different ones of STOP_WORDS
)
"""Columns of the counts over tokens."""

_DEFAULT = MeasureSpec()


def measures(text: pa.LargeStringArray, spec: MeasureSpec = _DEFAULT, table: WordTable | None = None) -> pa.RecordBatch:
    """The measures of a recipe for every document, one row a document (`spec.schema`).

    Args:
        text: large_string[D] without nulls.
        spec: which families, and stop words of which languages.
        table: the words of these texts, where they are known already; then the batch is not cut into slices.

    Raises:
        ValueError: not a large_string array, or one with nulls; words of other texts.
    """
    if table is not None and len(table) != len(text):
        raise ValueError(f"{len(text)} texts and words of {len(table)}")
    if table is not None or len(text) == 0:
        parts = [_measured(Slice(text, table), spec)]
    else:  # a slice's words go before the next one's come: the same memory serves all
        parts = [_measured(Slice(part), spec) for _, part in slices(text)]
    schema = spec.schema
    columns = [pa.array(np.concatenate([part[field.name] for part in parts]), field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _measured(piece: Slice, spec: MeasureSpec) -> Columns:
    found: Columns = {"text_bytes": piece.text_bytes, "word_total": piece.table.word_counts()}
    for name in spec.families:
        found |= _FAMILIES[name](piece)
    languages = sorted(spec.stop_words)
    counts = count_stop_words(piece.table, [spec.stop_words[code] for code in languages])
    found |= {f"{STOP_WORD_MEASURE}_{code}": counts[:, i].astype(np.float64) for i, code in enumerate(languages)}
    return found


def gopher(piece: Slice) -> Columns:
    """Family `gopher`."""
    counts = count(piece)
    return {name: _BY_NAME[name](counts) for name in FAMILIES["gopher"].measures}


def count(piece: Slice) -> Counts:
    """Everything that measures of family `gopher` are quotients of."""
    table = piece.table
    tokens = np.zeros((len(table), len(TOKEN_COUNTS)), np.int64)
    _count_tokens(table.offsets, table.exact, table.chars, table.flags, _stop_word_hashes(), tokens)
    counts = dict(piece.lines)
    for names, values in ((TOKEN_COUNTS, tokens), (REPEAT_COUNTS, count_repeats(table))):
        counts |= {name: values[:, i] for i, name in enumerate(names)}
    return counts


def body(piece: Slice) -> Columns:
    """Family `body`: as some of `gopher`, but blank lines do not count. Our extractor sets paragraphs apart by them."""
    return {"bullet_body_ratio": ratio(piece.lines["bullet_lines"], piece.lines["body_lines"])}


Measure = Callable[[Counts], NDArray]
_BY_NAME: dict[str, Measure] = {}


def measure(function: Measure) -> Measure:
    """Make a function the measure of its name."""
    _BY_NAME[function.__name__] = function
    return function


@measure
def word_count(c: Counts) -> NDArray:
    """Tokens that are not only punctuation."""
    return c["non_punctuation"].astype(np.float64)


@measure
def mean_word_chars(c: Counts) -> NDArray:
    """Mean characters of the tokens that are not only punctuation."""
    return ratio(c["non_punctuation_chars"], c["non_punctuation"])


@measure
def hash_ratio(c: Counts) -> NDArray:
    """Number signs per token."""
    return ratio(c["hash_marks"], c["tokens"])


@measure
def ellipsis_ratio(c: Counts) -> NDArray:
    """Ellipses, as three dots or as one character, per token."""
    return ratio(c["ellipses"], c["tokens"])


@measure
def bullet_line_ratio(c: Counts) -> NDArray:
    """Share of lines that begin with a bullet or a hyphen."""
    return ratio(c["bullet_lines"], c["lines"])


@measure
def ellipsis_line_ratio(c: Counts) -> NDArray:
    """Share of lines that end with an ellipsis."""
    return ratio(c["ellipsis_lines"], c["lines"])


@measure
def alpha_word_ratio(c: Counts) -> NDArray:
    """Share of tokens with a letter."""
    return ratio(c["alphabetic"], c["tokens"])


@measure
def stop_word_count(c: Counts) -> NDArray:
    """How many different stop words of the list occur."""
    return c["stop_words"].astype(np.float64)


@measure
def dup_line_ratio(c: Counts) -> NDArray:
    """Second and later copies among the lines."""
    return ratio(c["dup_segments"], c["segments"])


@measure
def dup_paragraph_ratio(c: Counts) -> NDArray:
    """Second and later copies among the paragraphs."""
    return ratio(c["dup_paragraphs"], c["paragraphs"])


@measure
def dup_line_char_ratio(c: Counts) -> NDArray:
    """Characters of second and later copies of lines, of all characters of the text."""
    return ratio(c["dup_segment_chars"], c["chars"])


@measure
def dup_paragraph_char_ratio(c: Counts) -> NDArray:
    """Characters of second and later copies of paragraphs, of all characters of the text."""
    return ratio(c["dup_paragraph_chars"], c["chars"])


def _char_ratio(column: str) -> Measure:
    return lambda c: ratio(c[column], c["chars"])


# Characters of the most frequent n-gram, and of repeated n-grams, of all characters of the text.
_BY_NAME.update({f"top_{n}gram_char_ratio": _char_ratio(f"top_{n}gram_chars") for n in TOP_NGRAMS})
_BY_NAME.update({f"dup_{n}gram_char_ratio": _char_ratio(f"dup_{n}gram_chars") for n in DUP_NGRAMS})


@cache
def _stop_word_hashes() -> NDArray[np.uint64]:
    return word_table(pa.array([" ".join(STOP_WORDS)], pa.large_string())).exact


_WORD, _LETTER, _NON_PUNCTUATION = np.uint8(IS_WORD), np.uint8(HAS_LETTER), np.uint8(HAS_NON_PUNCTUATION)


@numba.njit(nogil=True, cache=True)
def _count_tokens(
    offsets: NDArray[np.int64],
    exact: NDArray[np.uint64],
    chars: NDArray[np.int32],
    flags: NDArray[np.uint8],
    stop_words: NDArray[np.uint64],
    counts: NDArray[np.int64],
) -> None:
    likely = U(0)  # bit h: the hash of a stop word ends with h
    for s in range(len(stop_words)):
        likely |= U(1) << (stop_words[s] & U(63))
    for d in range(len(offsets) - 1):
        words, plain, plain_chars, alphabetic, stops = 0, 0, 0, 0, 0
        t, after = U(offsets[d]), U(offsets[d + 1])
        while t < after:
            facts = flags[t]
            words += facts & _WORD != 0
            alphabetic += facts & _LETTER != 0
            counted = facts & _NON_PUNCTUATION != 0
            plain += counted
            plain_chars += chars[t] * counted
            if (likely >> (exact[t] & U(63))) & U(1) != U(0):
                for s in range(len(stop_words)):
                    if exact[t] == stop_words[s]:
                        stops |= 1 << s
            t += U(1)
        counts[d, 0] = offsets[d + 1] - offsets[d]
        counts[d, 1], counts[d, 2], counts[d, 3], counts[d, 4] = words, plain, plain_chars, alphabetic
        while stops:  # distinct ones
            counts[d, 5] += stops & 1
            stops >>= 1


_FAMILIES: Mapping[str, Callable[[Slice], Columns]] = {
    "gopher": gopher,
    "body": body,
    "fineweb": datatrove_measures.fineweb,
    "page": datatrove_measures.page,
    "code": datatrove_measures.code,
    "dolma": flavours.dolma,
    "dclm": flavours.dclm,
    "nemo": flavours.nemo,
    "redpajama": flavours.redpajama,
}

assert set(_BY_NAME) == set(FAMILIES["gopher"].measures), "a measure without a column, or a column without a measure"
assert set(_FAMILIES) == set(FAMILIES), "a family without a function, or a function without a family"
