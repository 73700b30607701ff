# ruff: noqa: SIM109 (compiled code: comparing with a tuple is slower)
"""One pass over the UTF-8 bytes of a page: lines of text with counts, and the containers they stand in, without a DOM.

A container is an element that groups (div, section, li, td, …); an end tag closes to its match or is ignored. Block
tags and `<br>` end a line; a cell of a table is a line of its own, `pre` is one line with its blanks and newlines.
Blank runs become one space, entities stay as they are written. What no reader sees (scripts, styles, drawings, choices)
is skipped; formulas come as their TeX. Time is linear in the page.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, auto

import numba
import numpy as np
from numpy.typing import NDArray

from corpusmill.extractor import vocabulary as v
from corpusmill.kernels.bytehash import U, address_of, load8


class Line(IntEnum):
    """Columns of the lines."""

    START = 0  # first byte in the text
    STOP = auto()
    CHARS = auto()
    WORDS = auto()  # an ideograph, kana or Hangul syllable is one; four letters of Thai, Lao, Khmer or Burmese are one
    LINK_CHARS = auto()
    LINK_WORDS = auto()
    LINKS = auto()
    ENDS = auto()  # sentence ends
    COMMAS = auto()
    DIGITS = auto()
    CAPITALS = auto()  # words that begin with an ASCII capital
    SEPARATORS = auto()  # | • · » ›
    FIRST = auto()  # class of the first character: see _classes
    LAST = auto()
    KIND = auto()  # vocabulary.KINDS
    LIST_DEPTH = auto()
    DEPTH = auto()
    CONTAINER = auto()
    BOLD_CHARS = auto()
    TITLE_WORDS = auto()  # words that the page's title has too
    ROW = auto()  # number of the table row, 0 outside of tables
    CELL = auto()  # number of the cell in the row
    SOFT = auto()  # 1: begins after <br>
    PLACE = auto()  # byte in the page where it begins
    ROLES = auto()  # of the leaf and the inline elements in it
    HASH = auto()  # of its words
    SYMBOLS = auto()
    TEXT_CHARS = auto()  # characters that are letters or digits


class Box(IntEnum):
    """Columns of the containers; number 0 is the page."""

    PARENT = 0
    TAG = auto()
    OWN_ROLES = auto()
    ROLES = auto()  # with those of all containers around it
    SIGNATURE = auto()  # of tag and class words
    FIRST_LINE = auto()
    LAST_LINE = auto()  # the line after its last
    DEPTH = auto()


N_LINE, N_BOX = len(Line), len(Box)
MAX_DEPTH = 1024
"""Containers nested deeper are not told apart."""

_STACK = 6  # tag, container, row, cell, list depth, kind
_TITLE_SLOTS = 256


@dataclass(frozen=True)
class Scan:
    """What a page says: L lines and C containers."""

    text: NDArray[np.uint8]
    """UTF-8 of all lines, one after the other."""
    lines: NDArray[np.int64]
    """int64[L, N_LINE]."""
    boxes: NDArray[np.int64]
    """int64[C, N_BOX]."""
    title_words: int
    size: int
    """Bytes of the page."""

    def __len__(self) -> int:
        """Number of lines."""
        return len(self.lines)


def scan(html: bytes) -> Scan:
    """Lines and containers of a page."""
    data = np.frombuffer(html, np.uint8) if html else np.zeros(1, np.uint8)
    size = len(html)
    tags = html.count(b"<") + html.count(b"\n") // 1024 + 2
    text = np.empty(size + 2 * tags + 16, np.uint8)
    lines = np.empty((tags + 2, N_LINE), np.int64)
    boxes = np.empty((tags + 2, N_BOX), np.int64)
    stack = np.zeros((MAX_DEPTH + 2, _STACK), np.int64)
    title = np.zeros(_TITLE_SLOTS, np.uint64)
    tag_keys, tag_values = v.tag_table()
    word_keys, word_values = v.word_table()
    n_lines, n_boxes, n_title = _scan(
        address_of(data), U(size), text, lines, boxes, stack, title, address_of(_classes()),
        tag_keys, tag_values, word_keys, word_values, *v.tag_facts(),
    )  # fmt: skip
    return Scan(text, lines[:n_lines], boxes[:n_boxes], int(n_title), size)


BLANK, LETTER, CAPITAL, DIGIT, STOP, COMMA, SEPARATOR, SYMBOL, WIDE, OPEN, ENTITY = range(11)
_CLASSES = np.full(256, SYMBOL, np.uint8)
_CLASSES[[9, 10, 12, 13, 32]] = BLANK
_CLASSES[ord("a") : ord("z") + 1] = LETTER
_CLASSES[ord("A") : ord("Z") + 1] = CAPITAL
_CLASSES[ord("0") : ord("9") + 1] = DIGIT
_CLASSES[[ord(c) for c in ".!?"]] = STOP
_CLASSES[ord(",")] = COMMA
_CLASSES[ord("|")] = SEPARATOR
_CLASSES[0x80:] = WIDE
_CLASSES[ord("<")], _CLASSES[ord("&")] = OPEN, ENTITY


def _classes() -> NDArray[np.uint8]:
    return _CLASSES


@numba.njit(nogil=True, inline="always")
def _find(keys, values, key):  # type: ignore[no-untyped-def]
    """Value of a key in an open-addressed table; 0 where it is not in."""
    mask = U(len(keys) - 1)
    slot = key & mask
    while keys[slot] != U(0):
        if keys[slot] == key:
            return values[slot]
        slot = (slot + U(1)) & mask
    return U(0)


@numba.njit(nogil=True, cache=True)
def _hash_name(data: U, at: U, end: U) -> U:
    """FNV-1a of a lower-cased ASCII name."""
    h = U(0xCBF29CE484222325)
    while at < end:
        c = load8(data + at)
        if U(65) <= c <= U(90):
            c += U(32)
        h = (h ^ c) * U(0x100000001B3)
        at += U(1)
    return h


@numba.njit(nogil=True, cache=True)
def _name_end(data: U, at: U, size: U) -> U:
    """End of a tag's name."""
    while at < size:
        c = load8(data + at)
        if c <= U(32) or c == U(62) or c == U(47):
            break
        at += U(1)
    return at


