"""How far another extractor's text agrees with the lines of a page."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from corpusmill.extractor.model.assemble import assemble
from corpusmill.extractor.model.lines import Lines
from corpusmill.extractor.model.overlap import shared, words_of

__all__ = ["union", "votes", "words_of"]


def votes(lines: Lines, other: str) -> NDArray[np.float64]:
    """Share of each line that the other text has too, float64[L]."""
    return shared(lines.page, other)


def union(lines: Lines, other: str) -> str:
    """Text of the lines that are kept or stand in the other text; the other text where it has more words than these."""
    text = assemble(lines.page, lines.keep | (votes(lines, other) >= 0.5))
    return other if len(other) > 1.2 * len(text) else text
