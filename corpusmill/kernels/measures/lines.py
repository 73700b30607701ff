"""Counts over the lines and paragraphs of texts: bullets, ellipses, end marks, duplicates.

Three notions of a line, as in datatrove's filters: `str.splitlines` for bullets and ellipses, the text cut at runs of
line feeds for duplicates (so a text that begins or ends with a line feed has an empty first or last segment), and of
these segments those that are not blank for FineWeb. Paragraphs are the stripped text cut at two or more line feeds.

Method: one pass over blocks of 64 bytes notes where line breaks, "..." and "…" may be; all else looks at these places
only. Segments and paragraphs are compared by 64-bit hashes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.compiled import inner, kernel
from corpusmill.kernels.bytes.bytehash import U, address_of, hash_bytes, load8
from corpusmill.kernels.bytes.bytemasks import bit_count, block, in_span, lowest_bit
from corpusmill.kernels.bytes.bytescan import count_characters, trim_left, trim_right
from corpusmill.kernels.bytes.unicode_table import END_MARK, load_table
from corpusmill.kernels.bytes.utf8 import decode
from corpusmill.kernels.words.table import text_buffers

if TYPE_CHECKING:
    from corpusmill.kernels.measures.slices import Slice

MEASURES = {
    "hash_ratio": {
        "family": "gopher",
        "definition": "datatrove",
        "of": "hash_marks / tokens",
        "says": "`#` per token",
    },
    "ellipsis_ratio": {
        "family": "gopher",
        "definition": "datatrove",
        "of": "ellipses / tokens",
        "says": "`...` (not overlapping) and `…` per token",
    },
    "bullet_line_ratio": {
        "family": "gopher",
        "definition": "datatrove",
        "of": "bullet_lines / lines",
        "says": "lines of `str.splitlines` that begin with `•` or `-`",
    },
    "ellipsis_line_ratio": {
        "family": "gopher",
        "definition": "datatrove",
        "of": "ellipsis_lines / lines",
        "says": "lines of `str.splitlines` that end with an ellipsis",
    },
    "dup_line_ratio": {
        "family": "gopher",
        "definition": "datatrove",
        "of": "dup_segments / segments",
        "says": "second and later copies of a line",
    },
    "dup_paragraph_ratio": {
        "family": "gopher",
        "definition": "datatrove",
        "of": "dup_paragraphs / paragraphs",
        "says": "second and later copies of a paragraph",
    },
    "dup_line_char_ratio": {
        "family": "gopher",
        "definition": "datatrove",
        "of": "dup_segment_chars / chars",
        "says": "characters in second and later copies of a line",
    },
    "dup_paragraph_char_ratio": {
        "family": "gopher",
        "definition": "datatrove",
        "of": "dup_paragraph_chars / chars",
        "says": "characters in second and later copies of a paragraph",
    },
    "bullet_body_ratio": {
        "family": "body",
        "definition": "corpusmill",
        "of": "bullet_lines / body_lines",
        "says": "as `bullet_line_ratio`, blank lines left out: our extractor separates paragraphs by them",
    },
    "end_mark_line_ratio": {
        "family": "fineweb",
        "definition": "datatrove",
        "of": "marked_lines / written_lines",
        "says": "of lines that are not blank, those that end with one of 159 end marks of many scripts",
    },
    "short_line_ratio": {
        "family": "fineweb",
        "definition": "datatrove",
        "of": "short_lines / written_lines",
        "says": "of lines that are not blank, those of at most 30 characters",
    },
    "dup_line_body_ratio": {
        "family": "fineweb",
        "definition": "datatrove",
        "of": "dup_written_chars / feedless_chars",
        "says": "characters of later copies of lines that are not blank, of all characters but line feeds",
    },
    "line_break_ratio": {
        "family": "fineweb",
        "definition": "datatrove",
        "of": "line_feeds / tokens",
        "says": "line feeds per token",
    },
    "char_count": {"family": "page", "definition": "datatrove", "of": "chars", "says": "characters"},
}

COUNTS = (
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
    "line_feeds",
    "feedless_chars",  # the other characters
    "written_lines",  # pieces between line feeds that are not blank
    "marked_lines",  # of them, those that end with one of unicode_table.END_MARKS
    "short_lines",  # those of at most SHORT_LINE characters
    "dup_written_chars",  # characters of second and later copies among them
)
"""Columns of `count_lines`."""

SHORT_LINE = 30
"""Characters: FineWeb's short lines."""

