"""What edit rules look for in a whole line, by address: words, ends, shares, counters, copies.

Frozen like `bytehash`: `line_edits` compiles these functions in, and Numba's cache of it does not see when they change.
After a change, delete the `__pycache__` folders and raise the VERSION of the attribute group `edits`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpusmill.compiled import inner
from corpusmill.kernels.bytes.blanks import (
    characters,
    lower,
    next_blank,
    starts_with,
    starts_with_lower,
    strip_left,
    strip_right,
)
from corpusmill.kernels.bytes.bytehash import SEED, U, absorb, load8
from corpusmill.kernels.bytes.hashing import mix64
from corpusmill.kernels.bytes.unicode_table import ALPHA, DIGIT, DIGIT_VALUE, KIND_SHIFT, UPPER, Kind
from corpusmill.kernels.bytes.utf8 import decode
from corpusmill.kernels.edits.program import Op

_UPPER, _DIGIT, _ALPHA = U(UPPER), U(DIGIT), U(ALPHA)
_DIGIT_VALUE, _SHIFT = U(DIGIT_VALUE), U(KIND_SHIFT)
_WORD, _SINGLE = U(Kind.WORD), U(Kind.SINGLE)
_UNDERSCORE, _DOT = U(ord("_")), U(ord("."))
_LONG_WORD, _FEW_WORDS, _NO_END_MARK = int(Op.LONG_WORD), int(Op.FEW_WORDS), int(Op.NO_END_MARK)
_CAPITALS, _DIGITS, _COUNTER = int(Op.CAPITALS), int(Op.DIGITS), int(Op.COUNTER)


@inner
def shares(at: U, end: U, table: U, classes: U) -> tuple[U, U, U]:
    """Characters, capitals, digits.

    Args:
        classes: of ASCII bytes, uint8[128]: 1 capital, 2 digit.
    """
    chars, upper, digits = U(0), U(0), U(0)
    while at < end:
        byte = load8(at)
        if byte < U(0x80):
            facts = load8(classes + byte)
            upper += facts & U(1)
            digits += facts >> U(1)
            at += U(1)
        else:
            _, entry, width = decode(at, end, table)
            upper += U(entry & _UPPER != U(0))
            digits += U(entry & _DIGIT_VALUE != U(0))
            at += width
        chars += U(1)
    return chars, upper, digits


@inner
def words_up_to(at: U, end: U, most: U) -> U:
    """Words between white space; counting stops at `most`."""
    words = U(0)
    at = strip_left(at, end)
    while at < end and words < most:
        words += U(1)
        at = strip_left(next_blank(at, end), end)
    return words


@inner
def has_long_word(at: U, end: U, most: U) -> Any:
    """Whether a word between white space has more characters than `most`."""
    while end - at > most:
        after = next_blank(at, end)
        if after - at > most and characters(at, after) > most:
            return True
        at = strip_left(after, end)
    return False


@inner
def ends_with(at: U, end: U, items: NDArray[np.int64], first: int, last: int, blob: U) -> Any:
    """Whether a piece of text ends with one of some strings."""
    for k in range(first, last):
        size = U(items[k, 1])
        if end - at >= size and starts_with(end - size, end, blob + U(items[k, 0]), size):
            return True
    return False


@inner
def _is_word_character(entry: U) -> Any:
    kind = (entry >> _SHIFT) & U(7)
    return entry & _ALPHA != U(0) or kind in (_WORD, _SINGLE)


@inner
def is_counter(at: U, end: U, items: NDArray[np.int64], first: int, last: int, blob: U, table: U) -> Any:
    """Whether a line is a number and a unit with no other word: "1.2k likes"."""
    while at < end:  # what is no word, up to the first digit
        _, entry, width = decode(at, end, table)
        if _is_word_character(entry) or load8(at) == _UNDERSCORE:
            break
        at += width
    digits = U(0)
    while at < end:
        _, entry, width = decode(at, end, table)
        if entry & _DIGIT != U(0):
            digits += U(1)
        elif digits == U(0) or load8(at) not in (U(0x2C), _DOT):
            break
        at += width
    if digits == U(0):
        return False
    if at < end and lower(load8(at)) in (U(0x6B), U(0x6D), U(0x62)):  # k, m, b
        at += U(1)
    after = strip_left(at, end)
    if after == at:
        return False
    for k in range(first, last):
        size = U(items[k, 1])
        if starts_with_lower(after, end, blob + U(items[k, 0]), size):
            i = after + size
            rest = True
            while i < end and rest:
                _, entry, width = decode(i, end, table)
                rest = not _is_word_character(entry) and load8(i) != _UNDERSCORE
                i += width
            if rest:
                return True
    return False


@inner
def line_key(at: U, end: U) -> tuple[U, U]:
    """Hash of a line without white space around it, A to Z small, and its bytes then."""
    at = strip_left(at, end)
    end = strip_right(at, end)
    h, i = SEED, at
    while i < end:
        h = absorb(h, lower(load8(i)))
        i += U(1)
    return mix64(h), end - at


@inner
def removes(
    op: int,
    at: U,
    n: U,
    number: int,
    flag: int,
    place: int,
    ratio: float,
    lists: NDArray[np.int64],
    items: NDArray[np.int64],
    blob: U,
    table: U,
    classes: U,
) -> Any:
    """Whether a rule that looks at one line alone removes a line of n bytes.

    Args:
        op: edit_program.Op. number, flag, place, ratio, lists: what the program has for the rule.
    """
    end = at + n
    if op == _LONG_WORD:
        return has_long_word(at, end, U(number))
    if op == _FEW_WORDS:
        return words_up_to(at, end, U(number)) < U(number) and not (flag and n == U(0))
    if op == _NO_END_MARK:
        if flag and n == U(0):
            return False
        to = strip_right(at, end) if place else end
        if not ends_with(at, to, items, lists[0], lists[1], blob):
            return True
        return ends_with(at, to, items, lists[2], lists[3], blob)
    if op in (_CAPITALS, _DIGITS):
        chars, upper, digits = shares(at, end, table, classes)
        part = upper if op == _CAPITALS else digits
        return chars > U(0) and float(part) / float(chars) > ratio
    return op == _COUNTER and is_counter(at, end, items, lists[0], lists[1], blob, table)
