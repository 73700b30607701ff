"""Rows of all shards of a partition in memory-mapped form: found by arithmetic, verified before their first use.

Nothing is held per row. A shard is mapped when a row of it is first read and costs no descriptor from then on; a row
group's bytes are compared with their crc32 when one of its rows is first read.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from isal import isal_zlib
from numpy.typing import NDArray

from corpusmill.errors import CheckFailed
from corpusmill.kernels import gather
from corpusmill.kernels.bytes.bytehash import address_of
from corpusmill.store.folder import disk_fault
from corpusmill.tokens.row_group import RowGroup

Ints = NDArray[np.int64]
Addresses = NDArray[np.uint64]

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_PROT_READ, _MAP_SHARED, _MAP_FAILED = 1, 1, ctypes.c_void_p(-1).value


class Mapped:
    """A file in memory, without a descriptor (Python's own `mmap` keeps one before 3.13), until nobody refers to it."""

    def __init__(self, path: Path) -> None:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                self.size = os.fstat(descriptor).st_size
                self.address = _LIBC.mmap(None, max(self.size, 1), _PROT_READ, _MAP_SHARED, descriptor, 0)
                code = ctypes.get_errno()
            finally:
                os.close(descriptor)
            if self.address == _MAP_FAILED:
                raise OSError(code, os.strerror(code), str(path))
        except OSError as err:
            raise disk_fault(err, path.parent) from err
        weakref.finalize(self, _LIBC.munmap, self.address, max(self.size, 1)).atexit = False


@dataclass(frozen=True)
class Places:
    """Where rows lie in memory.

    Args:
        address: uint64[n], of the first token.
        pieces: uint64[n], of the pieces object of its shard.
        rows: int64[n], rows of its shard.
        local: int64[n], its number in its shard.
    """

    address: Addresses
    pieces: Addresses
    rows: Ints
    local: Ints

    def part(self, begin: int, end: int) -> Places:
        """Those of the rows begin to end."""
        return Places(self.address[begin:end], self.pieces[begin:end], self.rows[begin:end], self.local[begin:end])

    @classmethod
    def scattered(cls, count: int, parts: Sequence[tuple[Ints, Places]]) -> Places:
        """Places of `count` rows, from parts and where each row of them goes."""
        address, pieces = np.empty(count, np.uint64), np.empty(count, np.uint64)
        made = cls(address, pieces, np.empty(count, np.int64), np.empty(count, np.int64))
        for members, part in parts:
            made.address[members], made.pieces[members] = part.address, part.pieces
            made.rows[members], made.local[members] = part.rows, part.local
        return made


_NO_INTS, _NO_ADDRESSES = np.zeros(0, np.int64), np.zeros(0, np.uint64)
NOWHERE = Places(_NO_ADDRESSES, _NO_ADDRESSES, _NO_INTS, _NO_INTS)
"""No rows."""


class MappedRows:
    """Rows of token shards by number over all of them."""

    def __init__(
        self,
        payloads: Sequence[Sequence[RowGroup]],
        token_bytes: int,
        seq_len: int,
        tokens: Callable[[int], Path],
        pieces: Callable[[int], Path | NDArray[np.uint32]],
    ) -> None:
        """Map nothing yet.

        Args:
            payloads: of each shard its row groups.
            token_bytes: 2 or 4.
            seq_len: tokens a sequence; a row has one more.
            tokens: gives the local file of a shard, by its number.
            pieces: likewise its pieces (`gather.find_pieces` says how they are laid out), as a file or in memory.
        """
        self.seq_len, self.token_bytes = seq_len, token_bytes
        self._tokens, self._pieces = tokens, pieces
        self._row_bytes = token_bytes * (seq_len + 1)
        groups = [group for payload in payloads for group in payload]
        counts = np.array([len(payload) for payload in payloads], np.int64)
        self._shard = np.repeat(np.arange(len(payloads)), counts)
        self._starts = np.cumsum([0, *(group.rows for group in groups)], dtype=np.int64)
        self._offset = np.array([group.offset for group in groups], np.int64)
        self._crc32 = np.array([group.crc32 for group in groups], np.int64)
        self._verified = np.zeros(len(groups), np.bool_)
        self._first = first = np.concatenate([[0], np.cumsum(counts)])  # group of each shard
        self._shard_starts = self._starts[first]
        self._token_address = np.zeros(len(payloads), np.uint64)
        self._piece_address = np.zeros(len(payloads), np.uint64)
        self._held: list[object] = []

    def __len__(self) -> int:
        """Number of rows."""
        return int(self._starts[-1])

    def places(self, numbers: Ints) -> Places:
        """Where the rows with these numbers int64[n] lie, all of them verified.

        Raises:
            IndexError: a number outside 0 to len - 1.
            CheckFailed: a file is too short, or a row group's bytes are not what was written.
        """
        numbers = np.asarray(numbers, np.int64)
        if (numbers.view(np.uint64) >= np.uint64(len(self))).any():  # negative ones are huge
            raise IndexError(f"rows {numbers.min()} to {numbers.max()} of {len(self)}")
        group = np.searchsorted(self._starts, numbers, side="right") - 1
        if not (known := self._verified[group]).all():
            for number in np.unique(group[~known]).tolist():
                self._verify(number)
        shard = self._shard[group]
        inside = (self._offset[group] + (numbers - self._starts[group]) * self._row_bytes).astype(np.uint64)
        begin, end = self._shard_starts[shard], self._shard_starts[shard + 1]
        return Places(self._token_address[shard] + inside, self._piece_address[shard], end - begin, numbers - begin)

    def rows(self, numbers: Ints) -> Ints:
        """The rows themselves, int64[n, seq_len + 1]."""
        return assemble(self.places(numbers), self.token_bytes, self.seq_len)[0]

    def _open(self, shard: int) -> Mapped:
        path = self._tokens(shard)
        tokens, mine = Mapped(path), range(self._first[shard], self._first[shard + 1])
        needed = max(int(self._offset[g] + (self._starts[g + 1] - self._starts[g]) * self._row_bytes) for g in mine)
        if tokens.size < needed:
            raise CheckFailed(
                f"{path}: {tokens.size} bytes, but its row groups end at byte {needed}", "", "Fetch it again."
            )
        pieces = self._pieces(shard)
        if isinstance(pieces, Path):
            pieces_file = Mapped(pieces)
            self._held.append(pieces_file)
            self._piece_address[shard] = pieces_file.address
        else:
            self._held.append(pieces)
            self._piece_address[shard] = pieces.ctypes.data
        self._held.append(tokens)
        self._token_address[shard] = tokens.address
        return tokens

    def _verify(self, group: int) -> None:
        shard = int(self._shard[group])
        if not self._token_address[shard]:
            self._open(shard)
        begin, size = int(self._offset[group]), int(self._starts[group + 1] - self._starts[group]) * self._row_bytes
        address = int(self._token_address[shard]) + begin
        crc32 = isal_zlib.crc32(memoryview((ctypes.c_ubyte * size).from_address(address)))
        if crc32 != (expected := int(self._crc32[group])):
            first = int(self._first[shard])
            raise CheckFailed(
                f"{self._tokens(shard)}: row group {group - first} is damaged",
                f"expected crc32 {expected:08x}, its bytes give {crc32:08x}",
                "Delete this copy and fetch the shard again.",
            )
        self._verified[group] = True


def assemble(places: Places, token_bytes: int, seq_len: int) -> tuple[Ints, Ints, Ints, Ints]:
    """A batch of rows: rows int64[n, seq_len + 1], labels int64[n, seq_len], piece_row and piece_length int64[p]."""
    n = len(places.address)
    first, counts = np.empty(n, np.uint64), np.empty(n, np.int64)
    pieces = gather.find_pieces(places.pieces, places.rows, places.local, first, counts)
    rows, labels = np.empty((n, seq_len + 1), np.int64), np.empty((n, seq_len), np.int64)
    row, length = np.empty(pieces + n, np.int64), np.empty(pieces + n, np.int64)
    found = gather.fill(
        places.address, token_bytes, first, counts, rows, address_of(rows), labels, address_of(labels), row, length
    )
    return rows, labels, row[:found], length[:found]
