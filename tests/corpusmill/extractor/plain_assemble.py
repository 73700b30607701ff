"""Text of kept lines in plain Python: what corpusmill/extractor/model/assemble.py must equal."""

from __future__ import annotations

import html
import re

import numpy as np
from numpy.typing import NDArray

from corpusmill.extractor.scan import vocabulary as v
from corpusmill.extractor.scan.scan import Box, Line, Scan

_LI, _OL = v.TAGS["li"], v.TAGS["ol"]
_H1, _H4, _ITEM, _PRE = (v.KINDS.index(kind) for kind in ("h1", "h4", "li", "pre"))
_DT, _DD, _QUOTE = (v.KINDS.index(kind) for kind in ("dt", "dd", "quote"))
MAX_CELL_CHARS = 400
MAX_CELL_LINES = 3
_FIELDS = [Line.START, Line.STOP, Line.KIND, Line.CONTAINER, Line.ROW, Line.CELL, Line.SOFT, Line.LIST_DEPTH]


def plain_assemble(page: Scan, keep: NDArray[np.bool_], *, markdown: bool = False) -> str:
    """Text of the kept lines.

    Args:
        page: what was scanned.
        keep: bool[L].
        markdown: with Markdown's marks; else text.
    """
    kept = np.flatnonzero(keep)
    if not len(kept):
        return ""
    rows = page.lines[kept][:, _FIELDS].tolist()
    first = rows[0][0]
    data = page.text[first : rows[-1][1]].tobytes()
    boxes = page.boxes
    data_rows = _data_rows(page)
    parts: list[str] = []
    before: list[int] | None = None
    item_before = -1
    header = -1
    for row in rows:
        start, stop, kind, box, table_row, _, _, depth = row
        piece = data[start - first : stop - first].decode("utf-8", "replace")
        piece = piece.rstrip() if kind == _PRE else piece.strip()
        is_cell = table_row > 0 and table_row in data_rows
        item = _item_of(boxes, box) if depth and not is_cell else -1
        if before is not None:
            parts.append(_joint(before, row, is_cell, item, item_before, markdown))
        if is_cell and markdown and (before is None or before[4] != table_row):
            parts.append("| ")
        if item >= 0 and item != item_before:
            parts.append(_bullet(boxes, item, depth, markdown))
        parts.append(_marked(piece, kind, markdown, is_cell))
        if is_cell and markdown:
            header = _close_row(parts, row, rows, header, data_rows)
        before, item_before = row, item
    text = "".join(parts)
    return _tidy(html.unescape(text) if "&" in text else text)


def _tidy(text: str) -> str:
    return re.sub(r"[ \u00a0]+(?=\n)", "", text).strip("\n")


def _data_rows(page: Scan) -> set[int]:
    """Numbers of the table rows whose cells are short: data, not layout."""
    rows = page.lines[:, Line.ROW]
    last = int(rows.max(initial=0))
    if not last:
        return set()
    inside = rows > 0
    row, cell = rows[inside], page.lines[inside, Line.CELL]
    chars = page.lines[inside, Line.CHARS]
    key = row * 4096 + np.minimum(cell, 4095)
    keys, place, count = np.unique(key, return_inverse=True, return_counts=True)
    sizes = np.bincount(place, chars)
    bad = (sizes > MAX_CELL_CHARS) | (count > MAX_CELL_LINES)
    cells = np.bincount(keys // 4096, minlength=last + 1)
    bad_rows = np.bincount(keys[bad] // 4096, minlength=last + 1)
    return set(np.flatnonzero((cells > 1) & (bad_rows == 0)).tolist())


def _item_of(boxes: NDArray[np.int64], box: int) -> int:
    """The list item around a container, looked for a few levels up; -1 without one."""
    for _ in range(6):
        if boxes[box, Box.TAG] == _LI:
            return int(box)
        box = int(boxes[box, Box.PARENT])
    return -1


def _bullet(boxes: NDArray[np.int64], item: int, depth: int, markdown: bool) -> str:
    if not markdown:
        return "- "
    parent = boxes[item, Box.PARENT]
    indent = "  " * (depth - 1)
    if boxes[parent, Box.TAG] != _OL:
        return f"{indent}- "
    earlier = boxes[parent:item]
    number = int(np.count_nonzero((earlier[:, Box.PARENT] == parent) & (earlier[:, Box.TAG] == _LI))) + 1
    return f"{indent}{number}. "


def _joint(a: list[int], b: list[int], is_cell: bool, item: int, item_before: int, markdown: bool) -> str:
    """What stands between two kept lines."""
    if is_cell and a[4] == b[4]:
        if a[5] == b[5]:
            return " "
        return " | " if markdown else "\t"
    if is_cell and a[4] > 0 and b[4] == a[4] + 1:
        return "\n"
    if b[6] and a[2] == b[2]:
        return "  \n" if markdown else "\n"
    if item >= 0 and item_before >= 0:
        return "\n"
    if a[2] == _DT and b[2] == _DD:
        return "\n"
    return "\n\n"


def _marked(piece: str, kind: int, markdown: bool, is_cell: bool) -> str:
    if not markdown:
        return piece
    if is_cell:
        return piece.replace("|", "\\|").replace("\n", " ")
    if _H1 <= kind <= _H4:
        return f"{'#' * (kind - _H1 + 1)} {piece}"
    if kind == _PRE:
        return f"```\n{piece}\n```"
    if kind == _QUOTE:
        return f"> {piece}"
    return piece


def _close_row(parts: list[str], row: list[int], rows: list[list[int]], header: int, data_rows: set[int]) -> int:
    """End a row of a Markdown table after its last kept cell; a rule follows the first row of a table."""
    number = row[4]
    same = [r for r in rows if r[4] == number]
    if same[-1] is not row:
        return header
    parts.append(" |")
    if number - 1 not in data_rows or header < 0 or number != header + 1:
        cells = len({r[5] for r in same})
        parts.append("\n|" + " --- |" * cells)
    return number
