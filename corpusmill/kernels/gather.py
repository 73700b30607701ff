"""Batches of packed rows by address: tokens widened, labels and document pieces found, in one call over all shards.

One pass over the rows; memory is that of the batch. Addresses are those of mapped files (`corpusmill.tokens.mapped`),
which stay mapped while a kernel reads them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpusmill.compiled import intrinsic, ir, kernel, types
from corpusmill.kernels.bytes.bytehash import U, load32

Ints = NDArray[np.int64]
Addresses = NDArray[np.uint64]

IGNORED = -100
"""A label that does not count."""

WIDE = 16
"""Tokens that are widened at once."""


def _widen(bits: int, count: int) -> Any:
    def widen(context: Any, source: Any, target: Any, other: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            stored, wide = ir.VectorType(ir.IntType(bits), count), ir.VectorType(ir.IntType(64), count)
            value = builder.zext(builder.load(builder.inttoptr(args[0], stored.as_pointer()), align=1), wide)
            for place in args[1:]:
                builder.store(value, builder.inttoptr(place, wide.as_pointer()), align=8)
            return context.get_dummy_value()

        return types.void(types.uint64, types.uint64, types.uint64), codegen

    return intrinsic(widen)


_widen16, _widen32 = _widen(16, WIDE), _widen(32, WIDE)
_widen16_one, _widen32_one = _widen(16, 1), _widen(32, 1)
"""Little-endian tokens at an address, any alignment, as int64 at two others: of the row and of the labels."""


def pieces_of(ends: Ints, lengths: Ints) -> NDArray[np.uint32]:
    """The pieces object of a shard, uint32[R + P]: what `find_pieces` reads.

    Args:
        ends: int64[R], pieces up to and with each row.
        lengths: int64[P], tokens of each piece.
    """
    return np.concatenate([ends, lengths]).astype("<u4")


@kernel
def find_pieces(ends: Addresses, rows: Ints, local: Ints, first: Addresses, counts: Ints) -> int:
    """Where the piece lengths of rows lie, and how many each row has; returns how many in all.

    Args:
        ends: uint64[n], of each row's shard the address of its pieces object.
        rows: int64[n], rows of that shard.
        local: int64[n], number of the row in its shard.
        first: uint64[n], written: address of the row's first length.
        counts: int64[n], written: its pieces.
    """
    total = 0
    for i in range(len(local)):
        place = ends[i] + U(4) * U(local[i])
        before = load32(place - U(4)) if local[i] > 0 else U(0)
        first[i] = ends[i] + U(4) * (U(rows[i]) + before)
        counts[i] = np.int64(load32(place) - before)
        total += counts[i]
    return total


@kernel
def fill(
    address: Addresses,
    token_bytes: int,
    first: Addresses,
    counts: Ints,
    rows: Ints,
    rows_at: U,
    labels: Ints,
    labels_at: U,
    piece_row: Ints,
    piece_length: Ints,
) -> int:
    """Write a batch; returns its pieces.

    A label is the next token of the same document, else IGNORED. Padding is a piece at the end of its row, so each row
    sums to seq_len; a last piece of one token beyond it is label only.

    Args:
        address: uint64[n], of each row's first token.
        token_bytes: 2 or 4, of a stored token.
        first, counts: as `find_pieces` gives them.
        rows, rows_at: int64[n, seq_len + 1], written, and its address.
        labels, labels_at: int64[n, seq_len], written, and its address.
        piece_row, piece_length: int64[pieces + n], written up to the number returned.
    """
    seq_len, p = labels.shape[1], 0
    for r in range(len(address)):
        at, row, label = address[r], rows_at + U(8) * U(r) * U(seq_len + 1), labels_at + U(8) * U(r) * U(seq_len)
        rows[r, 0] = np.int64(load32(at) & U(0xFFFF) if token_bytes == 2 else load32(at))
        i = np.uint64(1)
        if token_bytes == 2:
            while i + U(WIDE) <= U(seq_len + 1):
                _widen16(at + U(2) * i, row + U(8) * i, label + U(8) * (i - U(1)))
                i += U(WIDE)
            while i <= U(seq_len):
                _widen16_one(at + U(2) * i, row + U(8) * i, label + U(8) * (i - U(1)))
                i += U(1)
        else:
            while i + U(WIDE) <= U(seq_len + 1):
                _widen32(at + U(4) * i, row + U(8) * i, label + U(8) * (i - U(1)))
                i += U(WIDE)
            while i <= U(seq_len):
                _widen32_one(at + U(4) * i, row + U(8) * i, label + U(8) * (i - U(1)))
                i += U(1)
        end = np.int64(0)
        for k in range(counts[r]):
            begin = end
            end += np.int64(load32(first[r] + U(4) * U(k)))
            if 0 < end <= seq_len:
                labels[r, end - 1] = IGNORED
            if begin < seq_len:
                piece_row[p], piece_length[p] = r, min(end, seq_len) - begin
                p += 1
        if end < seq_len:
            for k in range(end, seq_len):
                labels[r, k] = IGNORED
            piece_row[p], piece_length[p] = r, seq_len - end
            p += 1
    return p
