"""Numbers about each line of a page, for the model: of the line, its neighbours, its containers and the page.

No word of the text is looked at, only counts, punctuation and markup, so that a model carries over to other languages.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from corpusmill.compiled import inner, kernel
from corpusmill.extractor.scan import vocabulary as v
from corpusmill.extractor.scan.scan import Scan
from corpusmill.kernels.elementary import log

NEIGHBOURS = 3
WINDOWS = (2, 7, 20)
"""Lines on each side."""
LEVELS = 5
"""Containers around a line that are looked at one by one."""
PAGE_ROLES = ("comment", "forum", "product", "code", "article", "list", "review", "card", "content")
LONG_WORDS = 20


_LINE = """chars words link_share links_per_word ends ends_per_word commas digits capitals separators first last kind
list_depth depth bold_share title_share title_cover in_row cell soft symbols chars_per_word letters_share line_place
word_place byte_place lines_after words_after words_before page_lines page_words page_link_share page_p page_li
page_cell page_long page_long_lines page_ends page_density page_h1 page_pre page_boxes"""
_DISTANCES = "since_h1 words_since_h1 to_longest since_heading words_since_heading to_heading heading_kind"


def _names() -> Iterator[str]:
    yield from _LINE.split()
    yield from (f"page_{role}" for role in PAGE_ROLES)
    yield from _DISTANCES.split()
    for step in (*range(-NEIGHBOURS, 0), *range(1, NEIGHBOURS + 1)):
        yield from (f"{name}_{step:+d}" for name in ("words", "link_share", "kind", "ends"))
    for reach in WINDOWS:
        yield from (f"{name}_w{reach}" for name in ("words", "link_share", "ends", "short"))
    yield from ("same", "same_before")
    for level in range(1, LEVELS + 1):
        yield from (f"{name}_c{level}" for name in ("share", "link_share", "words", "ends", "lines", "place", "good"))
    for level in range(1, 4):
        yield from (f"{name}_c{level}" for name in ("twins", "twin_share"))
    yield from ["in_best", "in_best_parent", "in_half", "in_most", "best_share", "near_tag"]
    yield from (f"in_{role}" for role in v.ROLES)
    yield from (f"near_{role}" for role in v.ROLES)


NAMES = tuple(_names())
"""Names of the columns."""

_FIRST_PAGE = NAMES.index("page_lines")
_LAST_PAGE = NAMES.index("since_h1")
_PAGE_ROLE_BITS = np.array([list(v.ROLES).index(role) for role in PAGE_ROLES], np.int64)
_WINDOWS = np.array(WINDOWS, np.int64)


def features(page: Scan) -> NDArray[np.float32]:
    """float32[L, len(NAMES)]."""
    x = np.empty((len(page.lines), len(NAMES)), np.float32)
    if len(page.lines):
        _fill(page.lines, page.boxes, page.title_words, page.size, _logs(), x)
    return x


@cache
def _logs() -> NDArray[np.float32]:
    """log(1 + k) for small k: most logarithms of features are of counts."""
    return _log_table(4096)


@kernel
def _log_table(size):  # type: ignore[no-untyped-def]
    table = np.empty(size, np.float32)
    for k in range(size):
        table[k] = log(1.0 + k)
    return table


@inner
def _log_of(logs, count):  # type: ignore[no-untyped-def]
    """log(1 + count) of a count, from the table where it has it."""
    return logs[count] if count < len(logs) else np.float32(log(1.0 + count))


@inner
def _twins(lines, boxes, words):  # type: ignore[no-untyped-def]
    """Number and words of the containers with the same signature, of each container."""
    n = len(boxes)
    size = 4
    while size < 2 * n:
        size *= 2
    keys, counts, sums = np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.int64)
    slots = np.empty(n, np.int64)
    for b in range(n):
        key = boxes[b, 4] | 1
        slot = (key ^ key >> 29) & (size - 1)
        while keys[slot] != 0 and keys[slot] != key:
            slot = (slot + 1) & (size - 1)
        keys[slot] = key
        counts[slot] += 1
        sums[slot] += words[boxes[b, 6]] - words[boxes[b, 5]]
        slots[b] = slot
    return slots, counts, sums


@inner
def _repeats(lines):  # type: ignore[no-untyped-def]
    """How often each line's words stand on the page, and how often before it."""
    n = len(lines)
    size = 4
    while size < 2 * n:
        size *= 2
    keys, counts = np.zeros(size, np.int64), np.zeros(size, np.int64)
    slots, before = np.empty(n, np.int64), np.empty(n, np.int64)
    for r in range(n):
        key = lines[r, 25] | 1
        slot = (key ^ key >> 31) & (size - 1)
        while keys[slot] != 0 and keys[slot] != key:
            slot = (slot + 1) & (size - 1)
        keys[slot] = key
        before[r] = counts[slot]
        counts[slot] += 1
        slots[r] = slot
    return slots, counts, before


