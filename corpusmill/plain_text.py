"""Tables and sizes as plain text, the same on a terminal and in a pipe; and text that no terminal obeys.

Names, addresses, headers and texts come from outside. Control characters in them would clear a screen, change a title
or write over other lines; marks of direction would show another order. They are shown as escapes, such as `\\x1b`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but tab and line feed, breaks of lines and paragraphs, directions, halves of characters."""


def visible(text: str) -> str:
    """The text with `\\x1b` and the like for what a terminal would obey or cannot show."""
    return _OBEYED.sub(lambda found: ascii(found[0])[1:-1], text)


def one_line(text: str) -> str:
    """`visible`, and line feeds and tabs are escapes too: a name that cannot pass for a line of its own."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def json_text(document: Mapping[str, Any], *, only_ascii: bool = False) -> str:
    """A document in one line; what a terminal would obey is written as `\\u…`.

    Args:
        only_ascii: all other letters too, for outputs that are not UTF-8.
    """
    text = json.dumps(document, ensure_ascii=only_ascii, sort_keys=True)
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def table(header: Sequence[str], rows: Sequence[Sequence[object]], numbers: Sequence[int] = ()) -> str:
    """A table as plain text, the same on a terminal and in a pipe.

    Args:
        rows: cells; an int gets thousands separators, None is empty; what comes from outside stays in its line.
        numbers: columns aligned to the right.
    """
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(len(row[i]) for row in [list(header), *cells]) for i in range(len(header))]

    def line(row: Sequence[str]) -> str:
        padded = (c.rjust(w) if i in numbers else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))
        return "  ".join(padded).rstrip()

    return "\n".join([line(header), *(line(row) for row in cells)])


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else one_line(str(value))


def human_bytes(size: int) -> str:
    """1,536 -> 1.5 KiB."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:,.0f} {unit}" if unit == "B" else f"{amount:,.1f} {unit}"
        amount /= 1024
    return f"{amount:,.1f} TiB"
