"""Reading and writing UTF-8 by address in compiled kernels, with the entry of each character in the Unicode table.

Frozen like `bytehash`, and for the same reason: Numba inlines these functions and does not see when they change.
"""

from __future__ import annotations

from corpusmill.compiled import inner
from corpusmill.kernels.bytes.bytehash import U, load8, load32
from corpusmill.kernels.bytes.unicode_table import LIMIT, Kind, pack

_IDEOGRAPH = U(pack(0, Kind.SINGLE, alpha=True))
_TAG, _OTHER = U(pack(0, Kind.FORMAT)), U(pack(0, Kind.SYMBOL))
_LIMIT, _STRAY = U(LIMIT), U(0xFFFD)


@inner(forceinline=True)
def decode(at: U, end: U, table: U) -> tuple[U, U, U]:
    """Code point, its packed entry and its length in bytes at an address; a cut sequence is U+FFFD of one byte."""
    code, width = load8(at), U(1)
    if code >= U(0x80):
        width = U(2) if code < U(0xE0) else U(3) if code < U(0xF0) else U(4)
        if at + width > end or code < U(0xC0):
            code, width = _STRAY, U(1)
        else:
            code &= U(0x7F) >> width
            k = U(1)
            while k < width:
                code = code << U(6) | (load8(at + k) & U(0x3F))
                k += U(1)
    if code < _LIMIT:
        entry = load32(table + U(4) * code)
    elif code < U(0x40000):
        entry = _IDEOGRAPH | code
    elif U(0xE0000) <= code < U(0xE1000):
        entry = _TAG
    else:
        entry = _OTHER | code
    return code, entry, width


@inner(forceinline=True)
def utf8_size(code: U) -> U:
    """Bytes of a character in UTF-8; 0 for U+0000, which stands for nothing in a fold."""
    return U(code > U(0)) + U(code >= U(0x80)) + U(code >= U(0x800)) + U(code >= U(0x10000))


@inner(forceinline=True)
def utf8_byte(code: U, size: U, k: U) -> U:
    """Byte k of the UTF-8 form, `size` bytes long, of a character."""
    if size == U(1):
        return code
    bits = code >> (U(6) * (size - U(1) - k))
    return U(0x80) | (bits & U(0x3F)) if k > U(0) else ((U(0xF00) >> size) & U(0xFF)) | bits
