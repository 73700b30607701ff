"""Which lines of a page belong to its truth: a longest common subsequence of words.

Of a line's words, those that the subsequence takes count; its label is their share.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

MAX_CELLS = 150_000_000
"""Longer pages are matched as multisets."""


def matched(page: NDArray[np.int32], truth: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which of the page's words the truth has, bool[len(page)]."""
    start = 0
    end = len(page)
    if len(page) * max(len(truth), 1) > MAX_CELLS:
        left = np.bincount(truth, minlength=int(page.max(initial=0)) + 1)
        out = np.zeros(len(page), np.bool_)
        for i, word in enumerate(page):
            if left[word] > 0:
                left[word] -= 1
                out[i] = True
        return out
    return _common(page[start:end], truth)


@numba.njit(cache=True, nogil=True)
def _common(a, b):  # type: ignore[no-untyped-def]
    """A subsequence of most words, where runs count more than single words: a match after a match scores 3, alone 2."""
    n, m = len(a), len(b)
    best_before, best = np.zeros(m + 1, np.int32), np.zeros(m + 1, np.int32)
    run_before, run = np.full(m + 1, -1, np.int32), np.full(m + 1, -1, np.int32)
    step = np.zeros((n + 1, m + 1), np.uint8)  # 1 match, 2 skip a, 3 skip b; 4: the match goes on a run
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            up, left = best_before[j], best[j - 1]
            choice = 2 if up >= left else 3
            value = up if up >= left else left
            run[j] = -1
            if a[i - 1] == b[j - 1]:
                alone = best_before[j - 1] + 2
                joined = run_before[j - 1] + 3 if run_before[j - 1] >= 0 else -1
                run[j] = joined if joined >= alone else alone
                if joined >= alone:
                    choice |= 4
                if run[j] >= value:
                    value = run[j]
                    choice = (choice & 4) | 1
            best[j] = value
            step[i, j] = choice
        best_before, best = best, best_before
        run_before, run = run, run_before
    out = np.zeros(n, np.bool_)
    i, j = n, m
    forced = False
    while i > 0 and j > 0:
        how = step[i, j]
        if forced or how & 3 == 1:
            out[i - 1] = True
            forced = how & 4 != 0
            i, j = i - 1, j - 1
        elif how & 3 == 2:
            i -= 1
        else:
            j -= 1
    return out
