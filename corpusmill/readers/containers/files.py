"""Random access to an archive file: from a path, a stream, or a part of either."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

COPIED = 1024 * 1024
GLANCED = 256 * 1024


class File:
    """Random reads from a file or a seekable stream, without moving a shared position."""

    def __init__(self, stream: BinaryIO, path: str | None = None) -> None:
        self._stream, self.path = stream, path
        self.size = stream.seek(0, io.SEEK_END)
        self._window, self._window_at = b"", 0
        try:
            self._fd: int | None = stream.fileno()
        except (OSError, AttributeError):
            self._fd = None

    def glance(self, offset: int, size: int) -> bytes:
        """As read_at, for a few bytes here and there, forward: a call to the system costs much on some file systems."""
        at = offset - self._window_at
        if at < 0 or at + size > len(self._window):
            self._window, self._window_at, at = self.read_at(offset, GLANCED), offset, 0
        return self._window[at : at + size]

    def read_at(self, offset: int, size: int) -> bytes:
        """Up to `size` bytes at `offset`; empty at the end."""
        if self._fd is not None:
            return os.pread(self._fd, size, offset)
        self._stream.seek(offset)
        return self._stream.read(size)


class Section:
    """Bytes `begin` to `end` of a File as a stream, for readers that want one."""

    def __init__(self, file: File, begin: int = 0, end: int | None = None) -> None:
        self._file, self._begin, self._end = file, begin, file.size if end is None else end
        self._position = begin

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        left = self._end - self._position
        data = self._file.read_at(self._position, left if size < 0 else min(size, left)) if left > 0 else b""
        self._position += len(data)
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move; returns the position."""
        base = {io.SEEK_SET: self._begin, io.SEEK_CUR: self._position, io.SEEK_END: self._end}[whence]
        self._position = max(self._begin, base + offset)
        return self.tell()

    def tell(self) -> int:
        """The position."""
        return self._position - self._begin

    def close(self) -> None:
        """Nothing to close: the file belongs to its opener."""


@contextmanager
def open_file(source: str | Path | BinaryIO) -> Iterator[File]:
    """A path, or a binary stream (one that cannot seek is copied to a temporary file first)."""
    if isinstance(source, (str, Path)):
        with Path(source).open("rb") as stream:
            yield File(stream, str(source))
    elif source.seekable():
        yield File(source)
    else:
        with tempfile.TemporaryFile() as copy:
            while data := source.read(COPIED):
                copy.write(data)
            copy.flush()
            yield File(copy)
