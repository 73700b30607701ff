"""Looking through bytes eight at a time, by address, in compiled kernels: no byte at or beyond `end` is read.

Frozen like `bytehash`, and for the same reason: Numba's cache does not see when a function of another file changes.
"""

from __future__ import annotations

from corpusmill.compiled import inner
from corpusmill.kernels.bytes.blanks import strip_left, strip_right
from corpusmill.kernels.bytes.bytehash import U, load8, load64

ONES = U(0x0101010101010101)
"""Times a byte: eight copies of it."""
_LOW, _HIGH = U(0x7F7F7F7F7F7F7F7F), U(0x8080808080808080)


@inner(forceinline=True)
def equal_bytes(chunk: U, copies: U) -> U:
    """The high bit of each byte of a chunk that is the byte of `copies` (byte * ONES)."""
    other = chunk ^ copies
    return ~(((other & _LOW) + _LOW) | other | _LOW)


@inner(forceinline=True)
def lowest_byte(bits: U) -> U:
    """Number (0 to 7) of the first byte of a chunk whose high bit is set; `bits` has high bits alone, not none."""
    below = (bits & (~bits + U(1))) - U(1)  # a one for each bit below the lowest
    return (((below >> U(7)) & ONES) * ONES) >> U(56)


@inner
def find_byte(at: U, end: U, byte: U) -> U:
    """Address of the next such byte; `end` where there is none."""
    copies = byte * ONES
    while at + U(8) <= end:
        bits = equal_bytes(load64(at), copies)
        if bits != U(0):
            return at + lowest_byte(bits)
        at += U(8)
    while at < end and load8(at) != byte:
        at += U(1)
    return at


@inner
def count_byte(at: U, end: U, byte: U) -> U:
    """How many such bytes."""
    copies, count = byte * ONES, U(0)
    while at + U(8) <= end:
        count += ((equal_bytes(load64(at), copies) >> U(7)) * ONES) >> U(56)
        at += U(8)
    while at < end:
        count += U(load8(at) == byte)
        at += U(1)
    return count


@inner
def count_characters(at: U, end: U) -> U:
    """Characters of a piece of UTF-8: bytes that continue none."""
    count = end - at
    while at + U(8) <= end:
        chunk = load64(at)
        count -= (((chunk >> U(7)) & ~(chunk >> U(6)) & ONES) * ONES) >> U(56)
        at += U(8)
    while at < end:
        count -= U(load8(at) & U(0xC0) == U(0x80))
        at += U(1)
    return count


@inner(forceinline=True)
def trim_left(at: U, end: U) -> U:
    """`strip_left`, without a call where the first byte is visible ASCII."""
    if at < end and U(0x20) < load8(at) < U(0x80):
        return at
    return strip_left(at, end)


@inner(forceinline=True)
def trim_right(at: U, end: U) -> U:
    """`strip_right`, without a call where the last byte is visible ASCII."""
    if at < end and U(0x20) < load8(end - U(1)) < U(0x80):
        return end
    return strip_right(at, end)
