"""Text of the lines that are kept, with its structure: paragraphs, headings, bullets, rows of cells, code as it stands.

As text, blocks are parted by an empty line; lines after `<br>`, items of a list, rows of a table and pairs of `dl` by a
newline; the cells of a row by a tab. As Markdown, the same with its marks. Entities are decoded last.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from corpusmill.compiled import inner, kernel
from corpusmill.extractor.model.tables import kept_rows, table_rows
from corpusmill.extractor.scan import vocabulary as v
from corpusmill.extractor.scan.scan import Scan
from corpusmill.extractor.scan.state import N_BOX, N_LINE, Box, Line, get, store8
from corpusmill.kernels.bytes.bytehash import U, load8
from corpusmill.readers.text import unescaped

_LI, _OL = U(v.TAGS["li"]), U(v.TAGS["ol"])
_H1, _H4, _PRE = (U(v.KINDS.index(kind)) for kind in ("h1", "h4", "pre"))
_DT, _DD, _QUOTE = (U(v.KINDS.index(kind)) for kind in ("dt", "dd", "quote"))
_NONE = U(0xFFFFFFFFFFFFFFFF)
_LOOK_UP = 6  # containers around a line in which its list item is looked for
_MARKS = 80  # bytes of marks around a line at most, but for indentation and escapes
_BLANKS_BEFORE_NEWLINE = re.compile(r"[ \u00a0]+(?=\n)")
_NEWLINE, _BLANK, _TAB, _BAR, _DASH, _HASH, _TICK, _ANGLE, _DOT, _BACKSLASH = (U(ord(c)) for c in "\n \t|-#`>.\\")


def assemble(page: Scan, keep: NDArray[np.bool_], *, markdown: bool = False) -> str:
    """Text of the kept lines.

    Args:
        page: what was scanned.
        keep: bool[L].
        markdown: with Markdown's marks; else text.
    """
    text = _join(page.text, page.lines, page.boxes, keep, markdown).tobytes().decode("utf-8", "replace")
    if "&" in text:
        text = unescaped(text)
    if " \n" in text or "\u00a0\n" in text:
        text = _BLANKS_BEFORE_NEWLINE.sub("", text)
    return text.strip("\n")


@inner
def _write(at, byte, times):  # type: ignore[no-untyped-def]
    """Write a byte a number of times; returns the place after it."""
    for _ in range(times):
        store8(at, byte)
        at += U(1)
    return at


@inner
def _is_blank_at(at, stop):  # type: ignore[no-untyped-def]
    """Bytes of the white space (as str.strip has it) that begins here; 0 where none does."""
    c = load8(at)
    if U(9) <= c <= U(13) or U(28) <= c <= U(32):
        return U(1)
    if c == U(0xC2) and at + U(2) <= stop and (load8(at + U(1)) == U(0x85) or load8(at + U(1)) == U(0xA0)):
        return U(2)
    if U(0xE1) <= c <= U(0xE3) and at + U(3) <= stop:
        code = (c & U(15)) << U(12) | (load8(at + U(1)) & U(63)) << U(6) | load8(at + U(2)) & U(63)
        if (
            code == U(0x1680)
            or U(0x2000) <= code <= U(0x200A)
            or code == U(0x2028)
            or code == U(0x2029)
            or code == U(0x202F)
            or code == U(0x205F)
            or code == U(0x3000)
        ):
            return U(3)
    return U(0)


@inner
def _without_blanks(start, stop, indented):  # type: ignore[no-untyped-def]
    """A range without the white space at its end, and at its beginning unless it is indented."""
    while not indented and start < stop:
        width = _is_blank_at(start, stop)
        if width == U(0):
            break
        start += width
    while start < stop:
        width = U(1)
        while width < U(3) and stop - width > start and (load8(stop - width) & U(0xC0)) == U(0x80):
            width += U(1)
        if _is_blank_at(stop - width, stop) != width:
            break
        stop -= width
    return start, stop


@inner
def _item_of(boxes, box):  # type: ignore[no-untyped-def]
    """The list item around a container, looked for a few levels up; _NONE without one."""
    for _ in range(_LOOK_UP):
        place = boxes + U(8 * N_BOX) * box
        if get(place, Box.TAG) == _LI:
            return box
        box = get(place, Box.PARENT)
    return _NONE


@inner
def _joint(at, a, b, is_cell, between_items, markdown):  # type: ignore[no-untyped-def]
    """Write what stands between two kept lines."""
    row = get(b, Line.ROW)
    if is_cell and get(a, Line.ROW) == row:
        if get(a, Line.CELL) == get(b, Line.CELL):
            return _write(at, _BLANK, 1)
        if not markdown:
            return _write(at, _TAB, 1)
        return _write(_write(_write(at, _BLANK, 1), _BAR, 1), _BLANK, 1)
    if is_cell and get(a, Line.ROW) > U(0) and row == get(a, Line.ROW) + U(1):
        return _write(at, _NEWLINE, 1)
    if get(b, Line.SOFT) != U(0) and get(a, Line.KIND) == get(b, Line.KIND):
        return _write(_write(at, _BLANK, 2 if markdown else 0), _NEWLINE, 1)
    if between_items or (get(a, Line.KIND) == _DT and get(b, Line.KIND) == _DD):
        return _write(at, _NEWLINE, 1)
    return _write(at, _NEWLINE, 2)


@inner
def _bullet(at, depth, number, markdown):  # type: ignore[no-untyped-def]
    """Write the mark of a list item; in a numbered list, `number` is above 0."""
    if markdown:
        at = _write(at, _BLANK, 2 * (depth - 1))
    if number == 0 or not markdown:
        return _write(_write(at, _DASH, 1), _BLANK, 1)
    power = 1
    while power * 10 <= number:
        power *= 10
    while power > 0:
        at = _write(at, U(48 + number // power % 10), 1)
        power //= 10
    return _write(_write(at, _DOT, 1), _BLANK, 1)


@inner
def _piece(at, start, stop, kind, is_cell, markdown):  # type: ignore[no-untyped-def]
    """Write a line's text; as Markdown, with the marks of its kind."""
    fenced = markdown and not is_cell and kind == _PRE
    if markdown and not is_cell:
        if _H1 <= kind <= _H4:
            at = _write(_write(at, _HASH, kind - _H1 + U(1)), _BLANK, 1)
        elif fenced:
            at = _write(_write(at, _TICK, 3), _NEWLINE, 1)
        elif kind == _QUOTE:
            at = _write(_write(at, _ANGLE, 1), _BLANK, 1)
    if markdown and is_cell:
        while start < stop:
            c = load8(start)
            if c == _BAR:
                at = _write(at, _BACKSLASH, 1)
            at = _write(at, _BLANK if c == _NEWLINE else c, 1)
            start += U(1)
    while start < stop:
        store8(at, load8(start))
        at += U(1)
        start += U(1)
    return _write(_write(at, _NEWLINE, 1), _TICK, 3) if fenced else at


