"""Lines that say again what another line of the page says: a page built for two widths of screen, a carousel."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from corpusmill.extractor.scan import Line, Scan

MIN_WORDS = 12
"""Shorter lines may well be meant twice: cells of a table, a refrain, a line of code."""
MAX_COPIES = 3
"""A line said more often than a layout would repeat it is the page's own doing: rules of repetition are to see it."""


def without_copies(page: Scan, probability: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities, 0 for all but the likeliest (the first of equals) of two or three with the same words."""
    rows = np.flatnonzero(page.lines[:, Line.WORDS] >= MIN_WORDS)
    words = page.lines[rows, Line.HASH]
    order = np.lexsort((rows, -probability[rows], words))
    again = np.zeros(len(rows), np.bool_)
    again[1:] = words[order][1:] == words[order][:-1]
    if not again.any():
        return probability
    group = np.cumsum(~again) - 1
    again &= np.bincount(group)[group] <= MAX_COPIES
    found = probability.copy()
    found[rows[order[again]]] = 0.0
    return found
