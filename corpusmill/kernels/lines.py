"""Counts over the lines and paragraphs of texts: bullets, ellipses, duplicates.

Two notions of a line, as in datatrove's filters: `str.splitlines` for bullets and ellipses, and the text cut at runs of
line feeds for duplicates (so a text that begins or ends with a line feed has an empty first or last segment).
Paragraphs are the stripped text cut at two or more line feeds.

Method: one pass over the bytes notes, without a branch, where line breaks, "#", "." and "…" may be; all else looks at
these places only. Segments and paragraphs are told apart by 64-bit hashes.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numba
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.kernels.bytehash import U, address_of, hash_bytes, load8, load64
from corpusmill.kernels.bytescan import ONES, count_characters, equal_bytes, trim_left, trim_right
from corpusmill.kernels.words import text_buffers

LINE_COUNTS = (
    "chars",  # characters of the text
    "hash_marks",  # "#"
    "ellipses",  # "..." (not overlapping) and "…"
    "lines",  # str.splitlines
    "body_lines",  # that are not blank
    "bullet_lines",  # that begin with "•" or "-", after blanks
    "ellipsis_lines",  # that end with "..." or "…", before blanks
    "segments",  # the text cut at runs of line feeds
    "dup_segments",  # second and later copies of a segment
    "dup_segment_chars",
    "paragraphs",
    "dup_paragraphs",
    "dup_paragraph_chars",
)
"""Columns of `count_lines`."""

_LF, _CR, _HASH, _DOT, _DASH = U(0x0A), U(0x0D), U(0x23), U(0x2E), U(0x2D)
_HIGH = U(0x8080808080808080)
_CANDIDATES = b"\n\v\f\r\x1c\x1d\x1e#.\xc2\xe2"  # first bytes of line breaks, "#", "." and "…"
_PARAGRAPH = U(0x5851F42D4C957F2D)  # tells the hash of a paragraph from that of an equal segment


def count_lines(text: pa.LargeStringArray) -> NDArray[np.int64]:
    """Counts of each document, int64[D, len(LINE_COUNTS)].

    Raises:
        ValueError: not a large_string array, or one with nulls.
    """
    data, bounds = text_buffers(text)
    counts = np.zeros((len(text), len(LINE_COUNTS)), np.int64)
    candidates = _candidates()
    places = np.empty(int(np.diff(bounds).max(initial=0)) + 1, np.int32)
    _count(address_of(data), bounds, address_of(candidates), places, counts)
    return counts


@cache
def _candidates() -> NDArray[np.uint8]:
    """Whether each byte is one of _CANDIDATES, uint8[256]."""
    return np.isin(np.arange(256), np.frombuffer(_CANDIDATES, np.uint8)).astype(np.uint8)


@numba.njit(nogil=True, inline="always")
def _has_candidate(chunk: U) -> Any:
    """Whether one of eight bytes may be a candidate: any below 0x20 will do."""
    found = (chunk - U(0x20) * ONES) & ~chunk & _HIGH
    found |= equal_bytes(chunk, _HASH * ONES) | equal_bytes(chunk, _DOT * ONES)
    return (found | equal_bytes(chunk, U(0xC2) * ONES) | equal_bytes(chunk, U(0xE2) * ONES)) != U(0)


@numba.njit(nogil=True, cache=True)
def _is_wide(at: U, end: U, low: U, high: U) -> Any:
    """Whether a character U+2000 + low to U+2000 + high lies at an address (low, high < 0x40)."""
    return (
        at + U(3) <= end
        and load8(at) == U(0xE2)
        and load8(at + U(1)) == U(0x80)
        and U(0x80) + low <= load8(at + U(2)) <= U(0x80) + high
    )


@numba.njit(nogil=True, cache=True)
def _is_dots(at: U, end: U) -> Any:
    return at + U(3) <= end and load8(at) == _DOT and load8(at + U(1)) == _DOT and load8(at + U(2)) == _DOT


@numba.njit(nogil=True, cache=True)
def _is_bullet(at: U, end: U) -> Any:
    return at < end and (load8(at) == _DASH or _is_wide(at, end, U(0x22), U(0x22)))


@numba.njit(nogil=True, cache=True)
def _is_ellipsis_line(at: U, end: U) -> Any:
    end = trim_right(at, end)
    return end - at >= U(3) and (_is_dots(end - U(3), end) or _is_wide(end - U(3), end, U(0x26), U(0x26)))


@numba.njit(nogil=True, cache=True)
def _count(
    data: U, bounds: NDArray[np.int64], candidates: U, places: NDArray[np.int32], counts: NDArray[np.int64]
) -> None:
    keys = np.empty(1 << 10, np.uint64)  # open addressing; a slot is used where its stamp is that of the document
    stamps = np.full(1 << 10, -1, np.int64)
    for d in range(len(bounds) - 1):
        text, size = data + U(bounds[d]), U(bounds[d + 1]) - U(bounds[d])
        end = text + size
        chars = count_characters(text, end)
        last, i = U(0), U(0)
        while i < size:
            to = i + U(1)
            if i + U(8) <= size:
                to = i + U(8)
                if not _has_candidate(load64(text + i)):
                    i = to
                    continue
            while i < to:
                places[last] = i
                last += load8(candidates + load8(text + i))
                i += U(1)

        hash_marks, ellipses, lines, bodies, bullets, trailing = U(0), U(0), U(0), U(0), U(0), U(0)
        line, dots, j = text, text, U(0)
        while j <= last:  # one step more than places: the end of the text
            at = text + U(places[j]) if j < last else end
            j += U(1)
            width = U(1)
            if at < end:
                byte = load8(at)
                if byte == _HASH:
                    hash_marks += U(1)
                    continue
                if byte == _DOT:
                    if at >= dots and _is_dots(at, end):
                        ellipses += U(1)
                        dots = at + U(3)
                    continue
                if byte == _CR:
                    width += U(at + U(1) < end and load8(at + U(1)) == _LF)
                elif byte == U(0xC2):
                    if at + U(2) > end or load8(at + U(1)) != U(0x85):
                        continue
                    width = U(2)
                elif byte == U(0xE2):
                    if not _is_wide(at, end, U(0x28), U(0x29)):
                        ellipses += U(_is_wide(at, end, U(0x26), U(0x26)))
                        continue
                    width = U(3)
            if at < line or (at == end and line == end):  # the line feed of CR LF; no line after the last break
                continue
            lines += U(1)
            begin = trim_left(line, at)
            bodies += U(begin < at)
            bullets += U(_is_bullet(begin, at))
            trailing += U(_is_ellipsis_line(line, at))
            line = at + width

        slots = U(16)
        while slots < U(4) * (last + U(1)):
            slots *= U(2)
        if slots > U(len(keys)):
            keys = np.empty(slots, np.uint64)
            stamps = np.full(slots, -1, np.int64)
        first, beyond = trim_left(text, end), end
        beyond = trim_right(first, end)
        if first == end:
            first = beyond = text
        segment, paragraph = text, first
        segments, dup_segments, dup_segment_chars = U(0), U(0), U(0)
        paragraphs, dup_paragraphs, dup_paragraph_chars = U(0), U(0), U(0)
        j = U(0)
        while j <= last:
            at = text + U(places[j]) if j < last else end
            j += U(1)
            if at < end and load8(at) != _LF:
                continue
            after = at
            while after < end and load8(after) == _LF:
                after += U(1)
            j += after - at - U(at < end)  # each line feed is a place
            for k in range(2):
                if k == 0:
                    begin, stop, salt = segment, at, U(0)
                    segments += U(1)
                    segment = after
                else:
                    begin, stop, salt = paragraph, min(at, beyond), _PARAGRAPH
                    if at < end and not (after - at >= U(2) and first < at < beyond):
                        continue
                    paragraphs += U(1)
                    paragraph = after
                key = hash_bytes(begin, stop - begin) ^ salt
                slot = key & (slots - U(1))
                while stamps[slot] == d and keys[slot] != key:
                    slot = (slot + U(1)) & (slots - U(1))
                if stamps[slot] != d:
                    stamps[slot], keys[slot] = d, key
                elif k == 0:
                    dup_segments += U(1)
                    dup_segment_chars += count_characters(begin, stop)
                else:
                    dup_paragraphs += U(1)
                    dup_paragraph_chars += count_characters(begin, stop)

        counts[d, 0], counts[d, 1], counts[d, 2], counts[d, 3] = chars, hash_marks, ellipses, lines
        counts[d, 4], counts[d, 5], counts[d, 6] = bodies, bullets, trailing
        counts[d, 7], counts[d, 8], counts[d, 9] = segments, dup_segments, dup_segment_chars
        counts[d, 10], counts[d, 11], counts[d, 12] = paragraphs, dup_paragraphs, dup_paragraph_chars
