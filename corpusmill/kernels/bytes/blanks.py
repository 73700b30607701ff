"""White space and line breaks by address in compiled kernels, as `str.isspace`, `str.strip` and `str.splitlines` have
them.

Frozen like `bytehash`, and for the same reason: Numba's cache does not see when a function of another file changes.
"""

from __future__ import annotations

from typing import Any

from corpusmill.compiled import inner
from corpusmill.kernels.bytes.bytehash import U, load8


@inner
def blank(at: U, room: U) -> U:
    """Bytes of the white space character at an address; 0 where there is none."""
    if room == U(0):
        return U(0)
    a = load8(at)
    if a < U(0x80):
        return U(a == U(0x20) or U(0x09) <= a <= U(0x0D) or U(0x1C) <= a <= U(0x1F))
    if room < U(2):
        return U(0)
    b = load8(at + U(1))
    if a == U(0xC2):
        return U(2) if b in (U(0x85), U(0xA0)) else U(0)
    if room < U(3):
        return U(0)
    c = load8(at + U(2))
    space = a == U(0xE2) and b == U(0x80) and (c <= U(0x8A) or c in (U(0xA8), U(0xA9), U(0xAF)))
    space |= a == U(0xE2) and b == U(0x81) and c == U(0x9F)  # U+205F
    space |= a == U(0xE1) and b == U(0x9A) and c == U(0x80)  # U+1680
    space |= a == U(0xE3) and b == U(0x80) and c == U(0x80)  # U+3000
    return U(3) if space else U(0)


@inner(forceinline=True)
def may_be_blank(byte: U) -> Any:
    """Whether a white space character may begin with a byte: asked before `blank`, it spares a call at most bytes."""
    return byte <= U(0x20) or byte == U(0xC2) or U(0xE1) <= byte <= U(0xE3)


@inner
def next_blank(at: U, end: U) -> U:
    """Address of the next white space character; `end` where there is none."""
    while at < end:
        if may_be_blank(load8(at)) and blank(at, end - at) > U(0):
            return at
        at += U(1)
    return end


@inner
def strip_left(at: U, end: U) -> U:
    """Address of the first character that is no white space; `end` where there is none."""
    while True:
        width = blank(at, end - at)
        if width == U(0):
            return at
        at += width


@inner
def strip_right(at: U, end: U) -> U:
    """Address after the last character that is no white space; `at` where there is none."""
    while end > at:
        k = U(1)
        while k <= U(3) and not (end - at >= k and blank(end - k, k) == k):
            k += U(1)
        if k > U(3):
            return end
        end -= k
    return end


@inner
def characters(at: U, end: U) -> U:
    """Characters of a piece of UTF-8."""
    count = U(0)
    while at < end:
        count += U(load8(at) & U(0xC0) != U(0x80))
        at += U(1)
    return count


@inner
def line_break(at: U, end: U) -> U:
    """Bytes of the line break at an address, CR LF as one; 0 where there is none."""
    a = load8(at)
    if a == U(0x0A) or U(0x0B) <= a <= U(0x0C) or U(0x1C) <= a <= U(0x1E):
        return U(1)
    if a == U(0x0D):
        return U(2) if at + U(1) < end and load8(at + U(1)) == U(0x0A) else U(1)
    if a == U(0xC2):
        return U(2) if at + U(1) < end and load8(at + U(1)) == U(0x85) else U(0)
    if a == U(0xE2) and at + U(2) < end and load8(at + U(1)) == U(0x80):
        return U(3) if U(0xA8) <= load8(at + U(2)) <= U(0xA9) else U(0)
    return U(0)


@inner
def starts_with(at: U, end: U, other: U, size: U) -> Any:
    """Whether a piece of text begins with the bytes at another address."""
    if end - at < size:
        return False
    i = U(0)
    while i < size:
        if load8(at + i) != load8(other + i):
            return False
        i += U(1)
    return True


@inner
def lower(byte: U) -> U:
    """A byte, or the small letter of A to Z."""
    return byte | (U(U(0x41) <= byte <= U(0x5A)) << U(5))


@inner
def starts_with_lower(at: U, end: U, other: U, size: U) -> Any:
    """Whether a piece of text, A to Z in either case, begins with the bytes at another address, A to Z being small."""
    if end - at < size:
        return False
    i = U(0)
    while i < size:
        if lower(load8(at + i)) != load8(other + i):
            return False
        i += U(1)
    return True