@numba.njit(nogil=True, cache=True)
def _closing(data: U, size: U, at: U, name: U, length: U) -> U:
    """Where the end tag of a name begins, from `at` on; `size` where there is none."""
    while at + length + U(2) <= size:
        if load8(data + at) == U(60) and load8(data + at + U(1)) == U(47):
            k = U(0)
            while k < length and (load8(data + at + U(2) + k) | U(32)) == (load8(data + name + k) | U(32)):
                k += U(1)
            if k == length:
                return at
        at += U(1)
    return size


@numba.njit(nogil=True, cache=True)
def _find_bytes(data: U, at: U, end: U, needle: U, length: U) -> U:
    """Where a lower-case ASCII string begins in a range, in either case; `end` where it does not."""
    first = load8(needle)
    while at + length <= end:
        if (load8(data + at) | U(32)) == first:
            k = U(1)
            while k < length and (load8(data + at + k) | U(32)) == (load8(needle + k) | U(32)):
                k += U(1)
            if k == length:
                return at
        at += U(1)
    return end


@numba.njit(nogil=True, cache=True)
def _tag_end(data: U, at: U, size: U) -> U:
    """Place of the `>` that ends a tag; quoted values may hold one."""
    quote, after_equals = U(0), False
    while at < size:
        c = load8(data + at)
        if quote != U(0):
            if c == quote:
                quote, after_equals = U(0), False
        elif c == U(62):
            return at
        elif (c == U(34) or c == U(39)) and after_equals:
            quote = c
        elif c == U(61):
            after_equals = True
        elif c > U(32):
            after_equals = False
        at += U(1)
    return size


