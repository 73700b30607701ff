# ruff: noqa: SIM109 (compiled code: comparing with a tuple is slower)
"""What the attributes of a tag say: roles by the words of class, id, role and itemprop, what is hidden, what is TeX."""

from __future__ import annotations

import numpy as np

from corpusmill.compiled import inner
from corpusmill.extractor.scan import vocabulary as v
from corpusmill.extractor.scan.bytes import OFFSET, PRIME, find, find_text, hash_name, same_letters
from corpusmill.extractor.scan.state import State, get
from corpusmill.kernels.bytes.bytehash import U, load8, load64

_CLASS, _ID, _ROLE, _ITEMPROP = (U(v.word_hash(w)) for w in ("class", "id", "role", "itemprop"))
_STYLE, _HIDDEN_ATTRIBUTE, _ARIA, _TYPE = (U(v.word_hash(w)) for w in ("style", "hidden", "aria-hidden", "type"))
_LENGTHS = U(sum(1 << length for length in (2, 4, 5, 6, 8, 11)))  # of those names
_FIRST_LETTERS = U(sum(1 << (ord(letter) & 31) for letter in "acihrst"))
_HTML, _KATEX = U(v.word_hash("html")), U(v.word_hash("katex"))
_HIDDEN = U(v.HIDDEN)

NEEDLES = np.frombuffer(b"display: none\0\0\0math/tex\0\0\0\0\0\0\0\0application/x-tex", np.uint8)
"""What the scanner looks for, in either case."""
_DISPLAY, _SPACED_NONE, _NONE, _MATH_TEX, _X_TEX = U(0), U(8), U(9), U(16), U(32)

HALF, TEX = U(1), U(2)
"""Flags: KaTeX's visible half; a script whose type is TeX."""


@inner(forceinline=True)
def looked_up(keys: U, values: U, mask: U, key: U) -> U:
    """Value of a key in an open-addressed table; 0 where it is not in."""
    slot = key & mask
    value = U(0)
    while True:
        held = load64(keys + U(8) * slot)
        if held == key:
            value = load64(values + U(8) * slot)
            break
        if held == U(0):
            break
        slot = (slot + U(1)) & mask
    return value


@inner
def _words(page, at, end):  # type: ignore[no-untyped-def]
    """Roles that the words of a value tell, a hash of its words without digits, whether it is KaTeX's visible half."""
    keys, values = get(page, State.WORD_KEYS), get(page, State.WORD_VALUES)
    mask = get(page, State.WORD_MASK)
    roles, signature, flags = U(0), U(0x9E3779B97F4A7C15), U(0)
    after_katex = False
    while at < end:
        h, start = OFFSET, at
        before_small = False
        while at < end:
            c = load8(at)
            if U(65) <= c <= U(90):
                if before_small:
                    break
                c += U(32)
            elif U(97) <= c <= U(122):
                before_small = True
            else:
                break
            h = (h ^ c) * PRIME
            at += U(1)
        if at == start:
            at += U(1)
            continue
        roles |= looked_up(keys, values, mask, h)
        signature = (signature ^ h) * PRIME
        if after_katex and h == _HTML:
            flags = HALF
        after_katex = h == _KATEX
    return roles, signature, flags


@inner
def _is_hidden(page, at, end):  # type: ignore[no-untyped-def]
    """Whether a style says `display:none`."""
    needles = get(page, State.NEEDLES)
    while True:
        at = find_text(at, end, needles + _DISPLAY, U(8))
        if at >= end:
            return False
        at += U(8)
        if at + U(4) <= end and same_letters(at, needles + _NONE, U(4)):
            return True
        if at + U(5) <= end and same_letters(at, needles + _SPACED_NONE, U(5)):
            return True


@inner
def source_of(page, at, end):  # type: ignore[no-untyped-def]
    """Where the TeX annotation of a formula begins; `end` where it has none."""
    return find_text(at, end, get(page, State.NEEDLES) + _X_TEX, U(17))


@inner
def attributes(page, at, end):  # type: ignore[no-untyped-def]
    """Roles, signature and flags of the attributes between a tag's name and its end."""
    roles, signature, flags = U(0), U(0), U(0)
    while at < end:
        c = load8(at)
        if c <= U(32) or c == U(47):
            at += U(1)
            continue
        start = at
        while at < end:
            c = load8(at)
            if c <= U(32) or c == U(61) or c == U(47):
                break
            at += U(1)
        if at == start:
            at += U(1)
            continue
        length = at - start
        while at < end and load8(at) <= U(32):
            at += U(1)
        first = last = at
        if at < end and load8(at) == U(61):
            at += U(1)
            while at < end and load8(at) <= U(32):
                at += U(1)
            quote = load8(at) if at < end else U(0)
            if quote == U(34) or quote == U(39):
                first = at + U(1)
                last = find(first, end, quote)
                at = last + U(1)
            else:
                first = at
                while at < end and load8(at) > U(32):
                    at += U(1)
                last = at
        if length > U(11) or (_LENGTHS >> length & _FIRST_LETTERS >> (load8(start) & U(31)) & U(1)) == U(0):
            continue
        name = hash_name(start, start + length)
        if name == _CLASS or name == _ID or name == _ROLE or name == _ITEMPROP:
            found, sign, half = _words(page, first, last)
            roles |= found
            flags |= half
            if name == _CLASS:
                signature = sign
        elif name == _HIDDEN_ATTRIBUTE:
            roles |= _HIDDEN
        elif name == _ARIA:
            if last > first and (load8(first) | U(32)) == U(116):
                roles |= _HIDDEN
        elif name == _STYLE:
            if _is_hidden(page, first, last):
                roles |= _HIDDEN
        elif name == _TYPE and find_text(first, last, get(page, State.NEEDLES) + _MATH_TEX, U(8)) < last:
            flags |= TEX
    return roles, signature, flags
