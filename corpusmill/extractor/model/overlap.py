"""How far the lines of a page say what another text says, by pairs of words."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from corpusmill.extractor.scan.scan import Line, Scan
from corpusmill.readers.text import unescaped

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")


def words_of(text: str) -> list[str]:
    """Words in lower case; ideographs, kana and Hangul syllables are one each."""
    return _WORD.findall(text.lower())


def shared(page: Scan, other: str) -> NDArray[np.float64]:
    """Share of each line's pairs of words that the other text has too, float64[L]; half for a single word it has."""
    words = words_of(other)
    pairs, singles = set(pairwise(words)), set(words)
    shares = np.zeros(len(page), np.float64)
    data = page.text[: int(page.lines[-1, Line.STOP]) if len(page) else 0].tobytes()
    for i, (start, stop) in enumerate(page.lines[:, :2].tolist()):
        own = words_of(unescaped(data[start:stop].decode("utf-8", "replace")))
        if len(own) > 1:
            shares[i] = sum(pair in pairs for pair in pairwise(own)) / (len(own) - 1)
        elif own:
            shares[i] = 0.5 * (own[0] in singles)
    return shares
