"""The same rules as others word them: families `dolma`, `dclm`, `nemo` and `redpajama`.

Sources: Dolma's gopher_v1 tagger; DCLM's content_filters.py; NeMo Curator's heuristic filters; RedPajama-Data-v2's
quality signals. Words are those between white space, except where a definition takes a tokenizer of its own (DCLM's
n-grams: uniseg; RedPajama's raw words: NLTK): there they are those of our word table.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.kernels.measures import feed_lines, ngram_styles
from corpusmill.kernels.measures.char_counts import CHAR_COUNTS, count_chars
from corpusmill.kernels.measures.slices import Slice, ratio, sums
from corpusmill.kernels.measures.word_stats import count_among, longest_words, median_chars
from corpusmill.kernels.words.split import SPLIT_BEGINS_ALNUM, SPLIT_LETTER, SPLIT_SYMBOL, split_table
from corpusmill.kernels.words.table import HAS_LETTER, IS_WORD, WordTable

MEASURES = {
    "dolma_word_count dolma_median_word_chars": {
        "family": "dolma",
        "definition": "dolma",
        "says": "words between white space",
    },
    "dolma_symbol_ratio": {
        "family": "dolma",
        "definition": "dolma",
        "says": "words with `#` or `…`",
    },
    "dolma_alpha_word_ratio dolma_stop_word_count": {
        "family": "dolma",
        "definition": "dolma",
        "says": "words between white space",
    },
    "dolma_bullet_line_ratio dolma_ellipsis_line_ratio": {
        "family": "dolma",
        "definition": "dolma",
        "says": "bullets are `*` and `-`",
    },
    "dolma_dup_line_ratio dolma_dup_line_char_ratio": {
        "family": "dolma",
        "definition": "dolma",
        "says": "all copies of a line, empty ones too; characters over the letters of words",
    },
    "dolma_top_{n}gram_char_ratio": {
        "n": (2, 3, 4),
        "family": "dolma",
        "definition": "dolma",
        "says": "the most frequent n-gram, of the letters of words",
    },
    "dolma_dup_{n}gram_char_ratio": {
        "n": (5, 6, 7, 8, 9, 10),
        "family": "dolma",
        "definition": "dolma",
        "says": "duplicated n-grams weighted by n-gram, of all n-grams",
    },
    "dclm_word_count dclm_mean_word_chars dclm_symbol_ratio dclm_alpha_word_ratio dclm_stop_word_count": {
        "family": "dclm",
        "definition": "dclm",
        "says": "words between white space",
    },
    "dclm_bullet_line_ratio dclm_ellipsis_line_ratio": {
        "family": "dclm",
        "definition": "dclm",
        "says": "lines between line feeds",
    },
    "dclm_dup_line_ratio dclm_dup_line_char_ratio dclm_dup_paragraph_ratio dclm_dup_paragraph_char_ratio": {
        "family": "dclm",
        "definition": "dclm",
        "says": "all copies of a stripped line or paragraph, 0 for a text of one",
    },
    "dclm_top_{n}gram_char_ratio": {
        "n": (2, 3, 4),
        "family": "dclm",
        "definition": "dclm",
        "says": "on our words; 0 where no n-gram is repeated, the longest of equals",
    },
    "dclm_dup_{n}gram_char_ratio": {
        "n": (5, 6, 7, 8, 9, 10),
        "family": "dclm",
        "definition": "dclm",
        "says": "on our words; words in any repeated n-gram",
    },
    "nemo_word_count nemo_mean_word_chars nemo_symbol_ratio nemo_alpha_word_ratio nemo_stop_word_count": {
        "family": "nemo",
        "definition": "nemo",
        "says": "words between white space",
    },
    "nemo_bullet_line_ratio nemo_ellipsis_line_ratio": {
        "family": "nemo",
        "definition": "nemo",
        "says": "lines between line feeds",
    },
    "nemo_dup_line_ratio nemo_dup_line_char_ratio nemo_dup_paragraph_ratio nemo_dup_paragraph_char_ratio": {
        "family": "nemo",
        "definition": "nemo",
        "says": "second and later copies",
    },
    "nemo_top_{n}gram_char_ratio": {
        "n": (2, 3, 4),
        "family": "nemo",
        "definition": "nemo",
        "says": "the top n-gram is cut out of the text; a text of fewer words than n fails",
    },
    "nemo_dup_{n}gram_char_ratio": {
        "n": (5, 6, 7, 8, 9, 10),
        "family": "nemo",
        "definition": "nemo",
        "says": "later n-grams, overlaps once; a text of fewer words than n fails",
    },
    "nemo_non_alnum_ratio nemo_digit_ratio nemo_url_ratio nemo_space_ratio nemo_bracket_ratio": {
        "family": "nemo",
        "definition": "nemo",
        "says": "of characters; an empty text fails",
    },
    "nemo_boilerplate_ratio": {
        "family": "nemo",
        "definition": "nemo",
        "says": 'paragraphs with boilerplate; 1 with "lorem ipsum"',
    },
    "nemo_no_end_mark_ratio": {
        "family": "nemo",
        "definition": "nemo",
        "says": "lines without an end mark",
    },
    "nemo_longest_word_chars": {
        "family": "nemo",
        "definition": "nemo",
        "says": "characters of the longest word",
    },
    "redpajama_word_count redpajama_mean_word_chars": {
        "family": "redpajama",
        "definition": "redpajama",
        "says": "normalised words",
    },
    "redpajama_symbol_ratio redpajama_alpha_word_ratio": {
        "family": "redpajama",
        "definition": "redpajama",
        "says": "per token",
    },
    "redpajama_bullet_line_ratio redpajama_ellipsis_line_ratio": {
        "family": "redpajama",
        "definition": "redpajama",
        "says": "lines between line feeds",
    },
    "redpajama_top_{n}gram_char_ratio": {
        "n": (2, 3, 4),
        "family": "redpajama",
        "definition": "redpajama",
        "says": "normalised words; 0 where no n-gram is repeated, the earliest of equals",
    },
    "redpajama_dup_{n}gram_char_ratio": {
        "n": (5, 6, 7, 8, 9, 10),
        "family": "redpajama",
        "definition": "redpajama",
        "says": "normalised words in any repeated n-gram",
    },
}

Columns = dict[str, NDArray]

_STOP_WORDS = ("the", "be", "to", "of", "and", "that", "have", "with")
_NEMO_SYMBOLS = ("#", "...", "[...]", "…", "(...)", "[…]", "-»")


def dolma(piece: Slice) -> Columns:
    """gopher_v1."""
    words, lines = piece.split, piece.feed_lines(feed_lines.DOLMA)
    count, chars = np.diff(words.offsets), sums(words, words.chars)
    grams, totals, _ = ngram_styles.count_ngrams(words, ngram_styles.DOLMA)
    empty = piece.text_bytes == 0  # has no lines there
    found = {
        "word_count": count.astype(np.float64),
        "median_word_chars": median_chars(words),
        "symbol_ratio": ratio(_flagged(words, SPLIT_SYMBOL), count),
        "alpha_word_ratio": ratio(_flagged(words, SPLIT_LETTER), count),
        "stop_word_count": _among(words, words.exact, _STOP_WORDS),
        "bullet_line_ratio": ratio(lines["bullets"], lines["lines"]),
        "ellipsis_line_ratio": ratio(lines["ellipses"], lines["lines"]),
        "dup_line_ratio": np.where(empty, 0.0, ratio(lines["copies"], lines["lines"])),
        "dup_line_char_ratio": lines["copy_chars"] / np.maximum(chars, 1),
        **{f"top_{n}gram_char_ratio": ratio(grams[:, n - 2], chars) for n in (2, 3, 4)},
        **{f"dup_{n}gram_char_ratio": ratio(grams[:, n - 2], totals[:, n - 2]) for n in range(5, 11)},
    }
    return {f"dolma_{name}": values for name, values in found.items()}


def dclm(piece: Slice) -> Columns:
    """The filters of dclm_baseline_refinedweb.yaml."""
    words, lines = piece.split, piece.feed_lines(feed_lines.DCLM)
    paragraphs = piece.feed_lines(feed_lines.DCLM, paragraphs=True)
    count = np.diff(words.offsets)
    alpha = _flagged(words, SPLIT_LETTER)
    found = {
        "word_count": _flagged(words, SPLIT_BEGINS_ALNUM).astype(np.float64),
        "mean_word_chars": ratio(sums(words, words.chars), count),
        "symbol_ratio": ratio(_symbols(piece, spaced=True), count),
        "alpha_word_ratio": ratio(alpha, count),
        "stop_word_count": _among(words, words.folded, _STOP_WORDS),
        "bullet_line_ratio": ratio(lines["bullets"], lines["lines"]),
        "ellipsis_line_ratio": ratio(lines["ellipses"], lines["lines"]),
        **_copies("line", lines),
        **_copies("paragraph", paragraphs),
        **_covered(_only_words(piece.table), ngram_styles.DCLM),
    }
    return {f"dclm_{name}": values for name, values in found.items()}


def nemo(piece: Slice) -> Columns:
    """The heuristic filters of the English and non-English configurations."""
    words, lines = piece.split, piece.feed_lines(feed_lines.NEMO)
    paragraphs = piece.feed_lines(feed_lines.NEMO, paragraphs=True)
    count, nothing = np.diff(words.offsets), piece.chars == 0
    grams, _, places = ngram_styles.count_ngrams(words, ngram_styles.NEMO)
    grams[:, :3] = ngram_styles.count_in_text(piece.text, words, places)
    chars = dict(zip(CHAR_COUNTS, count_chars(piece.text).T, strict=True))

    def share(name: str) -> NDArray:
        return np.where(nothing, 1.0, ratio(chars[name], piece.chars))

    found = {
        "word_count": count.astype(np.float64),
        "mean_word_chars": ratio(sums(words, words.chars), count),
        "symbol_ratio": ratio(_among(words, words.exact, _NEMO_SYMBOLS), count),
        "alpha_word_ratio": ratio(_flagged(words, SPLIT_LETTER), count),
        "stop_word_count": _among(words, words.exact, _STOP_WORDS),
        "bullet_line_ratio": ratio(lines["bullets"], lines["lines"]),
        "ellipsis_line_ratio": ratio(lines["ellipses"], lines["lines"]),
        "dup_line_ratio": ratio(lines["later_copies"], lines["lines"]),
        "dup_line_char_ratio": ratio(lines["later_copy_chars"], lines["chars"]),
        "dup_paragraph_ratio": ratio(paragraphs["later_copies"], paragraphs["lines"]),
        "dup_paragraph_char_ratio": ratio(paragraphs["later_copy_chars"], paragraphs["chars"]),
        **{  # a text of fewer words than n fails there
            f"{'top' if n < 5 else 'dup'}_{n}gram_char_ratio": np.where(
                count < n, 1.0, ratio(grams[:, n - 2], piece.chars)
            )
            for n in range(2, 11)
        },
        "non_alnum_ratio": np.where(nothing, 1.0, 1.0 - ratio(chars["nemo_alnum"], piece.chars)),
        "digit_ratio": share("digits"),
        "url_ratio": share("url_chars"),
        "space_ratio": share("spaces"),
        "bracket_ratio": share("brackets"),
        "boilerplate_ratio": np.where(chars["lorem_ipsum"] > 0, 1.0, ratio(chars["boilerplate"], paragraphs["lines"])),
        "no_end_mark_ratio": ratio(lines["lines"] - lines["end_marks"], lines["lines"]),
        "longest_word_chars": longest_words(words),
    }
    return {f"nemo_{name}": values for name, values in found.items()}


def redpajama(piece: Slice) -> Columns:
    """The quality signals that Gopher's rules are about."""
    lines, raw, normal = piece.feed_lines(feed_lines.REDPAJAMA), piece.table, piece.normal
    tokens, count = np.diff(raw.offsets), np.diff(normal.offsets)
    found = {
        "word_count": count.astype(np.float64),
        "mean_word_chars": ratio(sums(normal, normal.chars), count),
        "symbol_ratio": ratio(_symbols(piece, spaced=False), tokens),
        "alpha_word_ratio": ratio(sums(raw, raw.flags & HAS_LETTER != 0), tokens),
        "bullet_line_ratio": ratio(lines["bullets"], lines["lines"]),
        "ellipsis_line_ratio": ratio(lines["ellipses"], lines["lines"]),
        **_covered(normal, ngram_styles.REDPAJAMA),
    }
    return {f"redpajama_{name}": values for name, values in found.items()}