@numba.njit(nogil=True, cache=True)
def _value_words(data: U, at: U, end: U, keys, values):  # type: ignore[no-untyped-def]
    """Roles that the words of a value tell, a hash of its words without digits, whether it is KaTeX's visible half."""
    roles, signature = U(0), U(0x9E3779B97F4A7C15)
    katex = last_katex = False
    i = at
    while i < end:
        h, start = U(0xCBF29CE484222325), i
        before_small = False
        while i < end:
            c = load8(data + i)
            if U(65) <= c <= U(90):
                if before_small:
                    break
                c += U(32)
            elif U(97) <= c <= U(122):
                before_small = True
            else:
                break
            h = (h ^ c) * U(0x100000001B3)
            i += U(1)
        if i == start:
            i += U(1)
            continue
        roles |= _find(keys, values, h)
        signature = (signature ^ h) * U(0x100000001B3)
        if last_katex and h == _HTML:
            katex = True
        last_katex = h == _KATEX
    return roles, signature, katex


_HTML, _KATEX = U(v.word_hash("html")), U(v.word_hash("katex"))
_CLASS, _ID, _ROLE, _ITEMPROP = (U(v.word_hash(w)) for w in ("class", "id", "role", "itemprop"))
_STYLE, _HIDDEN_ATTR, _ARIA, _TYPE = (U(v.word_hash(w)) for w in ("style", "hidden", "aria-hidden", "type"))
_HIDDEN = U(v.HIDDEN)
_NONE = np.frombuffer(b"display:none", np.uint8)
_NONE_SPACED = np.frombuffer(b"display: none", np.uint8)
_TEX_TYPE = np.frombuffer(b"math/tex", np.uint8)
_ANNOTATION = np.frombuffer(b"application/x-tex", np.uint8)


@numba.njit(nogil=True, cache=True)
def _attributes(data: U, at: U, end: U, words, bits, needles):  # type: ignore[no-untyped-def]
    """Roles, signature, whether it is KaTeX's visible half, whether its type is TeX; of the attributes in a tag."""
    roles, signature = U(0), U(0)
    katex = tex = False
    i = at
    while i < end:
        c = load8(data + i)
        if c <= U(32) or c == U(47):
            i += U(1)
            continue
        start = i
        while i < end:
            c = load8(data + i)
            if c <= U(32) or c == U(61) or c == U(47):
                break
            i += U(1)
        if i == start:
            i += U(1)
            continue
        name_end = i
        while i < end and load8(data + i) <= U(32):
            i += U(1)
        first = last = i
        if i < end and load8(data + i) == U(61):
            i += U(1)
            while i < end and load8(data + i) <= U(32):
                i += U(1)
            if i < end and (load8(data + i) == U(34) or load8(data + i) == U(39)):
                quote = load8(data + i)
                i += U(1)
                first = i
                while i < end and load8(data + i) != quote:
                    i += U(1)
                last = i
                i += U(1)
            else:
                first = i
                while i < end and load8(data + i) > U(32):
                    i += U(1)
                last = i
        length = name_end - start
        if length < U(2) or length > U(11):
            continue
        name = _hash_name(data, start, name_end)
        if name == _CLASS or name == _ID or name == _ROLE or name == _ITEMPROP:
            found, sign, half = _value_words(data, first, last, words, bits)
            roles |= found
            katex |= half
            if name == _CLASS:
                signature = sign
        elif name == _HIDDEN_ATTR:
            roles |= _HIDDEN
        elif name == _ARIA:
            if last > first and (load8(data + first) | U(32)) == U(116):
                roles |= _HIDDEN
        elif name == _STYLE:
            if _find_bytes(data, first, last, needles, U(12)) < last:
                roles |= _HIDDEN
            if _find_bytes(data, first, last, needles + U(12), U(13)) < last:
                roles |= _HIDDEN
        elif name == _TYPE and _find_bytes(data, first, last, needles + U(25), U(8)) < last:
            tex = True
    return roles, signature, katex, tex


