"""Lines that say again what another line of the page says: a page built for two widths of screen, a carousel."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from corpusmill.compiled import kernel
from corpusmill.extractor.scan.scan import Line, Scan

MIN_WORDS = 12
"""Shorter lines may well be meant twice: cells of a table, a refrain, a line of code."""
MAX_COPIES = 3
"""A line said more often than a layout would repeat it is the page's own doing: rules of repetition are to see it."""


def without_copies(page: Scan, probability: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities, 0 for all but the likeliest (the first of equals) of two or three with the same words."""
    found = probability.copy()
    _drop_copies(page.lines, probability, found)
    return found


@kernel
def _drop_copies(lines, probability, found):  # type: ignore[no-untyped-def]
    n_long = 0
    for r in range(len(lines)):
        n_long += lines[r, Line.WORDS] >= MIN_WORDS
    size = 4
    while size < 2 * n_long:
        size *= 2
    best, counts = np.full(size, -1, np.int64), np.zeros(size, np.int64)  # of the lines with the same words
    slots = np.full(len(lines), -1, np.int64)
    for r in range(len(lines)):
        if lines[r, Line.WORDS] < MIN_WORDS:
            continue
        key = lines[r, Line.HASH]
        slot = (key ^ key >> 31) & (size - 1)
        while best[slot] >= 0 and lines[best[slot], Line.HASH] != key:
            slot = (slot + 1) & (size - 1)
        if best[slot] < 0 or probability[r] > probability[best[slot]]:
            best[slot] = r
        counts[slot] += 1
        slots[r] = slot
    for r in range(len(lines)):
        slot = slots[r]
        if slot >= 0 and best[slot] != r and counts[slot] <= MAX_COPIES:
            found[r] = 0.0
