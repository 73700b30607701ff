"""Families `fineweb` and `page` (C4) by datatrove 0.10.1's filters, `code` by The Stack, RedPajama 1, StarCoder 2.

In family `fineweb` lines are cut at line feeds and blank ones left out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from corpusmill.kernels import feed_lines
from corpusmill.kernels.page_counts import CODE_COUNTS, PAGE_COUNTS, count_code, count_page
from corpusmill.kernels.slices import Slice, ratio

Columns = dict[str, NDArray]


def fineweb(piece: Slice) -> Columns:
    """FineWebQualityFilter."""
    lines = piece.feed_lines(feed_lines.FINEWEB)
    feeds = piece.line_feeds
    return {
        "end_mark_line_ratio": ratio(lines["end_marks"], lines["lines"]),
        "short_line_ratio": ratio(lines["short"], lines["lines"]),
        "dup_line_body_ratio": ratio(lines["later_copy_chars"], piece.chars - feeds),
        "line_break_ratio": ratio(feeds, np.diff(piece.table.offsets)),
    }


def page(piece: Slice) -> Columns:
    """What C4QualityFilter asks of a page."""
    counts = dict(zip(PAGE_COUNTS, count_page(piece.text, piece.table).T.astype(np.float64), strict=True))
    return {
        "char_count": piece.chars.astype(np.float64),
        "sentence_count": counts["sentences"],
        "curly_bracket_count": counts["curly_brackets"],
        "lorem_ipsum_count": counts["lorem_ipsums"],
    }


def code(piece: Slice) -> Columns:
    """What code is asked for."""
    counts = dict(zip(CODE_COUNTS, count_code(piece.text).T, strict=True))
    return {
        "code_mean_line_chars": ratio(counts["code_line_chars"], counts["code_lines"]),
        "code_max_line_chars": counts["code_longest_line"].astype(np.float64),
        "code_alnum_ratio": ratio(counts["code_alnum"], counts["code_chars"]),
        "code_letters_per_token": ratio(counts["code_letters"], np.diff(piece.table.offsets)),
        "code_encoded_ratio": ratio(counts["code_encoded"], counts["code_chars"]),
        "code_xml": counts["code_xml"].astype(np.float64),
    }
