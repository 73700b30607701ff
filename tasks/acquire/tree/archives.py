"""Files of a tree: a folder, or a tarball in whatever compression, member by member, each with bounded bytes.

Tarballs are read here and not by `tarfile`, which holds headers of any length, follows rows of them by recursion and
takes `1_0` for a number. Formats: v7, ustar, GNU (long names), PAX (path, size): POSIX.1-2017, pax.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from corpusmill.readers.numbers import MOST, whole_number
from corpusmill.readers.text import clean_text
from tasks.acquire.fetch.transport import tree_files
from tasks.acquire.streams import Damage, pieces

BLOCK = 512
MAX_HEADER = 2**20
"""Bytes of a name or of PAX records that are read: paths have 4 kB. A member with more is given without data."""
_OCTAL = re.compile(rb"[0-7]{1,21}")
_KINDS = {b"0": "file", b"\0": "file", b"7": "file", b"5": "folder", b"S": "sparse"}
_NO_DATA = frozenset((b"1", b"2", b"3", b"4", b"5", b"6"))
_LONG_NAME, _LONG_LINK, _GLOBAL, _PAX = b"L", b"K", b"g", (b"x", b"X")

TAR = r"\.(tar|tgz|tbz2|txz|tar\.(gz|bz2|xz|zst))$"


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a tree.

    Attributes:
        path: as the tree has it, "/"-separated.
        offset: of its header in the decompressed tarball; of its first byte in a folder's files laid end to end.
        size: in bytes.
        data: None where it is larger than was asked for, or was not wanted.
        kind: `file`, or what else the member is: counted, no document.
    """

    path: str
    offset: int
    size: int
    data: bytes | None
    kind: str = "file"


def entries(path: Path, limit: int, wanted: Callable[[str], bool] = lambda path: True) -> Iterator[Entry]:
    """Every member of a tarball in its order, or file of a folder in the order of paths.

    Args:
        path: of the tarball or folder.
        limit: larger files come without data.
        wanted: whether the data of the file at a path is to be read.

    Raises:
        Damage: the tarball cannot be read on.
        OSError: a file of the folder cannot be read.
    """
    if path.is_dir():
        yield from _folder(path, limit, wanted)
    else:
        yield from members(pieces(path), limit, wanted)


def _folder(path: Path, limit: int, wanted: Callable[[str], bool]) -> Iterator[Entry]:
    offset = 0
    for name, file in tree_files(path):
        size = file.stat().st_size
        data = file.read_bytes() if size <= limit and wanted(name) else None
        yield Entry(clean_text(name)[0], offset, size, data)
        offset += size


def members(stream: Iterable[bytes], limit: int, wanted: Callable[[str], bool] = lambda path: True) -> Iterator[Entry]:
    """Members of a tarball that comes as decompressed pieces; as `entries`."""
    data = Pieces(stream)
    while (header := _header(data)) is not None:
        held = None
        if header.kind == "file" and header.is_named and header.size <= limit and wanted(header.path):
            held = data.read(header.size)
            data.skip(-header.size % BLOCK)
        elif header.has_data:
            data.skip(_padded(header.size))
        yield Entry(clean_text(header.path)[0], header.offset, header.size, held, header.kind)
    while piece := data.some():  # behind the end are only zeros, and blocks are whole
        if piece.strip(b"\0"):
            raise Damage("damaged")
    if data.position % BLOCK:
        raise Damage("truncated")


@dataclass(frozen=True, slots=True)
class _Header:
    """What stands before a member: its own block, and the longer name and size of those before it."""

    path: str
    offset: int
    size: int
    kind: str
    has_data: bool
    is_named: bool = True
    """No part of its header was too long to be read."""


