"""The container of an archive, one unit at a time: gzip members, or the plain rest of a file.

Bytes are decompressed on demand, so that a bomb costs what is asked for. A unit that cannot be read to its end keeps
what came before the damage, and the next one is found by its magic bytes: a candidate counts only if WARC text comes
out of it.
"""

from __future__ import annotations

import io
import os
import re
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal

GZIP_MAGIC = b"\x1f\x8b\x08"
FIRST_READ = 16 * 1024  # a Common Crawl member has 5-30 KB; more is read only when needed
NEXT_READ = 256 * 1024
MAX_PIECE = 1024 * 1024  # decompressed bytes handed out at a time
SCAN = 1024 * 1024
PADDING = b"\r\n\t \x00"

RECORD_START = re.compile(rb"WARC/\d\.\d{1,3}\r?\n")
_GZIP_UNIT = re.compile(rb"\x1f\x8b\x08[\x00-\x1f]")
_ANY_UNIT = re.compile(rb"\x1f\x8b\x08[\x00-\x1f]|WARC/\d\.\d{1,3}\r?\n")
_PADDING = re.compile(rb"[\r\n\t \x00]*")

Fault = Literal["truncated", "damaged"]


class File:
    """Random reads from a file or a seekable stream, without moving a shared position."""

    def __init__(self, stream: BinaryIO, path: str | None = None) -> None:
        self._stream, self.path = stream, path
        self.size = stream.seek(0, io.SEEK_END)
        try:
            self._fd: int | None = stream.fileno()
        except (OSError, AttributeError):
            self._fd = None

    def read_at(self, offset: int, size: int) -> bytes:
        """Up to `size` bytes at `offset`; empty at the end."""
        if self._fd is not None:
            return os.pread(self._fd, size, offset)
        self._stream.seek(offset)
        return self._stream.read(size)


class Sequential:
    """A File as a stream read from its beginning, for readers that want one."""

    def __init__(self, file: File) -> None:
        self._file, self._position = file, 0

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        data = self._file.read_at(self._position, self._file.size - self._position if size < 0 else size)
        self._position += len(data)
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move; returns the position."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._file.size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def tell(self) -> int:
        """The position."""
        return self._position

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
            while data := source.read(SCAN):
                copy.write(data)
            copy.flush()
            yield File(copy)


class Member:
    """Decompressed bytes of one unit, read forward through a small buffer.

    Attributes:
        offset: where the unit begins in the file.
        compressed: False for plain bytes, whose records have offsets of their own.
        fault: set once the end is reached and it is not a sound one.
        end: position in the file behind the unit, known once the end is reached without fault.
    """

    compressed = True

    def __init__(self, file: File, offset: int) -> None:
        self.file, self.offset, self.end = file, offset, offset
        self.fault: Fault | None = None
        self.buffer, self.position = b"", 0
        self.consumed = 0  # bytes handed out before the buffer's first
        self._begin = offset  # of the gzip member being read, where several were joined
        self._pieces = self._produce()
        self._ended = False

    def _produce(self) -> Iterator[bytes]:
        inflate, emitted, size = zlib.decompressobj(31), 0, FIRST_READ
        self._begin = self.end
        data = self.file.read_at(self.end, size)
        while data:
            self.end += len(data)
            while True:
                try:
                    piece = inflate.decompress(data, MAX_PIECE)
                except zlib.error:
                    self.fault = "damaged"
                    yield from self._salvage(emitted)
                    return
                if piece:
                    emitted += len(piece)
                    yield piece
                if inflate.eof:
                    self.end -= len(inflate.unused_data)
                    return
                data = inflate.unconsumed_tail
                if not data and len(piece) < MAX_PIECE:
                    break
            size = NEXT_READ
            data = self.file.read_at(self.end, size)
        self.fault = "truncated"

    def _salvage(self, emitted: int) -> Iterator[bytes]:
        """What a call that failed would have given before the damage: read again in ever smaller steps."""
        inflate, position, done, step = zlib.decompressobj(31), self._begin, 0, 4096
        while data := self.file.read_at(position, step):
            before = inflate.copy()
            try:
                piece = inflate.decompress(data)
            except zlib.error:
                if step == 1:
                    return
                inflate, step = before, step // 8 or 1
                continue
            position += len(data)
            done += len(piece)
            if done > emitted:
                yield piece[max(0, len(piece) - (done - emitted)) :]
                emitted = done
            if inflate.eof:
                return

    def _join(self) -> bool:
        """Go on in the next gzip member, if it does not begin a record: then it belongs to the one at hand."""
        if self.fault or self.file.read_at(self.end, 3) != GZIP_MAGIC or holds_record(self.file, self.end):
            return False
        self._pieces, self._ended = self._produce(), False
        return True

    def fill(self, size: int, join: bool = False) -> bool:
        """Have at least `size` bytes in the buffer, if the unit still holds them.

        Args:
            size: bytes wanted.
            join: a record is not at its end: look for the rest in the next member.
        """
        have = len(self.buffer) - self.position
        if have >= size:
            return True
        pieces = [self.buffer[self.position :]]
        while have < size and not (self._ended and not (join and self._join())):
            piece = next(self._pieces, None)
            if piece is None:
                self._ended = True
                continue
            pieces.append(piece)
            have += len(piece)
        self.consumed += self.position
        self.buffer, self.position = b"".join(pieces) if len(pieces) > 1 else pieces[0], 0
        return have >= size

    def take(self, size: int) -> bytes:
        """The next `size` bytes of a record; fewer where the unit ends."""
        self.fill(size, join=True)
        data = self.buffer[self.position : self.position + size]
        self.position += len(data)
        return data

    def skip(self, size: int) -> int:
        """Pass over `size` bytes without holding them; returns how many there were."""
        left = size
        while left > 0 and (self.position < len(self.buffer) or self.fill(1, join=True)):
            step = min(left, len(self.buffer) - self.position)
            self.position += step
            left -= step
        return size - left

    def back(self, data: bytes) -> None:
        """Put back bytes that were just taken."""
        self.consumed += self.position - len(data)
        self.buffer, self.position = data + self.buffer[self.position :], 0

    def skip_padding(self) -> bool:
        """Pass over blanks and zero bytes; False where the unit ends there."""
        while self.position < len(self.buffer) or self.fill(1):
            if self.buffer[self.position] not in PADDING:
                return True
            match = _PADDING.match(self.buffer, self.position)
            self.position = match.end() if match else self.position
        return False

    def take_padding(self) -> bytes:
        """Blanks and zero bytes at hand, at most 64 of them."""
        self.fill(64)
        match = _PADDING.match(self.buffer, self.position, self.position + 64)
        self.position = match.end() if match else self.position
        return match[0] if match else b""

    def at_record(self) -> bool:
        """Whether a record starts at hand."""
        if len(self.buffer) - self.position < 16:
            self.fill(16, join=True)
        return RECORD_START.match(self.buffer, self.position) is not None

    def ends_badly(self) -> bool:
        """Whether nothing but garbage is left of a gzip member that is broken; the garbage is passed over then."""
        if not self.compressed or self.fill(SCAN):
            return False
        if self.fault is None or RECORD_START.search(self.buffer, self.position):
            return False
        self.position = len(self.buffer)
        return True

    def tell(self) -> int:
        """Bytes read so far, decompressed."""
        return self.consumed + self.position

    def skip_to_record(self) -> int:
        """Pass over what is no record, up to the next line that starts one or to the end; returns how many bytes."""
        start = self.tell()
        while True:
            match = RECORD_START.search(self.buffer, self.position)
            if match:
                self.position = match.start()
                return self.tell() - start
            self.position = max(self.position, len(self.buffer) - 16)  # a start may straddle the edge
            if not self.fill(len(self.buffer) - self.position + 1):
                self.position = len(self.buffer)
                return self.tell() - start


