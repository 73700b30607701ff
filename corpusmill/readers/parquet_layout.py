"""Where the pages of a Parquet file are, and how large they get: what has to be known before they are unpacked.

Read from footer and page heads alone (Thrift's compact protocol; parquet-format 2.12). Arrow is not asked for the
metadata of columns, since it ends the process where those are broken; and it has none of pages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

MAX_FOOTER = 32 * 2**20
"""Bytes of a footer that is read here: some 100,000 column chunks."""
MAX_HEAD = 2**20
MAX_DEPTH = 32
MAGIC = b"PAR1"


class Malformed(ValueError):
    """These bytes are no footer or page head."""


@dataclass(frozen=True)
class Chunk:
    """One column of one row group.

    Attributes:
        path: names from the outermost column to the leaf, joined by dots.
        begin, end: where its pages are in the file.
        nulls: how many values are null; None where the file does not say.
    """

    path: str
    begin: int
    end: int
    nulls: int | None


def row_groups(path: Path) -> list[list[Chunk]] | None:
    """The chunks of every row group; None where the footer is too large to be looked at.

    Raises:
        Malformed: it is no footer.
    """
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - 8))
        tail = file.read(8)
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != MAGIC or length + 8 > size:
            raise Malformed("no footer")
        if length > MAX_FOOTER:
            return None
        file.seek(size - 8 - length)
        about = _Compact(file.read(length)).struct()
    return [[_chunk(column) for column in _items(group.get(1))] for group in _items(about.get(4))]


def largest_page(file: BinaryIO, chunk: Chunk) -> tuple[int, int]:
    """(bytes when unpacked, bytes in the file) of the page of a chunk that takes most memory.

    Raises:
        Malformed: a page has no head that can be read.
    """
    return max(_pages(file, chunk), default=(0, 0))


def _pages(file: BinaryIO, chunk: Chunk) -> Iterator[tuple[int, int]]:
    position = chunk.begin
    while position < chunk.end:
        for size in (256, 2**14, MAX_HEAD):
            file.seek(position)
            head = _Compact(file.read(size))
            try:
                fields = head.struct()
                break
            except Malformed:
                if size == MAX_HEAD:
                    raise
        unpacked, packed = _number(fields.get(2)), _number(fields.get(3))
        yield unpacked, packed
        position += head.position + packed


def _chunk(column: Any) -> Chunk:
    about = column.get(3) if isinstance(column, dict) else None
    if not isinstance(about, dict):
        raise Malformed("column")
    names = [name.decode("utf-8", "replace") for name in about.get(3) or () if isinstance(name, bytes)]
    begin = _number(about.get(9))
    if (dictionary := about.get(11)) and 0 < _number(dictionary) < begin:
        begin = _number(dictionary)
    said = about.get(12)
    nulls = said.get(3) if isinstance(said, dict) else None
    end = begin + _number(about.get(7))
    return Chunk(".".join(names), begin, end, nulls if isinstance(nulls, int) else None)


def _items(value: Any) -> list[dict[int, Any]]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise Malformed("expected a list of structs")
    return value


def _number(value: Any) -> int:
    if not isinstance(value, int) or value < 0:
        raise Malformed("expected a number")
    return value


class _Compact:
    """A reader of Thrift's compact protocol: structs as {field: value}, lists as lists."""

    def __init__(self, data: bytes) -> None:
        self._data, self.position = data, 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """The struct at the position."""
        if depth > MAX_DEPTH:
            raise Malformed("nested too deep")
        found: dict[int, Any] = {}
        field = 0
        while head := self._byte():
            field = field + (head >> 4) if head >> 4 else self._zigzag()
            kind = head & 15
            found[field] = kind == 1 if kind in (1, 2) else self._value(kind, depth)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (1, 2, 3):
            return self._byte()
        if kind in (4, 5, 6):
            return self._zigzag()
        if kind == 7:
            return self._bytes(8)
        if kind == 8:
            return self._bytes(self._varint())
        if kind in (9, 10):
            head = self._byte()
            count = head >> 4 if head >> 4 < 15 else self._varint()
            return [self._value(head & 15, depth) for _ in range(count)]
        if kind == 12:
            return self.struct(depth + 1)
        raise Malformed(f"type {kind}")

    def _byte(self) -> int:
        if self.position >= len(self._data):
            raise Malformed("cut")
        self.position += 1
        return self._data[self.position - 1]

    def _bytes(self, size: int) -> bytes:
        data = self._data[self.position : self.position + size]
        if len(data) < size:
            raise Malformed("cut")
        self.position += size
        return data

    def _varint(self) -> int:
        value = shift = 0
        while (byte := self._byte()) & 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
            if shift > 63:
                raise Malformed("number")
        return value | byte << shift

    def _zigzag(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)
