"""Our own extractor: lines of a page, the probability that each is content, and the lines to keep.

Kept are the lines that make the expected F1 of words greatest: all above a bound that the page sets itself, near half
of the F1 that can be expected. The bound is lower on pages that are hard to tell. It scores 0.02 above a fixed 0.5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corpusmill.compiled import kernel
from corpusmill.extractor.model.assemble import assemble
from corpusmill.extractor.model.embedded import embedded_text
from corpusmill.extractor.model.features import features
from corpusmill.extractor.model.load import load_model
from corpusmill.extractor.model.product import by_description, described
from corpusmill.extractor.model.repeats import without_copies
from corpusmill.extractor.page import Page
from corpusmill.extractor.scan.scan import Line, Scan, scan
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


def judge(page: Page) -> Lines:
    """Judge the lines of a page."""
    lines = scan(page.data)
    rows = features(lines)
    return judged(lines, rows, load_model().trees["lines"].probability(rows), described(page))


def judged(page: Scan, rows: NDArray[np.float32], probability: NDArray[np.float64], description: str = "") -> Lines:
    """Lines whose probabilities are known: corrected by the description of a product, and of lines with the same words
    one is kept at most."""
    probability = without_copies(page, by_description(page, probability, description))
    keep, confidence = chosen(page, probability)
    return Lines(page, rows, probability, keep, confidence)


def chosen(page: Scan, probability: NDArray[np.float64]) -> tuple[NDArray[np.bool_], float]:
    """Lines whose expected F1 is greatest, and that F1: 2 sum(words * p over kept) / (words kept + sum(words * p))."""
    keep = np.zeros(len(page), np.bool_)
    return keep, _most_f1(page.lines, probability, keep)


@kernel
def _most_f1(lines, probability, keep):  # type: ignore[no-untyped-def]
    order = np.argsort(-probability, kind="mergesort")
    words = lines[:, Line.WORDS].astype(np.float64)
    expected, total = 0.0, 0.0
    for r in order:
        expected += words[r] * probability[r]
        total += words[r]
    if total == 0.0:
        keep[:] = True
        return 0.0
    gained = sure = best_f1 = 0.0
    best = 0
    for k in range(len(order)):
        gained += words[order[k]] * probability[order[k]]
        sure += words[order[k]]
        f1 = 2 * gained / (sure + expected) if sure > 0.0 else 0.0
        if f1 > best_f1:
            best, best_f1 = k, f1
    for r in order[: best + 1]:
        keep[r] = True
    return best_f1


def by_lines(page: Page) -> tuple[str, Lines]:
    """Text of a page by the line model, and how its lines were judged."""
    lines = judge(page)
    text = lines.text()
    if int(lines.words[lines.keep].sum()) < FEW_WORDS:
        body = clean_text(embedded_text(page.text))[0].strip()
        text = body if len(body) > len(text) else text
    return text, lines
