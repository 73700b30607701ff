"""Our own extractor: lines of a page, the probability that each is content, and the lines to keep.

Kept are the lines that make the expected F1 of words greatest: all above a bound that the page sets itself, near half
of the F1 that can be expected. The bound is lower on pages that are hard to tell. It scores 0.02 above a fixed 0.5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corpusmill.extractor.assemble import assemble
from corpusmill.extractor.embedded import embedded_text
from corpusmill.extractor.features import features
from corpusmill.extractor.model import load_model
from corpusmill.extractor.scan import Line, Scan, scan
from corpusmill.readers.text import clean_text

FEW_WORDS = 20
"""Below it the visible page is as good as empty: JSON-LD or the page's state may say more."""


@dataclass(frozen=True)
class Lines:
    """A page, judged line by line."""

    page: Scan
    features: NDArray[np.float32]
    """float32[L, F]."""
    probability: NDArray[np.float64]
    """float64[L]."""
    keep: NDArray[np.bool_]
    """bool[L]."""
    confidence: float
    """Expected word F1 of the kept lines."""

    @property
    def words(self) -> NDArray[np.int64]:
        """Words of each line."""
        return self.page.lines[:, Line.WORDS]

    def text(self, *, markdown: bool = False) -> str:
        """Text of the kept lines."""
        return clean_text(assemble(self.page, self.keep, markdown=markdown))[0].strip()


def judge(html: bytes) -> Lines:
    """Judge the lines of a page in UTF-8."""
    page = scan(html)
    rows = features(page)
    return judged(page, rows, load_model().trees["lines"].probability(rows))


def judged(page: Scan, rows: NDArray[np.float32], probability: NDArray[np.float64]) -> Lines:
    """Lines whose probabilities are known."""
    keep, confidence = chosen(page, probability)
    return Lines(page, rows, probability, keep, confidence)


def chosen(page: Scan, probability: NDArray[np.float64]) -> tuple[NDArray[np.bool_], float]:
    """Lines whose expected F1 is greatest, and that F1: 2 sum(words * p over kept) / (words kept + sum(words * p))."""
    words = page.lines[:, Line.WORDS].astype(np.float64)
    keep = np.zeros(len(words), np.bool_)
    if not words.any():
        keep[:] = True
        return keep, 0.0
    order = np.argsort(-probability, kind="stable")
    gained = np.cumsum((words * probability)[order])
    expected = 2 * gained / (np.cumsum(words[order]) + gained[-1])
    best = int(np.argmax(expected))
    keep[order[: best + 1]] = True
    return keep, float(expected[best])


def by_lines(page: str, data: bytes) -> tuple[str, Lines]:
    """Text of a page by the line model, and how its lines were judged.

    Args:
        page: decoded page.
        data: the same in UTF-8.
    """
    lines = judge(data)
    text = lines.text()
    if int(lines.words[lines.keep].sum()) < FEW_WORDS:
        body = clean_text(embedded_text(page))[0].strip()
        text = body if len(body) > len(text) else text
    return text, lines
