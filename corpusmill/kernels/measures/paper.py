"""Gopher's measures as its paper reads (Rae et al. 2021, arXiv:2112.11446, A.1): words are what stands between blanks,
so "(see" and "well-known," are one each, and a mark beside a word is none.

The paper does not say how it cuts words. Its bounds fit words cut at blanks: where marks are words of their own, those
of plain prose bring the share of words with a letter down to its bound, 0.8 (docs/notes/rules.md). All else is counted
as in datatrove's definition, with these words in place of tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from corpusmill.kernels.measures import repeats, word_stats
from corpusmill.kernels.measures.slices import sums

if TYPE_CHECKING:
    from corpusmill.kernels.measures.slices import Slice

MEASURES = {
    "paper_word_count": {
        "family": "paper",
        "definition": "paper",
        "of": "paper_words",
        "says": "words between blanks",
    },
    "paper_mean_word_chars": {
        "family": "paper",
        "definition": "paper",
        "of": "paper_word_chars / paper_words",
        "says": "mean characters of words between blanks",
    },
    "paper_hash_ratio": {
        "family": "paper",
        "definition": "paper",
        "of": "hash_marks / paper_words",
        "says": "`#` per word between blanks",
    },
    "paper_ellipsis_ratio": {
        "family": "paper",
        "definition": "paper",
        "of": "ellipses / paper_words",
        "says": "`...` (not overlapping) and `…` per word between blanks",
    },
    "paper_bullet_line_ratio": {
        "family": "paper",
        "definition": "paper",
        "of": "bullet_lines / lines",
        "says": "lines of `str.splitlines` that begin with `•` or `-`",
    },
    "paper_ellipsis_line_ratio": {
        "family": "paper",
        "definition": "paper",
        "of": "ellipsis_lines / lines",
        "says": "lines of `str.splitlines` that end with an ellipsis",
    },
    "paper_alpha_word_ratio": {
        "family": "paper",
        "definition": "paper",
        "of": "paper_alphabetic / paper_words",
        "says": "words between blanks with a letter, per word",
    },
    "paper_stop_word_count": {
        "family": "paper",
        "definition": "paper",
        "of": "paper_stop_words",
        "says": "distinct stop words among the words between blanks, case-sensitive",
    },
    "paper_dup_line_ratio": {
        "family": "paper",
        "definition": "paper",
        "of": "dup_segments / segments",
        "says": "second and later copies of a line",
    },
    "paper_dup_paragraph_ratio": {
        "family": "paper",
        "definition": "paper",
        "of": "dup_paragraphs / paragraphs",
        "says": "second and later copies of a paragraph",
    },
    "paper_dup_line_char_ratio": {
        "family": "paper",
        "definition": "paper",
        "of": "dup_segment_chars / chars",
        "says": "characters in second and later copies of a line",
    },
    "paper_dup_paragraph_char_ratio": {
        "family": "paper",
        "definition": "paper",
        "of": "dup_paragraph_chars / chars",
        "says": "characters in second and later copies of a paragraph",
    },
    "paper_top_{n}gram_char_ratio": {
        "n": (2, 3, 4),
        "family": "paper",
        "definition": "paper",
        "of": "paper_top_{n}gram_chars / chars",
        "says": "characters of the most frequent n-gram with blanks, times its count, even if that is 1",
    },
    "paper_dup_{n}gram_char_ratio": {
        "n": (5, 6, 7, 8, 9, 10),
        "family": "paper",
        "definition": "paper",
        "of": "paper_dup_{n}gram_chars / chars",
        "says": "characters of repeated n-grams; read from left to right, each copy skipped as a whole",
    },
}

COUNTS = (
    "paper_words",
    "paper_word_chars",
    "paper_alphabetic",  # words with a letter
    "paper_stop_words",  # different ones of STOP_WORDS
    *(f"paper_{name}" for name in repeats.COUNTS),
)
"""Columns of `count`."""


def count(piece: Slice) -> NDArray[np.int64]:
    """Counts of each document, int64[D, len(COUNTS)]."""
    words = piece.joined
    found = dict(zip(word_stats.COUNTS, word_stats.count_tokens(words).T, strict=True))
    columns = (found["tokens"], sums(words, words.chars), found["alphabetic"], found["stop_words"])
    return np.column_stack([*columns, repeats.count_repeats(words)])
