"""Windows of texts as single lines, as language models want them: white space is one blank, letters are counted.

One pass over the bytes of each window, no Python object a character. Windows are counted in characters, not bytes, so
that a Greek page is judged by as much text as an English one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.compiled import inner, kernel
from corpusmill.kernels.bytes.bytehash import U, address_of, load8, load32
from corpusmill.kernels.bytes.unicode_table import ALPHA, SPACE, load_table
from corpusmill.kernels.bytes.utf8 import decode
from corpusmill.kernels.words.table import text_buffers

Ints = NDArray[np.int64]

HEAD_CHARS = 2000
"""So many characters of the beginning are judged."""
MIDDLE_CHARS = 500
"""Where this number more follow, as many from the middle are judged, too."""
EDGE_CHARS = 300
"""First and last characters of a shorter text, to be compared with the whole."""

_IS_ALPHA, _IS_SPACE = U(ALPHA), U(SPACE)
_SMALL_S = U(0x200000)  # the third byte as a small letter
_END_MARK = U(int.from_bytes(b"</s>", "little"))
_OTHER, _SPACE, _LETTER, _WIDE, _LESS = (U(c) for c in range(5))


@dataclass(frozen=True)
class Places:
    """Windows of D texts in bytes from the beginning of each text; a window that a text lacks is empty."""

    chars: Ints
    """int64[D], characters of the text."""
    head: Ints
    """int64[D], end of the first HEAD_CHARS."""
    middle: Ints
    """int64[D, 2], MIDDLE_CHARS from the middle of texts of HEAD_CHARS + MIDDLE_CHARS or more, else empty."""
    first: Ints
    """int64[D], end of the first EDGE_CHARS."""
    last: Ints
    """int64[D], begin of the last EDGE_CHARS."""


@dataclass(frozen=True)
class Lines:
    """N windows as lines: without white space at the ends, without fastText's mark of an end, no line break within."""

    data: bytes
    offsets: Ints
    """int64[N + 1]; line i is data[offsets[i]:offsets[i + 1]]."""
    letters: Ints
    """int64[N], characters of category L."""

    def line(self, i: int) -> str:
        """One of the lines."""
        return self.data[self.offsets[i] : self.offsets[i + 1]].decode("utf-8")


def places(text: pa.LargeStringArray) -> Places:
    """Where the windows of each text lie.

    Raises:
        ValueError: not a large_string array, or one with nulls.
    """
    data, bounds = text_buffers(text)
    found = np.zeros((len(text), 6), np.int64)
    _places(address_of(data), bounds, HEAD_CHARS, MIDDLE_CHARS, EDGE_CHARS, found)
    return Places(found[:, 0], found[:, 1], found[:, 2:4], found[:, 4], found[:, 5])


def lines(text: pa.LargeStringArray, rows: Ints, begin: Ints, end: Ints) -> Lines:
    """Windows as lines.

    Args:
        text: D texts. rows: int64[N], the text of each window. begin, end: int64[N], its bytes within the text.
    """
    data, bounds = text_buffers(text)
    room = int((end - begin).sum())
    made, offsets = np.empty(max(room, 1), np.uint8), np.zeros(len(rows) + 1, np.int64)
    letters = np.zeros(len(rows), np.int64)
    first = address_of(data) + bounds[rows].astype(np.uint64)
    table = load_table()
    _lines(
        first + begin.astype(np.uint64),
        first + end.astype(np.uint64),
        address_of(table),
        address_of(_byte_classes()),
        made,
        offsets,
        letters,
    )
    return Lines(made[: offsets[-1]].tobytes(), offsets, letters)


@cache
def _byte_classes() -> NDArray[np.uint8]:
    """What each byte is: uint8[256]."""
    classes = np.full(256, _OTHER, np.uint8)
    classes[128:] = _WIDE
    for code in range(128):
        character = chr(code)
        if character.isspace():
            classes[code] = _SPACE
        elif character.isalpha():
            classes[code] = _LETTER
    classes[ord("<")] = _LESS
    classes.flags.writeable = False
    return classes


@inner
def _after(at: U, end: U, chars: int) -> U:
    """Address after a number of characters, or the end."""
    while at < end and chars > 0:
        at += U(1)
        while at < end and load8(at) & U(0xC0) == U(0x80):
            at += U(1)
        chars -= 1
    return at


@kernel
def _places(data: U, bounds: Ints, head: int, middle: int, edge: int, found: Ints) -> None:
    for d in range(len(bounds) - 1):
        begin, end = data + U(bounds[d]), data + U(bounds[d + 1])
        after_edge = _after(begin, end, edge)
        after_head = _after(after_edge, end, head - edge)
        chars, at = 0, begin
        while at < end:
            chars += load8(at) & U(0xC0) != U(0x80)
            at += U(1)
        found[d, 0], found[d, 1], found[d, 4] = chars, after_head - begin, after_edge - begin
        if chars >= head + middle:
            at = _after(after_head, end, max(head, (chars - middle) // 2) - head)
            found[d, 2], found[d, 3] = at - begin, _after(at, end, middle) - begin
        at, left = end, edge
        while at > begin and left > 0:
            at -= U(1)
            left -= load8(at) & U(0xC0) != U(0x80)
        found[d, 5] = at - begin


@kernel
def _lines(
    first: NDArray[np.uint64],
    last: NDArray[np.uint64],
    table: U,
    classes: U,
    made: NDArray[np.uint8],
    offsets: Ints,
    letters: Ints,
) -> None:
    n = 0
    for w in range(len(first)):
        at, end, start, blank = first[w], last[w], n, False
        while at < end:
            width, kind = U(1), load8(classes + load8(at))
            if kind == _WIDE:
                _, entry, width = decode(at, end, table)
                if entry & _IS_SPACE != U(0):
                    kind = _SPACE
                elif entry & _IS_ALPHA != U(0):
                    kind = _LETTER
            elif kind == _LESS and at + U(4) <= end and load32(at) | _SMALL_S == _END_MARK:
                width, kind = U(4), _SPACE
            if kind == _SPACE:
                blank = n > start
            else:
                if blank:
                    made[n] = 0x20
                    n += 1
                    blank = False
                k = U(0)
                while k < width:
                    made[n] = load8(at + k)
                    n += 1
                    k += U(1)
                letters[w] += kind == _LETTER
            at += width
        offsets[w + 1] = n
