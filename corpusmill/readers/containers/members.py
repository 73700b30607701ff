"""The container of an archive, one unit at a time: gzip members, zstd or LZ4 frames, or the plain rest of a file.

Bytes are decompressed on demand, so that a bomb costs what is asked for. A unit that cannot be read to its end keeps
what came before the damage, and the next one is found by its magic bytes: a candidate counts only if a record comes
out of it.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from corpusmill.readers.containers.files import File
from corpusmill.readers.containers.frames import (
    LZ4_MAGIC,
    ZSTD_MAGIC,
    dictionary_of,
    frame_end,
    is_frame,
    needs_too_much,
    pieces,
    skippable_end,
)
from corpusmill.readers.dialects import DIALECTS, WARC, Dialect

GZIP_MAGIC = b"\x1f\x8b\x08"
FIRST_READ = 16 * 1024  # a Common Crawl member has 5-30 KB; more is read only when needed
NEXT_READ = 256 * 1024
MAX_PIECE = 1024 * 1024  # decompressed bytes handed out at a time
SCAN = 1024 * 1024
PADDING = b"\r\n\t \x00"
BOM = b"\xef\xbb\xbf"
MAX_RATIO = 500  # of a unit passed over by decompressing it, once it has given
MAX_PASSED_OVER = 256 * 2**20
MAX_REWINDS = 16  # of one unit; each may cost reading all of it again

_UNITS = {
    GZIP_MAGIC: re.compile(rb"\x1f\x8b\x08[\x00-\x1f]"),
    ZSTD_MAGIC: re.compile(re.escape(ZSTD_MAGIC)),
    LZ4_MAGIC: re.compile(re.escape(LZ4_MAGIC)),
}
_ANY_UNIT = re.compile(b"|".join(unit.pattern for unit in _UNITS.values()))
_PADDING = re.compile(rb"[\r\n\t \x00]*")

Fault = Literal["truncated", "damaged", "too_large"]


@dataclass(frozen=True)
class Archive:
    """A file, which records to look for in it, and the dictionary it is compressed with."""

    file: File
    dialect: Dialect = WARC
    dictionary: bytes | None = None


class Member:
    """Decompressed bytes of one unit, read forward through a small buffer; this one of a gzip member.

    Attributes:
        offset: where the unit begins in the file.
        compressed: False for plain bytes, whose records have offsets of their own.
        fault: set once the end is reached and it is not a sound one.
        end: position in the file behind the unit, known once the end is reached without fault.
        given_up: a bomb: what is left of it is not worth decompressing.
        needs: says what takes too much memory, where the fault is `too_large`.
    """

    compressed = True

    def __init__(self, archive: Archive, offset: int) -> None:
        self.archive, self.file, self.offset = archive, archive.file, offset
        self._start, self._begins = archive.dialect.start, archive.dialect.begins
        self._lookahead = archive.dialect.lookahead
        self.rewinds = 0
        self._open()

    def _open(self) -> None:
        self.end = self.offset
        self.fault: Fault | None = None
        self.given_up, self.needs = False, ""
        self.buffer, self.position = b"", 0
        self.consumed = 0  # bytes handed out before the buffer's first
        self._begin = self.offset  # of the gzip member being read, where several were joined
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
        """Go on in the next unit of the kind, if it does not begin a record: then it belongs to the one at hand."""
        head = self.file.read_at(self.end, 4)
        if self.fault or self.given_up or head[:3] != self.file.read_at(self.offset, 3) or not head:
            return False
        if holds_record(self.archive, self.end):
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
            if left and self._is_bomb(size - left):
                self.give_up()
                return size
        return max(0, size) - max(0, left)

    def _is_bomb(self, passed: int) -> bool:
        return passed > MAX_PASSED_OVER and self.consumed > MAX_RATIO * (self.end - self.offset)

    def give_up(self) -> None:
        """End here; the next unit is looked for by its magic bytes."""
        self._pieces, self._ended, self.given_up = iter(()), True, True
        self.position = len(self.buffer)

    def back(self, data: bytes) -> None:
        """Put back bytes that were just taken."""
        self.consumed += self.position - len(data)
        self.buffer, self.position = data + self.buffer[self.position :], 0

    def rewind(self, begin: int) -> bool:
        """Go back to a place that `tell` gave; False where that has been asked for too often."""
        self.rewinds += 1
        if self.rewinds > MAX_REWINDS:
            return False
        base = 0 if self.compressed else self.offset
        self._open()
        self.skip(begin - base)
        return True

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
        if len(self.buffer) - self.position < self._lookahead:
            self.fill(self._lookahead, join=True)
        return self._begins.match(self.buffer, self.position) is not None

    def at_unit(self) -> bool:
        """Whether another unit begins at hand, so that this one ends here."""
        return False

    def find_start(self, end: int) -> int | None:
        """Where, in the buffer before `end`, the next record or unit with a record begins."""
        match = self._start.search(self.buffer, self.position, end)
        return match.start() if match else None

    def peek(self) -> bytes:
        """As many of the next bytes as the beginning of a record may need."""
        self.fill(self._lookahead)
        return self.buffer[self.position : self.position + self._lookahead]

    def ends_badly(self) -> bool:
        """Whether nothing but garbage is left of a unit that is broken; the garbage is passed over then."""
        if not self.compressed or self.fill(SCAN):
            return False
        if self.fault is None or self._start.search(self.buffer, self.position):
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
            found = self.find_start(len(self.buffer))
            if found is not None:
                self.position = found
                return self.tell() - start
            # a start may straddle the edge
            self.position = max(self.position, len(self.buffer) - self._lookahead)
            if not self.fill(len(self.buffer) - self.position + 1):
                self.position = len(self.buffer)
                return self.tell() - start

    def take_to_record(self, limit: int) -> bytes | None:
        """All up to the next record or the unit's end, if it is not more than `limit`; else None, and nothing taken."""
        self.fill(limit)
        found = self.find_start(self.position + limit)
        if found is None and len(self.buffer) - self.position >= limit:
            return None
        return self.take((len(self.buffer) if found is None else found) - self.position)