_LF, _CR, _HASH, _DOT, _DASH = U(0x0A), U(0x0D), U(0x23), U(0x2E), U(0x2D)
_LAST, _LAST_TWO = U(1 << 63), U(3 << 62)  # what follows the last bytes of a block is not known yet
_END, _SHORT = U(END_MARK), U(SHORT_LINE)
_PARAGRAPH = U(0x5851F42D4C957F2D)  # tells the hash of a paragraph from that of an equal segment


def count(piece: Slice) -> NDArray[np.int64]:
    """Counts of each document, int64[D, len(COUNTS)]."""
    return count_lines(piece.text)


def count_lines(text: pa.LargeStringArray) -> NDArray[np.int64]:
    """Counts of each document, int64[D, len(COUNTS)].

    Raises:
        ValueError: not a large_string array, or one with nulls.
    """
    data, bounds = text_buffers(text)
    counts = np.zeros((len(text), len(COUNTS)), np.int64)
    table = load_table()
    places = np.empty(int(np.diff(bounds).max(initial=0)) + 1, np.int32)
    _count(address_of(data), bounds, address_of(table), places, counts)
    return counts


@inner
def _is_wide(at: U, end: U, low: U, high: U) -> Any:
    """Whether a character U+2000 + low to U+2000 + high lies at an address (low, high < 0x40)."""
    return (
        at + U(3) <= end
        and load8(at) == U(0xE2)
        and load8(at + U(1)) == U(0x80)
        and U(0x80) + low <= load8(at + U(2)) <= U(0x80) + high
    )


@inner
def _is_dots(at: U, end: U) -> Any:
    return at + U(3) <= end and load8(at) == _DOT and load8(at + U(1)) == _DOT and load8(at + U(2)) == _DOT


@inner
def _is_bullet(at: U, end: U) -> Any:
    return at < end and (load8(at) == _DASH or _is_wide(at, end, U(0x22), U(0x22)))


@inner
def _is_ellipsis_line(at: U, end: U) -> Any:
    end = trim_right(at, end)
    return end - at >= U(3) and (_is_dots(end - U(3), end) or _is_wide(end - U(3), end, U(0x26), U(0x26)))


@inner(forceinline=True)
def _met(keys: NDArray[np.uint64], stamps: NDArray[np.int64], slots: U, d: int, key: U) -> Any:
    """Whether a document has had a key before; then it has."""
    slot = key & (slots - U(1))
    while stamps[slot] == d and keys[slot] != key:
        slot = (slot + U(1)) & (slots - U(1))
    if stamps[slot] == d:
        return True
    stamps[slot], keys[slot] = d, key
    return False


@inner(forceinline=True)
def _candidates(at: U, end: U) -> tuple[U, U, U, U]:
    """Of the next 64 bytes of a text: where line breaks, "..." and "…" may begin; how many characters, number signs
    and line feeds."""
    place, shift, keep = block(at, end)
    feeds = in_span(place, U(0), _LF, U(1))
    found = in_span(place, U(0), _LF, U(4)) | in_span(place, U(0), U(0x1C), U(3))
    dots = in_span(place, U(0), _DOT, U(1))
    found |= dots & (dots >> U(1) | _LAST) & (dots >> U(2) | _LAST_TWO)
    wide = in_span(place, U(0), U(0xE2), U(1)) & (in_span(place, U(0), U(0x80), U(1)) >> U(1) | _LAST)
    third = in_span(place, U(0), U(0xA6), U(1)) | in_span(place, U(0), U(0xA8), U(2))
    found |= wide & (third >> U(2) | _LAST_TWO)
    found |= in_span(place, U(0), U(0xC2), U(1)) & (in_span(place, U(0), U(0x85), U(1)) >> U(1) | _LAST)
    chars = ~in_span(place, U(0), U(0x80), U(0x40))
    hashes = in_span(place, U(0), _HASH, U(1))
    return (
        (found >> shift) & keep,
        bit_count((chars >> shift) & keep),
        bit_count((hashes >> shift) & keep),
        bit_count((feeds >> shift) & keep),
    )


