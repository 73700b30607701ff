"""What a character of a page is: its width in bytes, its class, and whether it is a word of its own."""

from __future__ import annotations

import numpy as np

from corpusmill.compiled import inner
from corpusmill.kernels.bytes.bytehash import U, load8

BLANK, LETTER, CAPITAL, DIGIT, STOP, COMMA, SEPARATOR, SYMBOL, WIDE, OPEN, ENTITY = range(11)
"""Classes of characters; the last three are of bytes that need another look."""
CLASSES = np.full(256, SYMBOL, np.uint8)
CLASSES[[9, 10, 12, 13, 32]] = BLANK
CLASSES[ord("a") : ord("z") + 1] = LETTER
CLASSES[ord("A") : ord("Z") + 1] = CAPITAL
CLASSES[ord("0") : ord("9") + 1] = DIGIT
CLASSES[[ord(c) for c in ".!?"]] = STOP
CLASSES[ord(",")] = COMMA
CLASSES[ord("|")] = SEPARATOR
CLASSES[0x80:] = WIDE
CLASSES[ord("<")], CLASSES[ord("&")] = OPEN, ENTITY

IDEOGRAPH, SPACELESS = U(1), U(2)
"""Sorts of letters: a word of its own; of a script without blanks."""


@inner
def entity(at, end):  # type: ignore[no-untyped-def]
    """Length of an entity at an ampersand (0: none) and its class: BLANK, LETTER, SYMBOL or WIDE for an ideograph."""
    i = at + U(1)
    if i >= end:
        return U(0), U(SYMBOL)
    if load8(i) == U(35):
        return _number(at, i + U(1), end)
    start = i
    while i < end and i < start + U(10):
        c = load8(i)
        if not (U(97) <= (c | U(32)) <= U(122) or U(48) <= c <= U(57)):
            break
        i += U(1)
    if i < start + U(2) or i >= end or load8(i) != U(59):
        return U(0), U(SYMBOL)
    last = load8(i - U(1))
    if i - start == U(4) and load8(start) == U(110) and load8(start + U(1)) == U(98):
        return i + U(1) - at, U(BLANK)  # nbsp
    # …acute, …grave, …circ, …tilde, …cedil, …uml, …ring, …slash, …lig
    accented = last == U(101) or last == U(99) or last == U(108) or last == U(103) or last == U(104)
    return i + U(1) - at, U(LETTER) if accented and i - start >= U(4) else U(SYMBOL)


@inner
def _number(at, i, end):  # type: ignore[no-untyped-def]
    """The same of a numeric entity at `at`, whose number begins at `i`."""
    code, base = U(0), U(10)
    if i < end and (load8(i) | U(32)) == U(120):
        base = U(16)
        i += U(1)
    start = i
    while i < end and i < start + U(8):
        c = load8(i)
        if U(48) <= c <= U(57):
            code = code * base + c - U(48)
        elif base == U(16) and U(97) <= (c | U(32)) <= U(102):
            code = code * base + (c | U(32)) - U(87)
        else:
            break
        i += U(1)
    if i == start:
        return U(0), U(SYMBOL)
    if i < end and load8(i) == U(59):
        i += U(1)
    cls = U(LETTER)
    if code == U(160) or code == U(32) or code <= U(13):
        cls = U(BLANK)
    elif code < U(128):
        cls = U(LETTER) if U(97) <= (code | U(32)) <= U(122) else U(SYMBOL)
    elif code < U(192) or U(0x2000) <= code < U(0x2C00):
        cls = U(SYMBOL)
    elif U(0x3040) <= code < U(0xD800):
        cls = U(WIDE)
    return i - at, cls


@inner
def beyond_ascii(at, c, end):  # type: ignore[no-untyped-def]
    """Width, class and IDEOGRAPH or SPACELESS of the character at a byte >= 0x80."""
    width = U(4) if c >= U(0xF0) else U(3) if c >= U(0xE0) else U(2) if c >= U(0xC0) else U(1)
    width = min(width, end - at)
    cls, sort = U(LETTER), U(0)
    if width == U(2):
        low = load8(at + U(1))
        if c == U(0xC2):
            cls = U(BLANK) if low == U(0xA0) else U(SEPARATOR) if low == U(0xB7) or low == U(0xBB) else U(SYMBOL)
        elif c == U(0xD8):
            cls = U(COMMA) if low == U(0x8C) else U(STOP) if low == U(0x9F) else cls
        elif c == U(0xDB) and low == U(0x94):
            cls = U(STOP)
    elif width == U(3):
        code = (c & U(15)) << U(12) | (load8(at + U(1)) & U(63)) << U(6) | load8(at + U(2)) & U(63)
        if U(0x2000) <= code < U(0x2C00):
            cls = U(SYMBOL)
            if code == U(0x2022) or code == U(0x203A) or code == U(0x2502):
                cls = U(SEPARATOR)
            elif code <= U(0x200B) or code == U(0x2028) or code == U(0x2029):
                cls = U(BLANK)
        elif U(0x3000) <= code < U(0x3040):
            cls = U(STOP) if code == U(0x3002) else U(COMMA) if code == U(0x3001) else U(SYMBOL)
            cls = U(BLANK) if code == U(0x3000) else cls
        elif U(0x3040) <= code < U(0xD800) or U(0xF900) <= code < U(0xFB00):
            sort = IDEOGRAPH
        elif U(0xFF00) <= code < U(0xFF66):
            cls = U(SYMBOL)
            if code == U(0xFF01) or code == U(0xFF1F) or code == U(0xFF0E):
                cls = U(STOP)
            elif code == U(0xFF0C):
                cls = U(COMMA)
        elif code == U(0x0964):
            cls = U(STOP)
        elif U(0x0E00) <= code < U(0x0F00) or U(0x1000) <= code < U(0x10A0) or U(0x1780) <= code < U(0x1800):
            sort = SPACELESS
    elif width == U(4):
        if c == U(0xF0) and load8(at + U(1)) >= U(0xA0):
            sort = IDEOGRAPH
        else:
            cls = U(SYMBOL)
    return width, cls, sort


@inner(forceinline=True)
def two_byte_letter(c, at, limit):  # type: ignore[no-untyped-def]
    """Whether a letter of two bytes stands here, as in Cyrillic or Greek; no for some, which `beyond_ascii` knows."""
    plain = U(0xC3) <= c < U(0xE0) and c != U(0xD8) and c != U(0xDB)
    return plain and at + U(2) <= limit and load8(at + U(1)) >= U(0x80)
