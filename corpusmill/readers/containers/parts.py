"""Part of a large WARC or WET file: the records that begin in a range of bytes, found by scanning for their starts.

A gzip member counts if a record's head comes out of it; in plain files a version line counts that follows a blank line.
"""

from __future__ import annotations

import io
import re
import zlib
from typing import BinaryIO

SCAN = 2**20
OVERLAP = 64
HEAD = 16 * 1024
_MEMBER = re.compile(rb"\x1f\x8b\x08[\x00-\x1f]")
_RECORD = re.compile(rb"\r?\n\r?\n(?=WARC/\d\.\d{1,3}[ \t]{0,8}\r?\n[A-Za-z])", re.IGNORECASE)
_VERSION = re.compile(rb"\s*WARC/\d\.\d{1,3}[ \t]{0,8}\r?\n", re.IGNORECASE)


class Part(io.RawIOBase):
    """The bytes of a file from `begin` to `end`, as a stream of their own; the file stays its opener's."""

    def __init__(self, file: BinaryIO, begin: int, end: int) -> None:
        super().__init__()
        self._file, self._begin, self._size, self._position = file, begin, max(0, end - begin), 0

    def seekable(self) -> bool:
        """Yes."""
        return True

    def readable(self) -> bool:
        """Yes."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move; returns the position."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def tell(self) -> int:
        """The position."""
        return self._position

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        left = max(0, self._size - self._position)
        self._file.seek(self._begin + self._position)
        data = self._file.read(left if size is None or size < 0 else min(size, left))
        self._position += len(data)
        return data

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """The next bytes, into a buffer."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def record_start(file: BinaryIO, position: int) -> int:
    """Where the first gzip member or plain record at or behind a position begins; the file's size if nowhere."""
    if position == 0:
        return 0
    file.seek(0)
    compressed = file.read(3) == b"\x1f\x8b\x08"
    # a plain record may begin at the very position: the blank line before it has to be seen
    position = position if compressed else position - 4
    while True:
        file.seek(position)
        data = file.read(SCAN + OVERLAP)
        for match in (_MEMBER if compressed else _RECORD).finditer(data):
            if not compressed or _holds_record(file, position + match.start()):
                return position + match.end() if not compressed else position + match.start()
        if len(data) < SCAN + OVERLAP:
            return position + len(data)
        position += SCAN


def _holds_record(file: BinaryIO, offset: int) -> bool:
    file.seek(offset)
    try:
        text = zlib.decompressobj(31).decompress(file.read(HEAD), 256)
    except zlib.error:
        return False
    return _VERSION.match(text) is not None