def _flagged(words: WordTable, bit: int) -> NDArray[np.int64]:
    return sums(words, words.flags & bit != 0)


def _among(words: WordTable, hashes: NDArray[np.uint64], known: tuple[str, ...]) -> NDArray[np.float64]:
    return count_among(words, hashes, _hashes(known))


@cache
def _hashes(known: tuple[str, ...]) -> NDArray[np.uint64]:
    return split_table(pa.array([" ".join(known)], pa.large_string())).exact


def _symbols(piece: Slice, spaced: bool) -> NDArray[np.int64]:
    """Number signs and ellipses; with `spaced` ". . ." too."""
    found = piece.lines["hash_marks"] + piece.lines["ellipses"]
    return found + dict(zip(CHAR_COUNTS, count_chars(piece.text).T, strict=True))["spaced_dots"] if spaced else found


def _copies(kind: str, segments: dict[str, NDArray]) -> Columns:
    """All copies of a repeated segment count; a text of one segment passes."""
    more = segments["lines"] > 1
    return {
        f"dup_{kind}_ratio": np.where(more, ratio(segments["copies"], segments["lines"]), 0.0),
        f"dup_{kind}_char_ratio": np.where(more, ratio(segments["copy_chars"], segments["chars"]), 0.0),
    }


def _covered(words: WordTable, style: int) -> Columns:
    grams, _, _ = ngram_styles.count_ngrams(words, style)
    chars = sums(words, words.chars)
    return {f"{'top' if n < 5 else 'dup'}_{n}gram_char_ratio": ratio(grams[:, n - 2], chars) for n in range(2, 11)}


def _only_words(table: WordTable) -> WordTable:
    """The table without symbols."""
    keep = table.flags & IS_WORD != 0
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(keep, dtype=np.int64)])
    parts = (table.start, table.stop, table.chars, table.folded, table.exact, table.flags)
    return WordTable(before[table.offsets], *(part[keep] for part in parts))
