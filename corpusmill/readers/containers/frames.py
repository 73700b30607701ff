"""Frames of zstd and LZ4 archives: where one ends, and its bytes, bounded.

The end is found by walking over block headers (RFC 8878; LZ4 frame format 1.6), so nothing is decompressed to get past
a frame, and a decoder never sees bytes behind it. A `.warc.zst` may begin with its dictionary in a skippable frame
(iipc.github.io/warc-specifications, "Zstandard").
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import zstandard

from corpusmill.plain_text import human_bytes
from corpusmill.readers.containers.files import File, Section

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
LZ4_MAGIC = b"\x04\x22\x4d\x18"
DICTIONARY_MAGIC = b"\x5d\x2a\x4d\x18"

MAX_DICTIONARY = 16 * 2**20
MAX_WINDOW = 128 * 2**20  # what a decoder of archives holds at most; zstd's own default
STEP = 64 * 1024  # decompressed bytes at a time
FINE_STEP = 512  # behind the last sound step, so that little is lost before damage

HEAD_BYTES = 18  # of a zstd frame at most
_ZSTD_BLOCK = 128 * 1024
_LZ4_BLOCK = 4 * 2**20
_WALKED = 64 * 1024

Fault = Literal["truncated", "damaged"]


def is_frame(head: bytes) -> bool:
    """Whether a zstd or LZ4 frame begins here."""
    return head.startswith((ZSTD_MAGIC, LZ4_MAGIC))


def window(head: bytes) -> int:
    """Bytes of the window that a zstd frame asks for; 0 where its head cannot be read."""
    try:
        return zstandard.get_frame_parameters(head[:HEAD_BYTES]).window_size
    except zstandard.ZstdError:
        return 0


def too_much(what: str, asked: int, most: int) -> str:
    """Says that unpacking takes more memory than is given; empty where it does not."""
    return f"{what} of {human_bytes(asked)}, at most {human_bytes(most)}" if asked > most else ""


def needs_too_much(file: File, offset: int) -> str:
    """As `too_much`, of the zstd frame at `offset`: its window, or the dictionary that the file begins with."""
    head = file.read_at(offset, HEAD_BYTES)
    if not head.startswith(ZSTD_MAGIC):
        return ""
    if said := too_much("a zstd window", window(head), MAX_WINDOW):
        return said
    begin = file.read_at(0, 8)
    size = int.from_bytes(begin[4:], "little") if begin.startswith(DICTIONARY_MAGIC) and offset >= 8 else 0
    return too_much("a zstd dictionary", size, MAX_DICTIONARY)


def skippable_end(file: File, offset: int) -> int | None:
    """Where a skippable frame ends; None if there is none, or if it leads nowhere."""
    head = file.read_at(offset, 8)
    if len(head) < 8 or head[1:4] != DICTIONARY_MAGIC[1:] or not 0x50 <= head[0] <= 0x5F:
        return None
    end = offset + 8 + int.from_bytes(head[4:8], "little")
    return end if end == file.size or is_frame(file.read_at(end, 4)) else None


def dictionary_of(file: File) -> bytes | None:
    """The dictionary that a zstd archive begins with, if any."""
    end = skippable_end(file, 0) if file.read_at(0, 4) == DICTIONARY_MAGIC else None
    if end is None or end - 8 > MAX_DICTIONARY:
        return None
    data = file.read_at(8, end - 8)
    if not data.startswith(ZSTD_MAGIC):
        return data
    if window(data) > MAX_WINDOW:
        return None
    try:  # it may be compressed itself
        with zstandard.ZstdDecompressor().stream_reader(data) as stream:
            return stream.read(MAX_DICTIONARY)
    except zstandard.ZstdError:
        return None


def frame_end(file: File, offset: int) -> tuple[int, Fault | None]:
    """Where the frame at `offset` ends, and what is wrong if that cannot be said (then it is the file's end)."""
    walk = _zstd_walk if file.read_at(offset, 4) == ZSTD_MAGIC else _lz4_walk
    try:
        end = walk(_Bytes(file), offset)
    except EOFError:
        return file.size, "truncated"
    except ValueError:
        return file.size, "damaged"
    return (end, None) if end <= file.size else (file.size, "truncated")


def pieces(file: File, begin: int, end: int, dictionary: bytes | None) -> Iterator[bytes]:
    """Decompressed bytes of the frame between two positions, as many as there are before damage.

    Raises:
        OSError: the frame is damaged, or cut; all that came before has been given.
    """
    given = 0
    for step in (STEP, FINE_STEP):
        stream, position = _reader(Section(file, begin, end), dictionary), 0
        try:
            while piece := stream.read(step):
                position += len(piece)
                if position > given:
                    yield piece[-(position - given) :]
                    given = position
            return
        except (OSError, zstandard.ZstdError) as err:
            if step == FINE_STEP:
                raise OSError(str(err)) from err


def _reader(section: Section, dictionary: bytes | None) -> Any:
    if section._file.read_at(section._begin, 4) == ZSTD_MAGIC:
        given = zstandard.ZstdCompressionDict(dictionary) if dictionary else None
        decompressor = zstandard.ZstdDecompressor(dict_data=given, max_window_size=MAX_WINDOW)
        return decompressor.stream_reader(section, read_size=STEP)  # type: ignore[arg-type]
    from fastwarc.stream_io import Lz4Reader

    return Lz4Reader(section, fsspec_args=False)


class _Bytes:
    """Little-endian numbers at positions that grow."""

    def __init__(self, file: File) -> None:
        self.file, self.begin, self.data = file, 0, b""

    def number(self, position: int, size: int) -> int:
        at = position - self.begin
        if at < 0 or at + size > len(self.data):
            self.begin, self.data, at = position, self.file.read_at(position, _WALKED), 0
        found = self.data[at : at + size]
        if len(found) < size:
            raise EOFError
        return int.from_bytes(found, "little")


def _zstd_walk(data: _Bytes, offset: int) -> int:
    flags = data.number(offset + 4, 1)
    single, checksum = flags >> 5 & 1, flags >> 2 & 1
    if flags >> 3 & 1:
        raise ValueError("reserved bit")
    position = offset + 5 + (1 - single) + (0, 1, 2, 4)[flags & 3] + (single, 2, 4, 8)[flags >> 6]
    last = 0
    while not last:
        block = data.number(position, 3)
        last, kind, size = block & 1, block >> 1 & 3, block >> 3
        if kind == 3 or size > _ZSTD_BLOCK:
            raise ValueError("block header")
        position += 3 + (1 if kind == 1 else size)
    return position + 4 * checksum


def _lz4_walk(data: _Bytes, offset: int) -> int:
    flags = data.number(offset + 4, 1)
    if flags >> 6 != 1:
        raise ValueError("version")
    position = offset + 7 + 8 * (flags >> 3 & 1) + 4 * (flags & 1)
    while block := data.number(position, 4):
        size = block & 0x7FFF_FFFF
        if size > _LZ4_BLOCK:
            raise ValueError("block size")
        position += 4 + size + 4 * (flags >> 4 & 1)
    return position + 4 + 4 * (flags >> 2 & 1)
