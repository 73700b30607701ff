"""Bytes of a file piece by piece, whatever it is compressed with, and its lines; damage is reported, never raised.

Pieces are bounded, so that a bomb costs what is read of it; so are the memory of a decompressor and the ratio of what
comes out to what went in. Text is cut at newlines alone: U+2028, U+0085 and form feeds stand inside JSON lines.
"""

from __future__ import annotations

import bz2
import lzma
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

from corpusmill.readers.containers.frames import HEAD_BYTES, MAX_WINDOW, too_much, window
from corpusmill.readers.records import FileFacts

Fault = Literal["truncated", "damaged", "too_large", "bomb"]

READ_BYTES = 256 * 1024
PIECE_BYTES = 2**16  # what a call gives that then meets damage is lost
ZSTD_STEP = 256  # compressed bytes at a time; a block of up to 128 KiB takes at least 4 of them

GZIP, BZIP2, XZ, ZSTD = b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"
MAGICS = (GZIP, BZIP2, XZ, ZSTD)
SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")
"""Begins a zstd frame that carries no text: a seek table, the size of the next frame, a note of the writer."""
XZ_MEMORY = MAX_WINDOW + 2**23
"""Bytes that a decompressor of xz may take: its dictionary, as large as a window of zstd, and its tables."""
MAX_RATIO, FREE_BYTES = 1000, 2**28
"""A stream that gives more than both 1,000 times its bytes and 256 MiB is a bomb. Pages and dumps reach 100; gzip can
reach 1,032, the others any."""


class Damage(Exception):
    """The stream is not read on: it is cut (`truncated`) or broken (`damaged`), its decompressor needs more memory than
    is given to it (`too_large`; `needs` says what for), or it unpacks to far more than it holds (`bomb`)."""

    def __init__(self, reason: Fault, needs: str = "") -> None:
        super().__init__(reason)
        self.reason, self.needs = reason, needs

    def note(self, offset: int, facts: FileFacts) -> Fault:
        """Note it among the facts of the file; the reason again."""
        facts.fault(offset, self.reason)
        if self.needs:
            facts.too_much(self.needs)
        return self.reason


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its newline, or why there is none.

    Attributes:
        offset: of its first byte in the decompressed file.
        size: its length in bytes.
        fault: `too_large` above the limit, or why the file is not read on (`damage`).
    """

    offset: int
    size: int
    data: bytes = b""
    fault: Fault | None = None
    damage: Damage | None = None


def pieces(path: Path) -> Iterator[bytes]:
    """The decompressed bytes of a file: by its first bytes plain, gzip, bzip2, xz or zstd, of many members too.

    Raises:
        Damage: behind the last piece that can be read.
    """
    with path.open("rb") as file:
        yield from decompressed(file)


def decompressed(file: BinaryIO) -> Iterator[bytes]:
    """As `pieces`, from a stream that stands at the beginning of compressed bytes."""
    source = _Source(file)
    head = source.next()
    magic = ZSTD if SKIPPABLE.match(head) else next((m for m in MAGICS if head.startswith(m)), None)
    if magic is None:
        while head:
            yield head
            head = source.next()
        return
    given = 0
    for piece in _unpacked(source, head, magic):
        yield piece
        given += len(piece)
        if given > FREE_BYTES and given > MAX_RATIO * source.count:
            raise Damage("bomb")


class _Source:
    """The compressed bytes of a file, and how many were taken so far."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.count = file, 0

    def next(self, most: int = READ_BYTES) -> bytes:
        data = self._file.read(most)
        self.count += len(data)
        return data

    def at_least(self, size: int, data: bytes) -> bytes:
        """These bytes, with more behind them where they are fewer than `size`."""
        while len(data) < size and (more := self.next()):
            data += more
        return data

    def behind(self, size: int, data: bytes) -> bytes:
        """What follows the first `size` bytes, of which some are in `data`; they are not held.

        Raises:
            Damage: there are fewer.
        """
        while len(data) < size:
            size -= len(data)
            if not (data := self.next()):
                raise Damage("truncated")
        return data[size:]


def _unpacked(source: _Source, data: bytes, magic: bytes) -> Iterator[bytes]:
    """What all members of a stream hold; frames of zstd that carry no text are passed over."""
    while data := source.at_least(HEAD_BYTES, data):
        if magic == ZSTD and SKIPPABLE.match(data):
            data = source.behind(8 + int.from_bytes(data[4:8], "little") if len(data) >= 8 else 8, data)
            continue
        if data.startswith(b"\0"):  # padding, as tape leaves it, between members too
            data = data.lstrip(b"\0")
            continue
        if not data.startswith(magic):
            raise Damage("damaged")
        member = _Member(magic, data)
        while not member.ended:
            yield from member.feed(data)
            data = member.rest if member.ended else source.next()
            if not data and not member.ended:
                raise Damage("truncated")