def _header(data: Pieces) -> _Header | None:
    """The next member's header; None at the end of the tarball.

    Raises:
        Damage: it cannot be read.
    """
    begin: int | None = None
    path, size, sparse, is_named = b"", None, False, True
    while True:
        offset = data.position
        block = data.some(BLOCK)
        if len(block) < BLOCK:
            if not block and offset and begin is None:
                return None
            raise Damage("truncated" if offset else "damaged")
        if not block.strip(b"\0"):
            return None
        stated = _number(block[124:136])
        if not checksum_is_right(block) or stated is None:
            raise Damage("damaged")
        kind = block[156:157]
        if kind not in (_LONG_NAME, _LONG_LINK, _GLOBAL, *_PAX):
            break
        if kind != _GLOBAL and begin is None:
            begin = offset
        if stated > MAX_HEADER:
            is_named = is_named and kind == _GLOBAL
            data.skip(_padded(stated))
            continue
        body = data.read(_padded(stated))[:stated]
        if kind == _LONG_NAME:
            path = body.partition(b"\0")[0]
        elif kind in _PAX:
            said = _pax(body)
            path, sparse = said.get(b"path", path), any(key.startswith(b"GNU.sparse.") for key in said)
            if b"size" in said and (size := whole_number(said[b"size"].decode("latin-1"))) is None:
                raise Damage("damaged")
    if kind == b"S":
        _skip_map(block, data)
    found = _own(block, kind, offset if begin is None else begin, stated if size is None else size)
    named = path.decode("utf-8", "surrogateescape").rstrip("/") or found.path
    return replace(found, path=named, kind="sparse" if sparse else found.kind, is_named=is_named)


def _own(block: bytes, kind: bytes, offset: int, size: int) -> _Header:
    """What a member's own block says."""
    name, prefix = (
        field.partition(b"\0")[0].decode("utf-8", "surrogateescape") for field in (block[:100], block[345:500])
    )
    if prefix and kind != b"S":
        name = f"{prefix}/{name}"
    if kind == b"\0" and name.endswith("/"):
        kind = b"5"  # as the oldest tarballs write folders
    return _Header(name.rstrip("/"), offset, size, _KINDS.get(kind, "link"), kind not in _NO_DATA)


def _skip_map(block: bytes, data: Pieces) -> None:
    """Pass over the blocks that say where the holes of a sparse file are."""
    goes_on = block[482]
    while goes_on:
        goes_on = data.read(BLOCK)[504]


def _pax(body: bytes) -> dict[bytes, bytes]:
    """Keywords and values of PAX records, `length keyword=value newline`, up to the first that is none."""
    said: dict[bytes, bytes] = {}
    at = 0
    while (blank := body.find(b" ", at, at + 8)) > 0:
        length = whole_number(body[at:blank].decode("latin-1")) or 0
        keyword, equals, value = body[blank + 1 : at + length].partition(b"=")
        if not equals or not value.endswith(b"\n") or at + length > len(body):
            break
        said[keyword] = value[:-1]
        at += length
    return said


def _number(field: bytes) -> int | None:
    """A number of a header, octal or, behind a high bit, binary; None where it is neither."""
    if field[0] == 0x80:
        number = int.from_bytes(field[1:], "big")
        return number if number <= MOST else None
    text = field.partition(b"\0")[0].strip(b" ")
    return int(text, 8) if _OCTAL.fullmatch(text) else None if text else 0


def checksum_is_right(block: bytes) -> bool:
    """Whether a header's block has the sum of its bytes, its own field as blanks; or their signed sum."""
    others = block[:148] + block[156:]
    total = sum(others) + 8 * 32
    return len(block) == BLOCK and _number(block[148:156]) in (total, total - 256 * sum(byte > 127 for byte in others))


def _padded(size: int) -> int:
    return size + -size % BLOCK


class Pieces:
    """Pieces of bytes, read forward by number; `position` counts those that were read."""

    def __init__(self, stream: Iterable[bytes]) -> None:
        self._pieces, self._held, self._at = iter(stream), b"", 0
        self.position = 0

    def some(self, most: int = 2**16) -> bytes:
        """The next bytes: as many as asked for, fewer at the end."""
        parts: list[bytes] = []
        left = most
        while left and (part := self._part(left)):
            parts.append(part)
            left -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def read(self, size: int) -> bytes:
        """The next bytes.

        Raises:
            Damage: there are fewer.
        """
        data = self.some(size)
        if len(data) < size:
            raise Damage("truncated")
        return data

    def skip(self, size: int) -> None:
        """Pass over the next bytes without holding them.

        Raises:
            Damage: there are fewer.
        """
        while size:
            if not (part := self._part(size)):
                raise Damage("truncated")
            size -= len(part)

    def _part(self, most: int) -> bytes:
        """Some of the next bytes, of one piece; none at the end."""
        while self._at == len(self._held):
            piece = next(self._pieces, None)
            if piece is None:
                return b""
            self._held, self._at = piece, 0
        part = self._held[self._at : self._at + most]
        self._at += len(part)
        self.position += len(part)
        return part
