"""The words of texts by their hashes alone: what signatures and the benchmark screen read.

The same words and hashes as the word table's (words.py), in a fraction of its time: 64 bytes at a time become a mask
of letters and digits, so a word's beginning and end come from counting zeros. A word beside a character that may join
words, and whatever is not ASCII, is read as the word table reads it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.compiled import inner, intrinsic, ir, kernel, types
from corpusmill.kernels.bytes.bytehash import SEED, U, absorb, address_of, load8, load64, load_chunk, lower_ascii
from corpusmill.kernels.bytes.bytemasks import block, in_span, lowest_bit
from corpusmill.kernels.bytes.hashing import mix64
from corpusmill.kernels.bytes.unicode_table import load_table
from corpusmill.kernels.words.scan import BLANK, JOINTS, LETTERS, SIGNS, WIDE, byte_classes, decode_fast, token
from corpusmill.kernels.words.table import IS_WORD, text_buffers

_ALL = U(0xFFFFFFFFFFFFFFFF)
_SMALL = U(0x2020202020202020)
_WORD = U(IS_WORD)


def word_hashes(text: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Folded hash of every word: offsets int64[D + 1] and uint64 hashes.

    Args:
        text: large_string[D] without nulls; slices are read in place.

    Raises:
        ValueError: another type, or nulls.
    """
    data, bounds = text_buffers(text)
    offsets = np.empty(len(bounds), np.int64)
    text_bytes = int(bounds[-1] - bounds[0])
    blocks = int(np.diff(bounds).max(initial=0)) // 64 + 2
    masks = np.empty((2, blocks), np.uint64)
    for room in (text_bytes // 2 + 1, text_bytes + 1):  # few texts have a word every two bytes, none one a byte
        folded = np.empty(room, np.uint64)
        n = int(
            _scan(
                address_of(data), U(len(data)), bounds, address_of(load_table()), address_of(byte_classes()),
                address_of(masks[0]), address_of(masks[1]), U(room), offsets, folded,
            )
        )  # fmt: skip
        if n <= room:
            break
    return offsets, folded[:n]


def _put(context: Any, address: Any, value: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[1], builder.inttoptr(args[0], ir.IntType(64).as_pointer()), align=1)
        return context.get_dummy_value()

    return types.none(types.uint64, types.uint64), codegen


_store64: Any = intrinsic(_put)
"""Put a value at an address."""


@inner(forceinline=True)
def _mark(at: U, end: U, letters: U, wide: U) -> U:
    """Masks of a text, 64 bytes each, and an empty one after the last. Returns their number without that."""
    b = U(0)
    while at < end:
        place, shift, keep = block(at, end)
        found = in_span(place, U(0x20), U(0x61), U(26)) | in_span(place, U(0), U(0x30), U(10))
        _store64(letters + U(8) * b, (found >> shift) & keep)
        _store64(wide + U(8) * b, (in_span(place, U(0), U(0x80), U(0x80)) >> shift) & keep)
        at += U(64)
        b += U(1)
    _store64(letters + U(8) * b, U(0))
    return b


@inner(forceinline=True)
def _end_of_run(letters: U, i: U) -> U:
    """Where the letters and digits that begin at byte i end."""
    b = i >> U(6)
    others = ~load64(letters + U(8) * b) >> (i & U(63))
    if others != U(0):
        return i + lowest_bit(others)
    b += U(1)
    while ~load64(letters + U(8) * b) == U(0):
        b += U(1)
    return b * U(64) + lowest_bit(~load64(letters + U(8) * b))


@inner(forceinline=True)
def _hash_lower(at: U, size: U, data_end: U) -> U:
    """Hash of the lower case of ASCII letters and digits."""
    h = SEED ^ size
    if size <= U(16) and at + U(16) <= data_end:  # without a branch: half of all words would be foreseen wrongly
        first = (load64(at) | _SMALL) & (_ALL >> (U(64) - U(8) * min(size, U(8))))
        second = (load64(at + U(8)) | _SMALL) & (_ALL >> ((U(128) - U(8) * size) & U(63)))
        one = absorb(h, first)
        two = absorb(one, second)
        return mix64(one ^ ((one ^ two) & (U(0) - U(size > U(8)))))
    while size > U(0):
        h = absorb(h, lower_ascii(load_chunk(at, size)))
        at += U(8)
        size -= min(size, U(8))
    return mix64(h)


@kernel
def _scan(
    data: U,
    data_bytes: U,
    bounds: NDArray[np.int64],
    table: U,
    classes: U,
    letters: U,
    wide: U,
    room: U,
    offsets: NDArray[np.int64],
    folded: NDArray[np.uint64],
) -> U:
    n = U(0)
    for d in range(len(bounds) - 1):
        offsets[d] = n
        text, size = data + U(bounds[d]), U(bounds[d + 1]) - U(bounds[d])
        blocks = _mark(text, text + size, letters, wide)
        done = U(0)  # bytes before belong to tokens already
        b, letter_before, wide_before = U(0), U(0), U(0)
        while b < blocks:
            here, beyond = load64(letters + U(8) * b), load64(wide + U(8) * b)
            begins = (here & ~(here << U(1) | letter_before)) | (beyond & ~(beyond << U(1) | wide_before))
            letter_before, wide_before = here >> U(63), beyond >> U(63)
            first = b * U(64)
            b += U(1)
            while begins != U(0):
                i = first + lowest_bit(begins)
                begins &= begins - U(1)
                if i < done:
                    continue
                if n >= room:
                    return room + U(1)
                if load8(text + i) < U(0x80):
                    end = _end_of_run(letters, i)
                    after = load8(classes + load8(text + end)) if end < size else BLANK
                    if after == JOINTS and end + U(1) < size:  # one joint may join what stands around it
                        after = load8(classes + load8(text + end + U(1)))
                    if after != LETTERS and after != WIDE:
                        folded[n] = _hash_lower(text + i, end - i, data + data_bytes)
                        n += U(1)
                        continue
                elif i > done and load8(classes + load8(text + i - U(1))) in (SIGNS, JOINTS):
                    i -= U(1)  # a mark belongs to the sign it follows
                code, entry, width = decode_fast(text + i, text + size, table)
                while True:
                    at, _, _, hashed, flags, code, entry, width = token(
                        text + i, text + size, table, code, entry, width
                    )
                    i = at - text
                    if n >= room:
                        return room + U(1)
                    folded[n] = hashed
                    n += U(flags & _WORD != U(0))
                    if i >= size or load8(text + i) < U(0x80):
                        break
                done = i
    offsets[len(bounds) - 1] = n
    return n