@kernel
def _fill(lines, boxes, title_words, size, logs, x):  # type: ignore[no-untyped-def]
    n, n_boxes = len(lines), len(boxes)
    words, links, chars = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    ends, short, good = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64), np.zeros(n + 1, np.float64)
    roles_words = np.zeros(32, np.float64)
    p_words = li_words = cell_words = long_words = long_lines = h1_lines = pre_lines = 0
    first_h1 = longest = -1
    longest_words = 0
    own = np.zeros(n_boxes, np.float64)
    for r in range(n):
        w, kind = lines[r, 3], lines[r, 14]
        words[r + 1] = words[r] + w
        chars[r + 1] = chars[r] + lines[r, 2]
        links[r + 1] = links[r] + lines[r, 4]
        ends[r + 1] = ends[r] + lines[r, 7]
        short[r + 1] = short[r] + (w < 8)
        value = 0.0
        if w >= 8 and (lines[r, 7] > 0 or lines[r, 8] > 0 or w > 15):
            value = w * (1.0 - lines[r, 4] / max(lines[r, 2], 1))
        good[r + 1] = good[r] + value
        box = lines[r, 17]
        own[box] += value
        own[boxes[box, 0]] += 0.5 * value
        roles = boxes[box, 3]
        for b in range(32):
            if roles >> b & 1:
                roles_words[b] += w
        p_words += w if kind == 1 else 0
        li_words += w if kind == 6 else 0
        cell_words += w if kind == 8 else 0
        pre_lines += kind == 7
        if w >= 20:
            long_words += w
            long_lines += 1
        if kind == 2:
            h1_lines += 1
            if first_h1 < 0:
                first_h1 = r
        if w > longest_words and lines[r, 4] * 2 < lines[r, 2]:
            longest, longest_words = r, w
    total, total_good = max(words[n], 1), max(good[n], 1.0)
    best, half, most = 0, 0, 0
    for b in range(n_boxes):
        if own[b] > own[best]:
            best = b
        inside = good[boxes[b, 6]] - good[boxes[b, 5]]
        if inside >= 0.5 * total_good:
            half = b
        if inside >= 0.8 * total_good:
            most = b
    best_parent = boxes[best, 0]
    slots, twin_counts, twin_words = _twins(lines, boxes, words)
    same_slots, same_counts, same_before = _repeats(lines)
    next_heading = np.full(n + 1, n, np.int64)
    for r in range(n - 1, -1, -1):
        next_heading[r] = r if 2 <= lines[r, 14] <= 5 else next_heading[r + 1]
    role_shares = roles_words / total
    of_page = np.empty(_LAST_PAGE, np.float32)  # the same in all lines
    of_page[30], of_page[31], of_page[32] = _log_of(logs, n), _log_of(logs, total), links[n] / max(chars[n], 1)
    of_page[33], of_page[34], of_page[35] = p_words / total, li_words / total, cell_words / total
    of_page[36], of_page[37], of_page[38] = long_words / total, _log_of(logs, long_lines), ends[n] / total
    of_page[39], of_page[40], of_page[41], of_page[42] = (
        log(1.0 + size / total),
        h1_lines,
        pre_lines,
        _log_of(logs, n_boxes),
    )
    for k in range(len(_PAGE_ROLE_BITS)):
        of_page[43 + k] = role_shares[_PAGE_ROLE_BITS[k]]
    log_words, link_shares = np.empty(n, np.float32), np.empty(n, np.float32)
    for r in range(n):
        log_words[r], link_shares[r] = _log_of(logs, lines[r, 3]), lines[r, 4] / max(lines[r, 2], 1)
    heading, heading_kind = -1, 0
    for r in range(n):
        row = lines[r]
        w, c, kind = row[3], max(row[2], 1), row[14]
        w1 = max(w, 1)
        f = 0
        o = x[r]
        # the line
        o[0], o[1], o[2], o[3] = _log_of(logs, row[2]), log_words[r], link_shares[r], row[6] / w1
        o[4], o[5], o[6], o[7] = row[7], row[7] / w1, row[8] / w1, row[9] / c
        o[8], o[9], o[10], o[11] = row[10] / w1, row[11], row[12], row[13]
        o[12], o[13], o[14], o[15] = kind, row[15], row[16], row[18] / c
        o[16], o[17], o[18] = row[19] / w1, row[19] / max(title_words, 1), row[20] > 0
        o[19], o[20], o[21], o[22], o[23] = row[21], row[22], row[26] / c, row[2] / w1, row[27] / c
        # its place
        o[24], o[25], o[26] = r / n, words[r] / total, row[23] / max(size, 1)
        o[27], o[28], o[29] = _log_of(logs, n - r - 1), _log_of(logs, words[n] - words[r + 1]), _log_of(logs, words[r])
        # the page
        for f in range(_FIRST_PAGE, _LAST_PAGE):
            o[f] = of_page[f]
        f = _LAST_PAGE
        # distances
        o[f] = r - first_h1 if first_h1 >= 0 else -1000
        o[f + 1] = words[r] - words[first_h1] if first_h1 >= 0 else -10000
        o[f + 2] = r - longest if longest >= 0 else -1000
        if 2 <= kind <= 5:
            heading, heading_kind = r, kind
        o[f + 3] = r - heading if heading >= 0 else -1
        o[f + 4] = words[r] - words[heading] if heading >= 0 else -1
        o[f + 5] = next_heading[r + 1] - r
        o[f + 6] = heading_kind
        f += 7
        for step in range(-NEIGHBOURS, NEIGHBOURS + 1):
            if step == 0:
                continue
            q = r + step
            if 0 <= q < n:
                o[f], o[f + 1] = log_words[q], link_shares[q]
                o[f + 2], o[f + 3] = lines[q, 14], lines[q, 7]
            else:
                o[f] = o[f + 1] = o[f + 2] = o[f + 3] = -1
            f += 4
        for k in range(len(_WINDOWS)):
            a, b = max(0, r - _WINDOWS[k]), min(n, r + _WINDOWS[k] + 1)
            inside = max(words[b] - words[a], 1)
            o[f], o[f + 1] = log(1.0 + inside / (b - a)), (links[b] - links[a]) / max(chars[b] - chars[a], 1)
            o[f + 2], o[f + 3] = (ends[b] - ends[a]) / inside, (short[b] - short[a]) / (b - a)
            f += 4
        o[f], o[f + 1] = same_counts[same_slots[r]], same_before[r]
        f += 2
        # containers
        box = row[17]
        for _ in range(LEVELS):
            a, b = boxes[box, 5], max(boxes[box, 6], boxes[box, 5] + 1)
            b = min(b, n)
            inside = max(words[b] - words[a], 1)
            o[f], o[f + 1] = inside / total, (links[b] - links[a]) / max(chars[b] - chars[a], 1)
            o[f + 2], o[f + 3] = log(1.0 + inside / max(b - a, 1)), (ends[b] - ends[a]) / inside
            o[f + 4], o[f + 5] = _log_of(logs, b - a), (r - a) / max(b - a, 1)
            o[f + 6] = (good[b] - good[a]) / total_good
            f += 7
            box = boxes[box, 0]
        box = row[17]
        for _ in range(3):
            o[f], o[f + 1] = _log_of(logs, twin_counts[slots[box]]), twin_words[slots[box]] / total
            f += 2
            box = boxes[box, 0]
        o[f] = boxes[best, 5] <= r < boxes[best, 6]
        o[f + 1] = boxes[best_parent, 5] <= r < boxes[best_parent, 6]
        o[f + 2] = boxes[half, 5] <= r < boxes[half, 6]
        o[f + 3] = boxes[most, 5] <= r < boxes[most, 6]
        o[f + 4] = own[row[17]] / max(own[best], 1.0)
        o[f + 5] = boxes[row[17], 1]
        f += 6
        box = row[17]
        roles, leaf = boxes[box, 3], row[24]
        first, second = boxes[box, 2], boxes[boxes[box, 0], 2]
        third = boxes[boxes[boxes[box, 0], 0], 2]
        for b in range(32):
            o[f] = (roles >> b & 1) - role_shares[b]
            near = 0
            if leaf >> b & 1:
                near = 4
            elif first >> b & 1:
                near = 3
            elif second >> b & 1:
                near = 2
            elif third >> b & 1:
                near = 1
            o[f + 32] = near
            f += 1
