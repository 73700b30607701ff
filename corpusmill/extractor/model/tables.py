"""Which rows of a page's tables hold data rather than layout, and what is kept of them."""

from __future__ import annotations

import numpy as np

from corpusmill.compiled import inner
from corpusmill.extractor.scan.state import Line

MAX_CELL_CHARS = 400
MAX_CELL_LINES = 3
LAST_CELL = 4095  # cells of a row from here on are one


@inner
def _slots(lines, which, last_cell):  # type: ignore[no-untyped-def]
    """Number of the cell each of some lines is in (-1 outside of tables), and the rows of the cells, in page order."""
    size = 4
    while size < 2 * len(which):
        size *= 2
    table = np.full(size, -1, np.int64)
    cells, rows, numbers = (
        np.empty(len(which), np.int64),
        np.empty(len(which), np.int64),
        np.empty(len(which), np.int64),
    )
    n = 0
    for k in range(len(which)):
        row, cell = lines[which[k], Line.ROW], min(lines[which[k], Line.CELL], last_cell)
        if row == 0:
            cells[k] = -1
            continue
        slot = (row * 0x9E3779B1 + cell) & (size - 1)
        while table[slot] >= 0 and (rows[table[slot]] != row or numbers[table[slot]] != cell):
            slot = (slot + 1) & (size - 1)
        if table[slot] < 0:
            table[slot], rows[n], numbers[n] = n, row, cell
            n += 1
        cells[k] = table[slot]
    return cells, rows[:n]


@inner
def _last_row(lines):  # type: ignore[no-untyped-def]
    last = 0
    for r in range(len(lines)):
        last = max(last, lines[r, Line.ROW])
    return last


@inner
def table_rows(lines):  # type: ignore[no-untyped-def]
    """Whether a row has more than one cell and short ones only, bool[rows + 1]; row 0 is not one."""
    found = np.zeros(_last_row(lines) + 1, np.bool_)
    if len(found) == 1:
        return found
    cells, rows = _slots(lines, np.arange(len(lines)), LAST_CELL)
    chars, counts = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    for r in range(len(lines)):
        if cells[r] >= 0:
            chars[cells[r]] += lines[r, Line.CHARS]
            counts[cells[r]] += 1
    n_cells = np.zeros(len(found), np.int64)
    for c in range(len(rows)):
        n_cells[rows[c]] += 1
    for row in range(len(found)):
        found[row] = n_cells[row] > 1
    for c in range(len(rows)):
        if chars[c] > MAX_CELL_CHARS or counts[c] > MAX_CELL_LINES:
            found[rows[c]] = False
    return found


@inner
def kept_rows(lines, kept):  # type: ignore[no-untyped-def]
    """The last kept line and the number of kept cells of each row, int64[rows + 1] each; -1 and 0 without any."""
    size = _last_row(lines) + 1 if len(kept) else 1
    last, n_cells = np.full(size, -1, np.int64), np.zeros(size, np.int64)
    _, rows = _slots(lines, kept, np.int64(2**62))
    for r in kept:
        last[lines[r, Line.ROW]] = r
    for row in rows:
        n_cells[row] += 1
    return last, n_cells
