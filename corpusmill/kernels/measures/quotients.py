"""The measures that are a count or the quotient of two: families `gopher`, `body`, `fineweb`, `page` and `code`.

Definition "datatrove": the filters of datatrove 0.10.1 (Gopher quality and repetition, FineWeb, C4), on the tokens of
our word table in place of spaCy's. There a "word" of a denominator is any token, punctuation included; `word_count` and
`mean_word_chars` leave out tokens that are only punctuation. Family `body` is as `gopher`, but blank lines do not
count: our extractor sets paragraphs apart by them. Family `code` is by The Stack, RedPajama 1 and StarCoder 2.

A quotient without a denominator (an empty text) is 0, so every value of every text is finite. Quotients are of whole
numbers: the same on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from corpusmill.kernels.measures.families import FAMILIES
from corpusmill.kernels.measures.repeats import DUP_NGRAMS, TOP_NGRAMS

Counts = Mapping[str, NDArray]
"""Numbers of D documents by name, each int64[D]: LINE_COUNTS, TOKEN_COUNTS, REPEAT_COUNTS, PAGE_COUNTS, CODE_COUNTS."""

QUOTIENTS: Mapping[str, tuple[str, str | None]] = {
    # gopher
    "word_count": ("non_punctuation", None),
    "mean_word_chars": ("non_punctuation_chars", "non_punctuation"),
    "hash_ratio": ("hash_marks", "tokens"),
    "ellipsis_ratio": ("ellipses", "tokens"),
    "bullet_line_ratio": ("bullet_lines", "lines"),
    "ellipsis_line_ratio": ("ellipsis_lines", "lines"),
    "alpha_word_ratio": ("alphabetic", "tokens"),
    "stop_word_count": ("stop_words", None),
    "dup_line_ratio": ("dup_segments", "segments"),
    "dup_paragraph_ratio": ("dup_paragraphs", "paragraphs"),
    "dup_line_char_ratio": ("dup_segment_chars", "chars"),
    "dup_paragraph_char_ratio": ("dup_paragraph_chars", "chars"),
    **{f"top_{n}gram_char_ratio": (f"top_{n}gram_chars", "chars") for n in TOP_NGRAMS},
    **{f"dup_{n}gram_char_ratio": (f"dup_{n}gram_chars", "chars") for n in DUP_NGRAMS},
    "bullet_body_ratio": ("bullet_lines", "body_lines"),
    # fineweb
    "end_mark_line_ratio": ("marked_lines", "written_lines"),
    "short_line_ratio": ("short_lines", "written_lines"),
    "dup_line_body_ratio": ("dup_written_chars", "feedless_chars"),
    "line_break_ratio": ("line_feeds", "tokens"),
    # page
    "char_count": ("chars", None),
    "sentence_count": ("sentences", None),
    "curly_bracket_count": ("curly_brackets", None),
    "lorem_ipsum_count": ("lorem_ipsums", None),
    "code_mean_line_chars": ("code_line_chars", "code_lines"),
    "code_max_line_chars": ("code_longest_line", None),
    "code_alnum_ratio": ("code_alnum", "code_chars"),
    "code_letters_per_token": ("code_letters", "tokens"),
    "code_encoded_ratio": ("code_encoded", "code_chars"),
    "code_xml": ("code_xml", None),
}
"""measure -> the count that it is, or that it is a quotient of, and the denominator."""


def quotients(counts: Counts, names: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """Measures of QUOTIENTS, each float64[D].

    Args:
        counts: all that they name.
    """
    if not names:
        return {}
    size = len(counts[QUOTIENTS[names[0]][0]])
    parts, wholes = np.empty((len(names), size)), np.ones((len(names), size))
    for i, name in enumerate(names):
        part, whole = QUOTIENTS[name]
        parts[i] = counts[part]
        if whole:
            wholes[i] = counts[whole]
    return dict(zip(names, parts / np.maximum(wholes, 1), strict=True))


assert set(QUOTIENTS) == {
    name for family in ("gopher", "body", "fineweb", "page", "code") for name in FAMILIES[family].measures
}, "a measure without a column, or a column without a measure"