_NEEDLES = np.concatenate([_NONE, _NONE_SPACED, _TEX_TYPE, _ANNOTATION])


@numba.njit(nogil=True, cache=True)
def _entity(data: U, at: U, size: U) -> tuple[U, U]:
    """Length of an entity at an ampersand (0: none) and its class: BLANK, LETTER, SYMBOL or WIDE for an ideograph."""
    i = at + U(1)
    if i >= size:
        return U(0), U(SYMBOL)
    if load8(data + i) == U(35):
        i += U(1)
        code, base = U(0), U(10)
        if i < size and (load8(data + i) | U(32)) == U(120):
            base = U(16)
            i += U(1)
        start = i
        while i < size and i < start + U(8):
            c = load8(data + i)
            if U(48) <= c <= U(57):
                code = code * base + c - U(48)
            elif base == U(16) and U(97) <= (c | U(32)) <= U(102):
                code = code * base + (c | U(32)) - U(87)
            else:
                break
            i += U(1)
        if i == start:
            return U(0), U(SYMBOL)
        if i < size and load8(data + i) == U(59):
            i += U(1)
        if code == U(160) or code == U(32) or code <= U(13):
            return i - at, U(BLANK)
        if code < U(128):
            is_letter = U(97) <= (code | U(32)) <= U(122)
            return i - at, U(LETTER) if is_letter else U(SYMBOL)
        if code < U(192) or U(0x2000) <= code < U(0x2C00):
            return i - at, U(SYMBOL)
        return i - at, U(WIDE) if U(0x3040) <= code < U(0xD800) else U(LETTER)
    start = i
    while i < size and i < start + U(10):
        c = load8(data + i)
        if not (U(97) <= (c | U(32)) <= U(122) or U(48) <= c <= U(57)):
            break
        i += U(1)
    if i < start + U(2) or i >= size or load8(data + i) != U(59):
        return U(0), U(SYMBOL)
    last = load8(data + i - U(1))
    if i - start == U(4) and load8(data + start) == U(110) and load8(data + start + U(1)) == U(98):
        return i + U(1) - at, U(BLANK)  # nbsp
    # …acute, …grave, …circ, …tilde, …cedil, …uml, …ring, …slash, …lig
    long = i - start >= U(4) and (last in (U(101), U(99), U(108), U(103), U(104)))
    return i + U(1) - at, U(LETTER) if long else U(SYMBOL)