@inner
def _ends_with_mark(at: U, end: U, table: U) -> Any:
    """Whether the last character of a piece of text, not empty, is an end mark."""
    i = end - U(1)
    while i > at and load8(i) & U(0xC0) == U(0x80):
        i -= U(1)
    _, entry, _ = decode(i, end, table)
    return entry & _END != U(0)


@kernel
def _count(data: U, bounds: NDArray[np.int64], table: U, places: NDArray[np.int32], counts: NDArray[np.int64]) -> None:
    keys = np.empty(1 << 10, np.uint64)  # open addressing; a slot is used where its stamp is that of the document
    stamps = np.full(1 << 10, -1, np.int64)
    for d in range(len(bounds) - 1):
        text, end = data + U(bounds[d]), data + U(bounds[d + 1])
        chars, hash_marks, feeds = U(0), U(0), U(0)
        last, at = U(0), text
        while at < end:
            found, more_chars, more_marks, more_feeds = _candidates(at, end)
            chars += more_chars
            hash_marks += more_marks
            feeds += more_feeds
            while found != U(0):
                places[last] = at - text + lowest_bit(found)
                last += U(1)
                found &= found - U(1)
            at += U(64)

        ellipses, lines, bodies, bullets, trailing = U(0), U(0), U(0), U(0), U(0)
        line, dots, j = text, text, U(0)
        while j <= last:  # one step more than places: the end of the text
            at = text + U(places[j]) if j < last else end
            j += U(1)
            width = U(1)
            if at < end:
                byte = load8(at)
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
        while slots < U(4) * (feeds + U(1)):
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
        written, marked, short, dup_written_chars = U(0), U(0), U(0), U(0)
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

            begin, size = segment, at - segment
            segment = after
            key = hash_bytes(begin, size)
            blank = trim_left(begin, at) >= at
            segments += U(1)
            written += U(not blank)
            marked += U(not blank and _ends_with_mark(begin, at, table))
            few = size <= _SHORT or (size <= U(4) * _SHORT and count_characters(begin, at) <= _SHORT)
            short += U(few and not blank)
            if _met(keys, stamps, slots, d, key):
                again = count_characters(begin, at)
                dup_segments += U(1)
                dup_segment_chars += again
                dup_written_chars += U(0) if blank else again

            if at < end and not (after - at >= U(2) and first < at < beyond):
                continue
            begin_paragraph, stop = paragraph, min(at, beyond)
            paragraphs += U(1)
            paragraph = after
            if begin_paragraph == first and stop == beyond:
                continue  # the only one
            if begin_paragraph != begin or stop != at:
                key = hash_bytes(begin_paragraph, stop - begin_paragraph)
            if _met(keys, stamps, slots, d, key ^ _PARAGRAPH):
                dup_paragraphs += U(1)
                dup_paragraph_chars += count_characters(begin_paragraph, stop)

        counts[d, 0], counts[d, 1], counts[d, 2], counts[d, 3] = chars, hash_marks, ellipses, lines
        counts[d, 4], counts[d, 5], counts[d, 6] = bodies, bullets, trailing
        counts[d, 7], counts[d, 8], counts[d, 9] = segments, dup_segments, dup_segment_chars
        counts[d, 10], counts[d, 11], counts[d, 12] = paragraphs, dup_paragraphs, dup_paragraph_chars
        counts[d, 13], counts[d, 14], counts[d, 15] = feeds, chars - feeds, written
        counts[d, 16], counts[d, 17], counts[d, 18] = marked, short, dup_written_chars