class PlainMember(Member):
    """Records of a file that are not compressed, up to its end or to a compressed unit that holds a record."""

    compressed = False

    def _join(self) -> bool:
        return False

    def _produce(self) -> Iterator[bytes]:
        while piece := self.file.read_at(self.end, NEXT_READ):
            self.end += len(piece)
            yield piece

    def _is_bomb(self, passed: int) -> bool:
        return False

    def tell(self) -> int:
        """Position in the file."""
        return self.offset + self.consumed + self.position

    def at_unit(self) -> bool:
        """Whether a compressed unit with a record begins at hand."""
        self.fill(4)
        head = self.buffer[self.position : self.position + 4]
        return is_compressed(head) and holds_record(self.archive, self.tell())

    def find_start(self, end: int) -> int | None:
        """Where the next record begins, plain or compressed."""
        plain = super().find_start(end)
        unit = first_unit(
            self.archive, self.buffer, self.tell() - self.position, self.position, end if plain is None else plain
        )
        return plain if unit is None else unit


class FrameMember(Member):
    """A zstd or LZ4 frame."""

    def _produce(self) -> Iterator[bytes]:
        self._begin = self.end
        self.end, self.fault = frame_end(self.file, self._begin)
        if needs := needs_too_much(self.file, self._begin):
            self.fault, self.needs = "too_large", needs
            return
        try:
            yield from pieces(self.file, self._begin, self.end, self.archive.dictionary)
        except OSError:
            self.fault = self.fault or "damaged"


class Junk:
    """Bytes between units that nothing can be read from."""

    def __init__(self, offset: int, size: int) -> None:
        self.offset, self.size = offset, size


