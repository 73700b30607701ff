"""Numbers in headers: of ASCII digits alone, and bounded.

`int` also takes signs, underscores, blanks and the digits of every script, and `str.isdigit` calls `²` a digit, which
`int` does not; above 4,300 digits it raises.
"""

from __future__ import annotations

import re

MOST = 2**63 - 1
_DIGITS = re.compile(r"0*([0-9]{1,19})")


def whole_number(text: str, most: int = MOST) -> int | None:
    """The number that a text of digits is; None for any other text, and above `most`."""
    digits = _DIGITS.fullmatch(text)
    number = int(digits[1]) if digits else None
    return number if number is not None and number <= most else None


def signed_number(text: str, most: int = MOST) -> int | None:
    """As `whole_number`, with a minus sign or without."""
    number = whole_number(text.removeprefix("-"), most)
    return -number if number is not None and text.startswith("-") else number