@inner
def _row_end(at, cells, with_rule):  # type: ignore[no-untyped-def]
    """Write the end of a Markdown table's row, and the rule under the first."""
    at = _write(_write(at, _BLANK, 1), _BAR, 1)
    if with_rule:
        at = _write(_write(at, _NEWLINE, 1), _BAR, 1)
        for _ in range(cells):
            at = _write(_write(_write(_write(at, _BLANK, 1), _DASH, 3), _BLANK, 1), _BAR, 1)
    return at


@inner
def _numbers(boxes):  # type: ignore[no-untyped-def]
    """Number of each container among the items of its numbered list, 0 elsewhere."""
    seen, numbers = np.zeros(len(boxes), np.int64), np.zeros(len(boxes), np.int64)
    for b in range(len(boxes)):
        parent = boxes[b, Box.PARENT]
        if U(boxes[b, Box.TAG]) == _LI and U(boxes[parent, Box.TAG]) == _OL:
            seen[parent] += 1
            numbers[b] = seen[parent]
    return numbers


@inner
def _write_lines(text, lines, boxes, keep, markdown):  # type: ignore[no-untyped-def]
    """The kept lines with what stands between and around them, in UTF-8; entities as they are."""
    kept = np.flatnonzero(keep)
    room = _MARKS * len(kept)
    for r in kept:
        length = lines[r, Line.STOP] - lines[r, Line.START]
        room += 2 * (length + lines[r, Line.LIST_DEPTH]) if markdown else length
    out = np.empty(room, np.uint8)
    begin, text_at = U(out.ctypes.data), U(text.ctypes.data)
    lines_at, boxes_at = U(lines.ctypes.data), U(boxes.ctypes.data)
    is_table = table_rows(lines)
    last_line, n_cells = kept_rows(lines, kept if markdown else kept[:0])
    numbers = _numbers(boxes if markdown else boxes[:0])
    at, before = begin, U(0)
    item_before, header = _NONE, U(0)
    for r in kept:
        line = lines_at + U(8 * N_LINE) * U(r)
        row, kind, depth = get(line, Line.ROW), get(line, Line.KIND), get(line, Line.LIST_DEPTH)
        is_cell = row > U(0) and is_table[row]
        item = _NONE
        if depth > U(0) and not is_cell:
            item = _item_of(boxes_at, get(line, Line.CONTAINER))
        if before != U(0):
            at = _joint(at, before, line, is_cell, item != _NONE and item_before != _NONE, markdown)
        if is_cell and markdown and (before == U(0) or get(before, Line.ROW) != row):
            at = _write(_write(at, _BAR, 1), _BLANK, 1)
        if item != _NONE and item != item_before:
            at = _bullet(at, np.int64(depth), numbers[item] if markdown else 0, markdown)
        start, stop = text_at + get(line, Line.START), text_at + get(line, Line.STOP)
        start, stop = _without_blanks(start, stop, kind == _PRE)
        at = _piece(at, start, stop, kind, is_cell, markdown)
        if is_cell and markdown and last_line[row] == r:
            is_next = header != U(0) and row == header + U(1)
            at = _row_end(at, n_cells[row], not is_next)
            header = row
        before, item_before = line, item
    return out[: at - begin]


@kernel
def _join(text, lines, boxes, keep, markdown):  # type: ignore[no-untyped-def]
    return _write_lines(text, lines, boxes, keep, markdown)