def archive_of(file: File) -> Archive:
    """What kind of archive a file is: by its first unit, or the first that holds a record of any kind."""
    dictionary = dictionary_of(file)
    start = 0 if dictionary is None else skippable_end(file, 0) or 0
    places = [start]
    if not _dialect_at(file, start, dictionary):
        places += [match.start() for match in _ANY_UNIT.finditer(file.read_at(0, SCAN))][:MAX_REWINDS]
    found = (_dialect_at(file, place, dictionary) for place in places)
    return Archive(file, next(filter(None, found), WARC), dictionary)


def _dialect_at(file: File, offset: int, dictionary: bytes | None) -> Dialect | None:
    return next((d for d in DIALECTS if holds_record(Archive(file, d, dictionary), offset)), None)


def members(archive: Archive, start: int = 0) -> Iterator[Member | Junk]:
    """Units of a file in order; what is left of one is skipped when the next is asked for."""
    file, position, magic = archive.file, start, b""
    while position < file.size:
        head = file.read_at(position, archive.dialect.lookahead + len(BOM))
        if head.startswith(GZIP_MAGIC) or is_frame(head):
            magic = GZIP_MAGIC if head.startswith(GZIP_MAGIC) else head[:4]
            member = (Member if magic == GZIP_MAGIC else FrameMember)(archive, position)
            yield member
            while member.fill(1):
                member.position = len(member.buffer)
                if member._is_bomb(member.consumed):
                    member.give_up()
            if (member.fault is None and not member.given_up) or member.needs:
                position = member.end
                continue
            found = _next_unit(archive, position + 1, magic)
        elif archive.dialect.begins.match(head):
            plain = PlainMember(archive, position)
            yield plain
            if plain.tell() == position:  # nobody has read it
                return
            position = plain.tell()
            continue
        elif blank := len(head) - len(head.lstrip(PADDING)):
            position += blank
            continue
        elif head.startswith(BOM):
            position += len(BOM)
            continue
        elif (end := skippable_end(file, position)) is not None:
            position = end
            continue
        else:
            found = _next_unit(archive, position + 1, magic)
            yield Junk(position, found - position)
        position = found


def _next_unit(archive: Archive, position: int, magic: bytes) -> int:
    """Where the next unit with a record in it begins; the file's size if nowhere.

    Once a compressed unit was met, only such are looked for: text that looks like a plain record is then part of a
    stored block.
    """
    file, plain = archive.file, archive.dialect.start
    unit = _UNITS[magic] if magic else re.compile(_ANY_UNIT.pattern + b"|" + plain.pattern, plain.flags & re.MULTILINE)
    overlap = archive.dialect.lookahead
    while position < file.size:
        data = file.read_at(position, SCAN)
        for match in unit.finditer(data):
            at = position + match.start()
            if not is_compressed(match[0]) or holds_record(archive, at):
                return at
        position += max(1, len(data) - overlap) if len(data) == SCAN else len(data)
    return file.size


def first_unit(archive: Archive, data: bytes, offset: int, begin: int, end: int) -> int | None:
    """Where in `data[begin:end]`, which stands at `offset` of the file, a compressed unit with a record begins."""
    found = (match.start() for match in _ANY_UNIT.finditer(data, begin, end))
    return next((at for at in found if holds_record(archive, offset + at)), None)


def is_compressed(head: bytes) -> bool:
    """Whether a compressed unit begins here."""
    return head.startswith(GZIP_MAGIC) or is_frame(head)


def holds_record(archive: Archive, offset: int) -> bool:
    """Whether the unit at `offset` begins with a record."""
    file, lookahead = archive.file, archive.dialect.lookahead
    head = file.read_at(offset, max(64, lookahead))
    if head.startswith(GZIP_MAGIC):
        try:
            text = zlib.decompressobj(31).decompress(file.read_at(offset, FIRST_READ), 48 + lookahead)
        except zlib.error:
            return False
    elif is_frame(head):
        end, _ = frame_end(file, offset)
        if needs_too_much(file, offset):
            return False
        try:
            text = next(pieces(file, offset, end, archive.dictionary), b"")[: 48 + lookahead]
        except OSError:
            return False
    else:
        text = head.removeprefix(BOM)
    return archive.dialect.begins.match(text.lstrip(PADDING)) is not None
