"""JSON that is no JSON lines: one array over the whole file, or objects printed over many lines. Objects one by one.

Braces are counted outside of strings; brackets, commas and blanks between objects are passed over. Nothing but the
object at hand is held.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from tasks.acquire.streams import Damage, Line

HEAD_BYTES = 2**16
"""How much of a file shows which shape it has."""

_OBJECT = re.compile(rb"[^\s,\[\]\xef\xbb\xbf]")  # the last three are a byte order mark
_BRACE, _STRING = re.compile(rb'["{}]'), re.compile(rb'["\\]')


def are_objects(head: bytes) -> bool:
    """Whether a file that begins so is an array of objects, or has an object that takes several lines.

    Args:
        head: its first bytes, without a byte order mark.
    """
    text = head.lstrip()
    if text.startswith(b"["):
        return text[1:].lstrip()[:1] in (b"{", b"")
    line, newline, rest = text.partition(b"\n")
    if not text.startswith(b"{") or not newline:
        return False
    if line.strip() == b"{":
        return not rest.lstrip().startswith(b"{")  # else it is a broken line
    try:
        _, end = json.JSONDecoder().raw_decode(text.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return False
    return end > len(line)


def objects(stream: Iterable[bytes], limit: int) -> Iterator[Line]:
    """Each object of a stream of pieces as a line, whatever is between them as one that is no object.

    Args:
        stream: from `streams.pieces`.
        limit: longer ones come back without data, as too_large; they are not held.
    """
    found = _Objects(limit)
    try:
        for piece in stream:
            yield from found.feed(piece)
    except Damage as err:
        yield Line(found.begin, found.size, b"", err.reason, err)
        return
    if found.size:
        yield Line(found.begin, found.size, b"", "truncated") if found.depth else found.line()


class _Objects:
    """The object (or what is none) at hand: where it begins, how long it is, how deep its braces are."""

    def __init__(self, limit: int) -> None:
        self._limit, self._at, self._held = limit, 0, bytearray()
        self.begin, self.size, self.depth = 0, 0, 0
        self._in_string = self._escaped = False

    def line(self) -> Line:
        """It as a line; then there is none at hand."""
        too_large = self.size > self._limit
        line = Line(self.begin, self.size, b"" if too_large else bytes(self._held), "too_large" if too_large else None)
        self.size, self._held = 0, bytearray()
        return line

    def feed(self, piece: bytes) -> Iterator[Line]:
        position = 0
        while position < len(piece):
            if self.depth == 0 and not self.size:
                if (match := _OBJECT.search(piece, position)) is None:
                    break
                position = match.start()
                self.begin = self._at + position
            if self.depth == 0 and piece[position : position + 1] != b"{":  # no object: up to the next one
                end = piece.find(b"{", position)
                self._take(piece[position : end if end >= 0 else len(piece)])
                position = end if end >= 0 else len(piece)
            else:
                if self.depth == 0 and self.size:
                    yield self.line()
                    self.begin = self._at + position
                end = self._end(piece, position)
                self._take(piece[position:end])
                position = end
                if self.depth == 0:
                    yield self.line()
        self._at += len(piece)

    def _take(self, data: bytes) -> None:
        self.size += len(data)
        if self.size <= self._limit:
            self._held += data
        else:
            self._held.clear()

    def _end(self, piece: bytes, position: int) -> int:
        """Behind the object's last brace, or the piece's end."""
        if self._escaped:
            position, self._escaped = position + 1, False
        while match := (_STRING if self._in_string else _BRACE).search(piece, position):
            sign, position = match[0], match.end()
            if sign == b'"':
                self._in_string = not self._in_string
            elif sign == b"\\":
                if position == len(piece):
                    self._escaped = True
                position += 1
            elif sign == b"{":
                self.depth += 1
            else:
                self.depth -= 1
                if self.depth == 0:
                    return position
        return len(piece)