class _Member:
    """One member (stream, frame) of a compressed file.

    Args:
        magic: what it begins with.
        head: its first bytes.

    Raises:
        Damage: its decompressor would take too much memory.
    """

    def __init__(self, magic: bytes, head: bytes) -> None:
        self._magic, self._head, self.ended, self.rest = magic, head, False, b""
        self._codec: Any
        if magic == GZIP:
            self._codec = zlib.decompressobj(31)
        elif magic == BZIP2:
            self._codec = bz2.BZ2Decompressor()
        elif magic == XZ:
            self._codec = lzma.LZMADecompressor(memlimit=XZ_MEMORY)
        else:
            import zstandard

            if needs := too_much("a zstd window", window(head), MAX_WINDOW):
                raise Damage("too_large", needs)
            self._codec = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).decompressobj()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What comes of some more bytes."""
        try:
            if self._magic == ZSTD:
                yield from self._feed_zstd(data)
            elif self._magic == GZIP:
                yield from self._feed_gzip(data)
            else:
                yield self._codec.decompress(data, PIECE_BYTES)
                while not self._codec.eof and not self._codec.needs_input:
                    yield self._codec.decompress(b"", PIECE_BYTES)
        except (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError) as err:  # OSError is bzip2's word for it
            if "emory usage limit" in str(err):
                asked = max(_xz_dictionary(self._head), MAX_WINDOW + 1)
                raise Damage("too_large", too_much("an xz dictionary", asked, MAX_WINDOW)) from err
            raise Damage("damaged") from err
        self.ended = self._codec.eof
        self.rest = self._codec.unused_data if self.ended else b""

    def _feed_gzip(self, data: bytes) -> Iterator[bytes]:
        while data and not self._codec.eof:
            yield self._codec.decompress(data, PIECE_BYTES)
            data = self._codec.unconsumed_tail

    def _feed_zstd(self, data: bytes) -> Iterator[bytes]:
        import zstandard

        try:
            for begin in range(0, len(data), ZSTD_STEP):
                yield self._codec.decompress(data[begin : begin + ZSTD_STEP])
                if self._codec.eof:
                    self._codec = _Ended(self._codec.unused_data + data[begin + ZSTD_STEP :])
                    return
        except zstandard.ZstdError as err:
            raise Damage("damaged") from err


def _xz_dictionary(head: bytes) -> int:
    """Bytes of the dictionary that the first block of an xz stream asks for, where LZMA2 is its only filter; else 0."""
    if len(head) < 17 or head[13] or head[14:16] != b"\x21\x01":
        return 0
    bits = head[16]
    return (2 | bits & 1) << (bits // 2 + 11) if bits < 40 else 2**32 - 1


@dataclass(frozen=True)
class _Ended:
    """A decompressor that is at the end of its frame."""

    unused_data: bytes
    eof: bool = True


def lines(stream: Iterable[bytes], limit: int, offset: int = 0) -> Iterator[Line]:
    """Lines of a stream of pieces, cut at newlines alone; the last may lack its own.

    Args:
        stream: from `pieces`.
        limit: longer lines come back without data, as too_large; they are not held.
        offset: of the stream's first byte.
    """
    held: list[bytes] = []  # of the line at hand, joined once
    size = 0
    try:
        for piece in stream:
            first, *others = piece.split(b"\n")
            size += len(first)
            held.append(first)
            if size > limit:
                held.clear()
            for other in others:
                yield Line(offset, size, b"".join(held), "too_large" if size > limit else None)
                offset += size + 1
                size = len(other)
                held = [other] if size <= limit else []
    except Damage as err:
        yield Line(offset, size, b"", err.reason, err)
        return
    if size:
        yield Line(offset, size, b"".join(held), "too_large" if size > limit else None)


def beginning(stream: Iterator[bytes], size: int) -> bytes:
    """At least the first bytes of a stream of pieces, fewer where it ends; the rest stays in it.

    Raises:
        Damage: the stream ends badly.
    """
    held: list[bytes] = []
    while size > 0 and (piece := next(stream, None)) is not None:
        held.append(piece)
        size -= len(piece)
    return b"".join(held)


def capped(stream: Iterable[bytes], limit: int) -> Iterator[bytes]:
    """The pieces of a stream, up to a number of bytes.

    Raises:
        Damage: there are more, or the stream ends badly.
    """
    for piece in stream:
        limit -= len(piece)
        if limit < 0:
            raise Damage("too_large")
        yield piece


def whole(stream: Iterable[bytes], limit: int) -> bytes | None:
    """All bytes of a stream of pieces, or None where they are more than `limit`.

    Raises:
        Damage: the stream ends badly.
    """
    held = bytearray()
    for piece in stream:
        held += piece
        if len(held) > limit:
            return None
    return bytes(held)


def ranged(path: Path, begin: int, end: int | None) -> tuple[int, Iterator[bytes]]:
    """The lines of a plain file that begin in a range of bytes: where the first begins, and the pieces of them all."""
    with path.open("rb") as file:
        first = _line_start(file, begin)
        last = None if end is None else _line_start(file, end)
    return first, _between(path, first, last)


def _line_start(file: BinaryIO, position: int) -> int:
    """Where the first line at or behind a position begins."""
    if position == 0:
        return 0
    file.seek(position - 1)
    while data := file.read(READ_BYTES):
        if (found := data.find(b"\n")) >= 0:
            return file.tell() - len(data) + found + 1
    return file.tell()


def _between(path: Path, begin: int, end: int | None) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(begin)
        position = begin
        while data := file.read(READ_BYTES if end is None else min(READ_BYTES, end - position)):
            position += len(data)
            yield data