@numba.njit(nogil=True, cache=True)
def _scan(  # type: ignore[no-untyped-def]
    data,
    size,
    text,
    lines,
    boxes,
    stack,
    title,
    classes,
    tag_keys,
    tag_values,
    word_keys,
    word_values,
    actions,
    kinds,
    tag_roles,
):
    """Fill text, lines and boxes; returns the numbers of lines, boxes and words of the title."""
    one, two = U(1), U(2)
    needles = U(_NEEDLES.ctypes.data)
    open_counts = np.zeros(len(actions), np.int64)
    unclosed = np.zeros(len(actions), np.uint8)
    n, n_boxes, n_title = 0, 1, 0
    used = U(0)  # bytes of text written
    line_start = U(0)
    for k0 in range(8):
        boxes[0, k0] = 0
    level, overflow = 0, 0
    rows = 0
    kind, leaf_roles, inline_roles = U(0), U(0), U(0)
    link_level, bold_level = -1, -1
    soft = False
    in_title = False
    title_end = U(0)
    jump_at, jump_to = size + one, size
    chars = words = link_chars = link_words = links = ends = commas = digits = capitals = separators = 0
    bold_chars = title_hits = symbols = letters = 0
    first = last = U(0)
    place = U(0)
    line_hash = U(0)
    pending = False
    word = U(0)  # hash of the word being read, 0 between words
    run = 0  # letters of it in scripts without blanks
    new_link = False
    in_pre = False
    i = U(0)
    while i <= size:
        if i == jump_at:
            if jump_to > i:
                if chars > 0:
                    text[used] = 36  # $
                    used += one
                    chars += 1
                i = jump_to
            jump_at = size + one
            continue
        flush = i == size
        c, cls = U(0), U(BLANK)
        is_tag = False
        if not flush:
            c = load8(data + i)
            cls = U(load8(classes + c))
            if cls == U(OPEN):
                cls = U(SYMBOL)
                if i + one < size and jump_at > size:
                    after = load8(data + i + one)
                    is_tag = U(97) <= (after | U(32)) <= U(122) or after == U(47) or after == U(33) or after == U(63)
        if not is_tag and not flush:
            # -- a character of text -------------------------------------------------------------------------------
            width = one
            wide_word = False
            if cls == U(WIDE):
                cls = U(LETTER)
                if c >= U(0xF0):
                    width = U(4)
                elif c >= U(0xE0):
                    width = U(3)
                elif c >= U(0xC0):
                    width = two
                if i + width > size:
                    width = size - i
                if width == two:
                    if c == U(0xC2):
                        low = load8(data + i + one)
                        cls = U(BLANK) if low == U(0xA0) else U(SEPARATOR) if low in (U(0xB7), U(0xBB)) else U(SYMBOL)
                    elif c == U(0xD8):
                        low = load8(data + i + one)
                        cls = U(COMMA) if low == U(0x8C) else U(STOP) if low == U(0x9F) else cls
                    elif c == U(0xDB) and load8(data + i + one) == U(0x94):
                        cls = U(STOP)
                elif width == U(3):
                    code = (
                        (c & U(15)) << U(12) | (load8(data + i + one) & U(63)) << U(6) | load8(data + i + two) & U(63)
                    )
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
                        wide_word = True
                    elif U(0xFF00) <= code < U(0xFF66):
                        cls = U(SYMBOL)
                        if code == U(0xFF01) or code == U(0xFF1F) or code == U(0xFF0E):
                            cls = U(STOP)
                        elif code == U(0xFF0C):
                            cls = U(COMMA)
                    elif code == U(0x0964):
                        cls = U(STOP)
                    elif (
                        U(0x0E00) <= code < U(0x0F00) or U(0x1000) <= code < U(0x10A0) or U(0x1780) <= code < U(0x1800)
                    ):
                        run += 1
                        wide_word = run % 4 == 1
                elif width == U(4) and c == U(0xF0) and load8(data + i + one) >= U(0xA0):
                    wide_word = True
                elif width == U(4):
                    cls = U(SYMBOL)
            elif cls == U(ENTITY):
                width, cls = _entity(data, i, size)
                if width == U(0):
                    width = one
                elif cls == U(WIDE):
                    cls, wide_word = U(LETTER), True
            is_word = cls == U(LETTER) or cls == U(CAPITAL) or cls == U(DIGIT)
            if in_title:
                if is_word:
                    k = i
                    while k < i + width:
                        b = load8(data + k)
                        b = b + U(32) if U(65) <= b <= U(90) else b
                        word = ((word if word != U(0) else U(0xCBF29CE484222325)) ^ b) * U(0x100000001B3)
                        k += one
                if (not is_word or wide_word or i + width >= title_end) and word != U(0):
                    slot = word & U(_TITLE_SLOTS - 1)
                    while title[slot] != U(0) and title[slot] != word:
                        slot = (slot + one) & U(_TITLE_SLOTS - 1)
                    if n_title < _TITLE_SLOTS // 2 and title[slot] == U(0):
                        title[slot] = word
                        n_title += 1
                    word = U(0)
                i += width
                if i >= title_end:
                    in_title = False
                    word = U(0)
                continue
            if cls == U(BLANK):
                if in_pre and chars > 0 and c != U(13):
                    text[used] = np.uint8(c) if width == one else np.uint8(32)
                    used += one
                    chars += 1
                elif (in_pre and c == U(32)) or (in_pre and c == U(9)):
                    text[used] = np.uint8(c)  # indentation of the first line
                    used += one
                pending = True
            else:
                if chars == 0:
                    place, first = i, cls
                    if not in_pre:
                        used = line_start
                elif pending and not in_pre:
                    text[used] = 32
                    used += one
                    chars += 1
                    link_chars += link_level >= 0
                    bold_chars += bold_level >= 0
                pending = False
                k = U(0)
                while k < width:
                    text[used + k] = np.uint8(load8(data + i + k))
                    k += one
                used += width
                chars += 1
                last = cls
                link_chars += link_level >= 0
                bold_chars += bold_level >= 0
                if cls == U(COMMA):
                    commas += 1
                elif cls == U(SEPARATOR):
                    separators += 1
                elif cls == U(SYMBOL):
                    symbols += 1
                elif cls == U(STOP):
                    if c >= U(0x80) or i + one >= size:
                        ends += 1
                    else:
                        after = load8(data + i + one)
                        ends += after <= U(32) or after == U(60) or after == U(34) or after == U(38)
                if new_link:
                    links += 1
                    new_link = False
            if is_word:
                letters += 1
                digits += cls == U(DIGIT)
                if word == U(0) or wide_word:
                    words += 1
                    link_words += link_level >= 0
                    capitals += word == U(0) and cls == U(CAPITAL)
                k = i
                while k < i + width:
                    b = load8(data + k)
                    b = b + U(32) if U(65) <= b <= U(90) else b
                    word = ((word if word != U(0) else U(0xCBF29CE484222325)) ^ b) * U(0x100000001B3)
                    k += one
            if (not is_word or wide_word) and word != U(0):
                line_hash = (line_hash ^ word) * U(0x100000001B3) + one
                if n_title > 0:
                    slot = word & U(_TITLE_SLOTS - 1)
                    while title[slot] != U(0) and title[slot] != word:
                        slot = (slot + one) & U(_TITLE_SLOTS - 1)
                    title_hits += title[slot] == word
                word = U(0)
                if not is_word:
                    run = 0
            i += width
            continue
        # -- a tag, or the end of the page ---------------------------------------------------------------------------
        action, tag, end_tag = U(v.INLINE), U(0), False
        roles, signature = U(0), U(0)
        tag_stop = size
        if is_tag:
            after = load8(data + i + one)
            if after == U(33):
                if i + U(4) <= size and load8(data + i + two) == U(45) and load8(data + i + U(3)) == U(45):
                    k = i + U(4)
                    if k < size and load8(data + k) == U(62):
                        i = k + one
                        continue
                    while k + two < size and not (
                        load8(data + k) == U(45) and load8(data + k + one) == U(45) and load8(data + k + two) == U(62)
                    ):
                        k += one
                    i = min(k + U(3), size)
                else:
                    while i < size and load8(data + i) != U(62):
                        i += one
                    i = min(i + one, size)
                continue
            if after == U(63):
                while i < size and load8(data + i) != U(62):
                    i += one
                i = min(i + one, size)
                continue
            end_tag = after == U(47)
            name = i + two if end_tag else i + one
            name_end = _name_end(data, name, size)
            if name_end == name:
                i = min(name_end + one, size)
                continue
            tag = _find(tag_keys, tag_values, _hash_name(data, name, name_end))
            if (tag == U(0) and not end_tag) or tag == U(0):
                k = name
                while k < name_end:
                    if load8(data + k) == U(45):
                        tag = U(v.CUSTOM)
                    k += one
            action = actions[tag]
            tag_stop = name_end if load8(data + min(name_end, size - one)) == U(62) else _tag_end(data, name_end, size)
            if in_title:
                in_title, word = False, U(0)
            if not end_tag:
                katex = tex = False
                if tag_stop > name_end:
                    roles, signature, katex, tex = _attributes(
                        data, name_end, tag_stop, word_keys, word_values, needles
                    )
                roles |= tag_roles[tag]
                signature = (signature ^ tag) * U(0x100000001B3)
                if katex:  # the visible half of a formula whose source stands beside it
                    nested, k = 1, tag_stop
                    while k < size and nested > 0:
                        k += one
                        if k + U(6) <= size and load8(data + k) == U(60):
                            o = one if load8(data + k + one) == U(47) else U(0)
                            name_at = data + k + one + o  # span
                            if (
                                (load8(name_at) | U(32)) == U(115)
                                and (load8(name_at + one) | U(32)) == U(112)
                                and (load8(name_at + two) | U(32)) == U(97)
                            ):
                                nested += -1 if o == one else 1
                    i = k
                    continue
                if action == U(v.SKIPPED) or action == U(v.RAW) or action == U(v.MATH):
                    self_closed = tag_stop > i and load8(data + min(tag_stop, size) - one) == U(47)
                    stop = size
                    if self_closed and action != U(v.RAW):
                        stop = tag_stop
                    elif unclosed[tag] == 0:
                        stop = _closing(data, size, tag_stop, name, name_end - name)
                        if stop >= size and action != U(v.RAW):
                            unclosed[tag] = 1
                    if stop < size or action == U(v.RAW):
                        from_, to = tag_stop + one, stop
                        if action == U(v.MATH):
                            from_ = _find_bytes(data, tag_stop, stop, needles + U(33), U(17))
                            from_ = _tag_end(data, from_, stop) + one if from_ < stop else stop
                            to = from_
                            while to < stop and load8(data + to) != U(60):
                                to += one
                        elif not (action == U(v.RAW) and tex):
                            from_ = to
                        if from_ < to:
                            if chars > 0 and pending:
                                text[used] = 32
                                used += one
                                chars += 1
                            if chars == 0:
                                used = line_start
                                place = from_
                            pending = False
                            text[used] = 36
                            used += one
                            chars += 1
                            jump_at, jump_to = to, stop
                            i = from_
                        else:
                            i = stop
                        if i == stop and stop < size:
                            i = _tag_end(data, stop, size) + one if action != U(v.MATH) or from_ >= to else i
                        i = min(i, size)
                        if jump_at <= size and jump_to < size:
                            jump_to = min(_tag_end(data, jump_to, size) + one, size)
                        continue
                    action = U(v.INLINE)
                if action == U(v.TITLE):
                    title_end = size
                    if unclosed[tag] == 0:
                        title_end = _closing(data, size, tag_stop, name, name_end - name)
                        unclosed[tag] = title_end >= size
                    in_title = bool(n_title == 0 and tag_stop + one < title_end < size)
                    i = min(tag_stop + one, size) if in_title or title_end >= size else title_end
                    word = U(0)
                    continue
            flush = action in (U(v.CONTAINER), U(v.LEAF), U(v.BREAK), U(v.RULE))
            if in_pre and flush and tag != _PRE:
                if chars > 0 and not end_tag:
                    text[used] = 10
                    used += one
                    chars += 1
                    pending = True
                    if word != U(0):
                        line_hash = (line_hash ^ word) * U(0x100000001B3) + one
                        word = U(0)
                if not (end_tag and action == U(v.CONTAINER)):
                    i = min(tag_stop + one, size)
                    continue
        if flush:
            if word != U(0):
                line_hash = (line_hash ^ word) * U(0x100000001B3) + one
                if n_title > 0:
                    slot = word & U(_TITLE_SLOTS - 1)
                    while title[slot] != U(0) and title[slot] != word:
                        slot = (slot + one) & U(_TITLE_SLOTS - 1)
                    title_hits += title[slot] == word
                word = U(0)
            run = 0
            if chars > 0:
                row = lines[n]
                row[0], row[1], row[2], row[3] = line_start, used, chars, words
                row[4], row[5], row[6], row[7] = link_chars, link_words, links, ends
                row[8], row[9], row[10], row[11] = commas, digits, capitals, separators
                row[12], row[13], row[14] = first, last, kind
                row[15], row[16], row[17] = stack[level, 4], level + overflow, stack[level, 1]
                row[18], row[19], row[20], row[21] = bold_chars, title_hits, stack[level, 2], stack[level, 3]
                row[22], row[23], row[24] = soft, place, np.int64(leaf_roles | inline_roles)
                row[25], row[26], row[27] = np.int64(line_hash), symbols, letters
                n += 1
                line_start = used
                soft = False
            used = line_start
            chars = words = link_chars = link_words = links = ends = commas = digits = capitals = separators = 0
            bold_chars = title_hits = symbols = letters = 0
            line_hash, inline_roles = U(0), U(0)
            pending = False
            if not is_tag:
                break
        # -- what the tag does ---------------------------------------------------------------------------------------
        if action == U(v.LINK):
            link_level = -1 if end_tag else level
            new_link = not end_tag
            inline_roles |= roles
        elif action == U(v.BOLD):
            bold_level = -1 if end_tag else level
        elif action == U(v.INLINE):
            inline_roles |= roles
        elif action == U(v.BREAK):
            soft = True
        elif action == U(v.LEAF):
            in_pre = tag == _PRE and not end_tag
            soft = False
            if end_tag:
                kind, leaf_roles = U(stack[level, 5]), U(0)
            else:
                kind, leaf_roles = kinds[tag], roles
        elif action == U(v.CONTAINER):
            in_pre = False
            soft = False
            target = -1
            if end_tag:
                if overflow > 0:
                    overflow -= 1
                elif open_counts[tag] > 0:
                    target = level
                    while target > 0 and stack[target, 0] != np.int64(tag):
                        target -= 1
                    target -= 1
            elif tag == _LI or tag == _TR or tag == _TD or tag == _TH:
                look, floor = level, max(0, level - 32)
                while look > floor:
                    t = U(stack[look, 0])
                    if t == tag or ((tag == _TD or tag == _TH) and (t == _TD or t == _TH)):
                        target = look - 1
                        break
                    if (
                        t == _TABLE
                        or (tag == _LI and (t == _UL or t == _OL))
                        or (tag != _LI and tag != _TR and t == _TR)
                    ):
                        break
                    look -= 1
            if target >= 0:
                while level > target:
                    open_counts[stack[level, 0]] -= 1
                    boxes[stack[level, 1], 6] = n
                    level -= 1
                if link_level > level:
                    link_level = -1
                if bold_level > level:
                    bold_level = -1
            if not end_tag:
                if level >= MAX_DEPTH:
                    overflow += 1
                else:
                    parent = stack[level, 1]
                    level += 1
                    stack[level, 0], stack[level, 1] = np.int64(tag), n_boxes
                    stack[level, 2], stack[level, 3] = stack[level - 1, 2], stack[level - 1, 3]
                    stack[level, 4] = stack[level - 1, 4]
                    if tag == _TR:
                        rows += 1
                        stack[level, 2], stack[level, 3] = rows, 0
                    elif tag == _TD or tag == _TH:
                        stack[level - 1, 3] += 1
                        stack[level, 3] = stack[level - 1, 3]
                    elif tag == _UL or tag == _OL:
                        stack[level, 4] += 1
                    stack[level, 5] = kinds[tag]
                    if kinds[tag] == U(0):
                        stack[level, 5] = stack[level - 1, 5]
                    open_counts[tag] += 1
                    box = boxes[n_boxes]
                    box[0], box[1], box[2] = parent, np.int64(tag), np.int64(roles)
                    box[3] = np.int64(roles) | boxes[parent, 3]
                    box[4], box[5], box[6], box[7] = np.int64(signature), n, n, level
                    n_boxes += 1
            kind, leaf_roles = U(stack[level, 5]), U(0)
        i = min(tag_stop + one, size)
    while level > 0:
        boxes[stack[level, 1], 6] = n
        level -= 1
    boxes[0, 6] = n
    return n, n_boxes, n_title


_LI, _TR, _TD, _TH, _TABLE, _UL, _OL, _PRE = (
    U(v.TAGS[t]) for t in ("li", "tr", "td", "th", "table", "ul", "ol", "pre")
)
