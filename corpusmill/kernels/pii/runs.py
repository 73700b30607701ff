"""Runs of numbers: groups of digits and what separates them."""

from __future__ import annotations

import re
from dataclasses import dataclass

Found = tuple[int, int, str]
"""Begin and end in the window, and the kind."""

_GROUP = re.compile(rb"[0-9]+")
_TYPOGRAPHIC = {
    0xA0: " ",
    0x202F: " ",
    **dict.fromkeys(range(0x2000, 0x200B), " "),
    **dict.fromkeys(range(0x2010, 0x2016), "-"),
}

SIMPLE = (b" ", b"-", b".")
"""What stands between the groups of most numbers."""


@dataclass(frozen=True)
class Run:
    """Groups of digits in a window, and what stands between them."""

    window: bytes
    groups: list[tuple[int, int]]
    separators: list[bytes]
    """separators[i] stands before group i; the first is empty."""

    def lengths(self, i: int, count: int) -> tuple[int, ...]:
        """Lengths of a number of groups from group i."""
        return tuple(b - a for a, b in self.groups[i : i + count])

    def digits(self, i: int, count: int) -> bytes:
        """Digits of a number of groups from group i."""
        return b"".join(self.window[a:b] for a, b in self.groups[i : i + count])

    def between(self, i: int, count: int) -> list[bytes]:
        """The separators within a number of groups from group i."""
        return self.separators[i + 1 : i + count]

    def alone(self, i: int, count: int, joined_by: bytes) -> bool:
        """Whether no group before or after is joined to these as they are to each other."""
        after = i + count
        return not (
            (i > 0 and self.separators[i] == joined_by)
            or (after < len(self.groups) and self.separators[after] == joined_by)
        )


def run_of(window: bytes, start: int, stop: int) -> Run:
    """The groups of a run of numbers."""
    groups = [match.span() for match in _GROUP.finditer(window, start, stop)]
    ends = [start, *(end for _, end in groups)]
    separators = [_plain(window[end:begin]) for end, (begin, _) in zip(ends, groups, strict=False)]
    return Run(window, groups, separators)


def _plain(separator: bytes) -> bytes:
    """A separator with a plain blank and hyphen in place of typographic ones."""
    if separator.isascii():
        return separator
    plain = separator.decode("utf-8", "replace").translate(_TYPOGRAPHIC)
    return plain.encode("utf-8")
