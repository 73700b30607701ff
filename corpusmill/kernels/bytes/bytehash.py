"""Reading and hashing bytes by address in compiled kernels. Frozen: stored digests of n-grams and signatures rest on
the hash.

Helpers of a hot loop take addresses and numbers, no arrays: Numba counts references to an array at each call of a
helper, which is an atomic operation, and tests signed indices for negative values; together they cost three quarters
of the speed.

Numba inlines these functions into the kernels that call them and does not see when they change: after a change of this
file, delete the `__pycache__` folders and raise the VERSION of every stage that counts words.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpusmill.compiled import inner, intrinsic, ir, types
from corpusmill.kernels.bytes.hashing import mix64

U = np.uint64
"""Addresses, lengths and hashes in kernels."""

SEED = U(0x243F6A8885A308D3)
_MULTIPLIER = U(0x9E3779B97F4A7C15)
_ALL = U(0xFFFFFFFFFFFFFFFF)
_FROM_A = U(0x3F3F3F3F3F3F3F3F)  # 0x80 - "A" in each byte: the sum has the high bit from "A" on
_ABOVE_Z = U(0x2525252525252525)  # 0x7F - "Z": the sum has it above "Z"
_HIGH_BITS = U(0x8080808080808080)


def address_of(array: NDArray) -> U:
    """Address of an array's first element; keep the array alive while a kernel reads it."""
    return U(array.ctypes.data)


def _load(bits: int) -> Any:
    def load(context: Any, address: Any) -> Any:  # little-endian, any alignment
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            place = builder.inttoptr(args[0], ir.IntType(bits).as_pointer())
            return (
                builder.zext(builder.load(place, align=1), ir.IntType(64))
                if bits < 64
                else builder.load(place, align=1)
            )

        return types.uint64(types.uint64), codegen

    return intrinsic(load)


load8, load32, load64 = _load(8), _load(32), _load(64)
"""The unsigned little-endian integer at an address."""


@inner(forceinline=True)
def absorb(h: U, chunk: U) -> U:
    """State after one more chunk of 8 bytes."""
    h = (h ^ chunk) * _MULTIPLIER
    return h ^ (h >> U(32))


@inner(forceinline=True)
def load_chunk(address: U, size: U) -> U:
    """The next min(8, size) bytes, little-endian, filled up with zeros; size > 0. Never reads over a page end into
    the unknown."""
    if size >= U(8):
        return load64(address)
    if (address & U(0xFFF)) <= U(0xFF8):  # within one page, so the bytes beyond exist, whatever they are
        return load64(address) & (_ALL >> (U(64) - U(8) * size))
    chunk = U(0)
    while size > U(0):
        size -= U(1)
        chunk = chunk << U(8) | load8(address + size)
    return chunk


@inner(forceinline=True)
def hash_bytes(address: U, size: U) -> U:
    """Hash of `size` bytes: their number, then chunks of 8 bytes, then mix64."""
    h = SEED ^ size
    while size > U(8):
        h = absorb(h, load64(address))
        address += U(8)
        size -= U(8)
    if size > U(0):
        h = absorb(h, load_chunk(address, size))
    return mix64(h)


@inner(forceinline=True)
def lower_ascii(chunk: U) -> U:
    """The chunk with its ASCII capitals made small; all bytes below 0x80."""
    return chunk | (((chunk + _FROM_A) & ~(chunk + _ABOVE_Z) & _HIGH_BITS) >> U(2))


@inner(forceinline=True)
def has_ascii_letter(chunk: U) -> bool:
    """Whether a chunk of ASCII letters, digits and zeros has a letter."""
    return ((chunk + _FROM_A) & _HIGH_BITS) != U(0)
