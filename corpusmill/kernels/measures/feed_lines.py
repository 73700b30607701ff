"""Counts over lines and paragraphs cut at line feeds alone, in the styles of Dolma, DCLM, NeMo and RedPajama.

| style | a line is | bullets | ellipses at the end |
|---|---|---|---|
| DOLMA | what is between line feeds, empty too | `*` `-`, first character | `…` |
| DCLM | the same, white space around it taken off, empty left out | `●` `•` `*` `-` | `...` `. . .` `…` |
| NEMO | what is between line feeds and not blank | 12 signs, after blanks | 8 forms, "read more" among them |
| REDPAJAMA | what ends with a line feed or the text | 10 signs, after blanks | `...` `…`, before blanks |

Duplicates are found by 64-bit hashes of what each style calls a line.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.compiled import inner, kernel
from corpusmill.kernels.bytes.blanks import starts_with, starts_with_lower
from corpusmill.kernels.bytes.bytehash import U, address_of, hash_bytes, load8
from corpusmill.kernels.bytes.bytescan import count_byte, count_characters, find_byte, trim_left, trim_right
from corpusmill.kernels.words.table import text_buffers

DOLMA, DCLM, NEMO, REDPAJAMA = range(4)

FEED_COUNTS = (
    "lines",
    "chars",  # of the lines
    "later_copies",  # second and later copies of a line
    "later_copy_chars",
    "copies",  # all copies of a line that occurs twice or more
    "copy_chars",
    "end_marks",  # NeMo: lines that end with . ? ! " '
    "bullets",
    "ellipses",
)
"""Columns of `count_feed_lines`."""

_BULLETS = {
    DOLMA: "*-",
    DCLM: "●•*-",
    NEMO: "•‣⁃⁌⁍∙○●◘◦⦾⦿",
    REDPAJAMA: "•‣▶◀◦■□▪▫–",
}
_ELLIPSES = {
    DOLMA: ("…",),
    DCLM: ("...", ". . .", "…"),
    NEMO: ("...", "[...]", "…", "(...)", "[…]", "-»", "read more..", "read more"),
    REDPAJAMA: ("...", "…"),
}
_MARKS = {NEMO: (".", "?", "!", '"', "'")}
_FEED = U(0x0A)


def count_feed_lines(text: pa.LargeStringArray, style: int, paragraphs: bool = False) -> NDArray[np.int64]:
    """Counts of each document, int64[D, len(FEED_COUNTS)].

    Args:
        text: large_string[D] without nulls.
        style: whose lines.
        paragraphs: cut at two line feeds in a row instead of at one.
    """
    data, bounds = text_buffers(text)
    counts = np.zeros((len(text), len(FEED_COUNTS)), np.int64)
    items, lists, blob = _strings(style)
    feeds = int(_most_feeds(address_of(data), bounds)) + 2
    slots = 1 << (2 * feeds).bit_length()
    _count(
        address_of(data),
        bounds,
        style,
        2 if paragraphs else 1,
        items,
        lists,
        address_of(blob),
        np.empty(slots, np.uint64),
        np.full(slots, -1, np.int64),
        np.empty(slots, np.int64),
        counts,
    )
    return counts


@cache
def _strings(style: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]:
    """Places and sizes of strings, int64[I, 2]; where bullets, ellipses and end marks begin and end among them,
    int64[6]; the strings."""
    groups = [tuple(_BULLETS.get(style, "")), _ELLIPSES.get(style, ()), _MARKS.get(style, ())]
    encoded = [string.encode() for group in groups for string in group]
    ends = np.cumsum([len(string) for string in encoded]).astype(np.int64)
    sizes = np.array([len(string) for string in encoded], np.int64)
    lasts = np.cumsum([len(group) for group in groups])
    lists = np.array([0, lasts[0], lasts[0], lasts[1], lasts[1], lasts[2]], np.int64)
    return np.stack([ends - sizes, sizes], axis=1), lists, np.frombuffer(b"".join(encoded) + b"\0", np.uint8)


@kernel
def _most_feeds(data: U, bounds: NDArray[np.int64]) -> U:
    most = U(0)
    for d in range(len(bounds) - 1):
        most = max(most, count_byte(data + U(bounds[d]), data + U(bounds[d + 1]), _FEED))
    return most


@inner
def _begins(at: U, end: U, items: NDArray[np.int64], first: int, last: int, blob: U) -> Any:
    found, k = False, first
    while not found and k < last:
        found = starts_with(at, end, blob + U(items[k, 0]), U(items[k, 1]))
        k += 1
    return found


@inner
def _ends(at: U, end: U, items: NDArray[np.int64], first: int, last: int, blob: U) -> Any:
    """A to Z in either case, where the strings have small letters."""
    for k in range(first, last):
        size = U(items[k, 1])
        if end - at >= size and starts_with_lower(end - size, end, blob + U(items[k, 0]), size):
            return True
    return False


@kernel
def _count(
    data: U,
    bounds: NDArray[np.int64],
    style: int,
    feeds: int,
    items: NDArray[np.int64],
    lists: NDArray[np.int64],
    blob: U,
    keys: NDArray[np.uint64],
    stamps: NDArray[np.int64],
    times: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> None:
    slots = U(len(keys) - 1)
    keep_blank = style in (DOLMA, REDPAJAMA) or (style == NEMO and feeds == 2)
    for d in range(len(bounds) - 1):
        line, end = data + U(bounds[d]), data + U(bounds[d + 1])
        row = counts[d]
        more = True
        while more:
            stop = find_byte(line, end, _FEED)
            while feeds == 2 and stop < end and not (stop + U(1) < end and load8(stop + U(1)) == _FEED):
                stop = find_byte(stop + U(1), end, _FEED)
            at, to, following = line, stop, stop + U(feeds)
            more = bool(stop < end)
            line = following
            if style == REDPAJAMA and not more and at == to:
                break  # nothing follows the last line feed
            first, beyond = trim_left(at, to), trim_right(at, to)
            if style == DCLM:
                at, to = first, max(beyond, first)
            if first >= to and not keep_blank:
                continue
            if first >= to:
                beyond = first = to
            chars = int(count_characters(at, to))
            row[0] += 1
            row[1] += chars
            shown = at if style == DOLMA else first
            row[7] += _begins(shown, to, items, lists[0], lists[1], blob)
            shown = beyond if style in (NEMO, REDPAJAMA) else to
            row[8] += _ends(at, shown, items, lists[2], lists[3], blob)
            row[6] += _ends(at, shown, items, lists[4], lists[5], blob)
            key = hash_bytes(at, to - at)
            slot = key & slots
            while stamps[slot] == d and keys[slot] != key:
                slot = (slot + U(1)) & slots
            if stamps[slot] != d:
                stamps[slot], keys[slot], times[slot] = d, key, 1
                continue
            times[slot] += 1
            again = 2 if times[slot] == 2 else 1  # the first copy counts when the second comes
            row[2] += 1
            row[3] += chars
            row[4] += again
            row[5] += again * chars
