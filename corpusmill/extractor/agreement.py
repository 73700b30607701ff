"""How far another extractor's text agrees with the lines of a page."""

from __future__ import annotations

import html
import re
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from corpusmill.extractor.assemble import assemble
from corpusmill.extractor.linemodel import Lines
from corpusmill.extractor.scan import Line

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")


def words_of(text: str) -> list[str]:
    """Words in lower case; ideographs, kana and Hangul syllables are one each."""
    return _WORD.findall(text.lower())


def votes(lines: Lines, other: str) -> NDArray[np.float64]:
    """Share of each line's pairs of words that the other text has too, float64[L]; half a vote for a single word."""
    words = words_of(other)
    pairs, singles = set(pairwise(words)), set(words)
    shares = np.zeros(len(lines.page), np.float64)
    data = lines.page.text[: int(lines.page.lines[-1, Line.STOP]) if len(lines.page) else 0].tobytes()
    for i, (start, stop) in enumerate(lines.page.lines[:, :2].tolist()):
        own = words_of(html.unescape(data[start:stop].decode("utf-8", "replace")))
        if len(own) > 1:
            shares[i] = sum(pair in pairs for pair in pairwise(own)) / (len(own) - 1)
        elif own:
            shares[i] = 0.5 * (own[0] in singles)
    return shares


def union(lines: Lines, other: str) -> str:
    """Text of the lines that are kept or stand in the other text; the other text where it has more words than these."""
    text = assemble(lines.page, lines.keep | (votes(lines, other) >= 0.5))
    return other if len(other) > 1.2 * len(text) else text