class PlainMember(Member):
    """The rest of a file that is not compressed."""

    compressed = False

    def _join(self) -> bool:
        return False

    def _produce(self) -> Iterator[bytes]:
        while piece := self.file.read_at(self.end, NEXT_READ):
            self.end += len(piece)
            yield piece

    def tell(self) -> int:
        """Position in the file."""
        return self.offset + self.consumed + self.position


class Junk:
    """Bytes between units that nothing can be read from."""

    def __init__(self, offset: int, size: int) -> None:
        self.offset, self.size = offset, size


def members(file: File, start: int = 0) -> Iterator[Member | Junk]:
    """Units of a file in order; what is left of one is skipped when the next is asked for."""
    position, unit = start, _ANY_UNIT
    while position < file.size:
        head = file.read_at(position, 64)
        if head.startswith(GZIP_MAGIC):
            unit = _GZIP_UNIT  # text that looks like a plain record is now part of a stored block
            member = Member(file, position)
            yield member
            while member.fill(1):
                member.position = len(member.buffer)
            if member.fault is None:
                position = member.end
                continue
            found = _next_unit(file, position + 1, unit)
        elif RECORD_START.match(head):
            yield PlainMember(file, position)
            return
        elif blank := len(head) - len(head.lstrip(PADDING)):
            position += blank
            continue
        elif head.startswith(b"\xef\xbb\xbf"):
            position += 3
            continue
        else:
            found = _next_unit(file, position + 1, unit)
            yield Junk(position, found - position)
        position = found


def _next_unit(file: File, position: int, unit: re.Pattern[bytes]) -> int:
    """Where the next gzip member with a record in it, or the next plain record, begins; the file's size if nowhere."""
    while position < file.size:
        data = file.read_at(position, SCAN)
        for match in unit.finditer(data):
            at = position + match.start()
            if match[0].startswith(b"WARC") or holds_record(file, at):
                return at
        position += max(1, len(data) - 16) if len(data) == SCAN else len(data)
    return file.size


def holds_record(file: File, offset: int) -> bool:
    """Whether the gzip member at `offset` begins with a record."""
    try:
        text = zlib.decompressobj(31).decompress(file.read_at(offset, FIRST_READ), 64)
    except zlib.error:
        return False
    return RECORD_START.match(text.lstrip(PADDING)) is not None
