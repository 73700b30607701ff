"""A file on a server read here and there: as much as it takes to find where records begin.

What is read decides where a block begins, and no checksum of the server or of gzip speaks about part of a member. So
every part is read until two readings are equal.
"""

from __future__ import annotations

import io

from corpusmill.errors import Unavailable
from tasks.acquire.fetch import http, rate_limit

AHEAD = 16 * 1024
"""Read behind what was asked for: the head of a record that begins there is looked at next."""
READINGS = 8


class Ranged:
    """`read`, `seek` and `tell` of a file; small parts of it are held."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._position = 0
        self._held: list[tuple[int, bytes, bool]] = []  # where it begins, bytes, whether the file ends there

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move, from the beginning only; returns the position."""
        assert whence == io.SEEK_SET
        self._position = offset
        return offset

    def tell(self) -> int:
        """The position."""
        return self._position

    def read(self, size: int) -> bytes:
        """The next bytes, fewer where the file ends."""
        begin = self._position
        for at, data, at_end in self._held:
            if at <= begin and (begin + size <= at + len(data) or (at_end and begin <= at + len(data))):
                break
        else:
            asked = size + AHEAD
            at, data = begin, self._agreed(begin, asked)
            self._held.append((at, data, len(data) < asked))
        part = data[begin - at : begin - at + size]
        self._position += len(part)
        return part

    def _agreed(self, begin: int, size: int) -> bytes:
        before: set[bytes] = set()
        for _ in range(READINGS):
            data = http.get_range(self.url, begin, size, ends_anywhere=True)
            if data in before:
                return data
            before.add(data)
            rate_limit.count(damaged=len(before) > 1)
        raise Unavailable(
            f"{self.url} cannot be fetched",
            f"{READINGS} readings of {size} bytes at {begin} all differ",
            "Check the network and any proxy between here and the server.",
        )
