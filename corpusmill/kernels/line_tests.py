"""What edit rules look for in a line, by address: counts, ends, phrases, citations, addresses, counters.

Frozen like `bytehash`: `line_edits` compiles these functions in, and Numba's cache of it does not see when they change.
After a change, delete the `__pycache__` folders and raise the VERSION of the attribute group `edits`.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from corpusmill.kernels.blanks import (
    blank,
    characters,
    lower,
    next_blank,
    starts_with,
    starts_with_lower,
    strip_left,
    strip_right,
)
from corpusmill.kernels.bytehash import SEED, U, absorb, load8
from corpusmill.kernels.hashing import mix64
from corpusmill.kernels.unicode_table import ALPHA, DIGIT, DIGIT_VALUE, KIND_SHIFT, UPPER, Kind
from corpusmill.kernels.utf8 import decode

_UPPER, _DIGIT, _ALPHA = U(UPPER), U(DIGIT), U(ALPHA)
_DIGIT_VALUE, _SHIFT = U(DIGIT_VALUE), U(KIND_SHIFT)
_WORD, _SINGLE = U(Kind.WORD), U(Kind.SINGLE)
_OPEN, _CLOSE, _UNDERSCORE, _DOT, _SLASH, _COLON, _AT = (U(ord(c)) for c in "[]_./:@")
_MOST_BLANKS = U(10)


@numba.njit(nogil=True, cache=True)
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


@numba.njit(nogil=True, cache=True)
def words_up_to(at: U, end: U, most: U) -> U:
    """Words between white space; counting stops at `most`."""
    words = U(0)
    at = strip_left(at, end)
    while at < end and words < most:
        words += U(1)
        at = strip_left(next_blank(at, end), end)
    return words


@numba.njit(nogil=True, cache=True)
def has_long_word(at: U, end: U, most: U) -> Any:
    """Whether a word between white space has more characters than `most`."""
    while end - at > most:
        after = next_blank(at, end)
        if after - at > most and characters(at, after) > most:
            return True
        at = strip_left(after, end)
    return False


@numba.njit(nogil=True, cache=True)
def ends_with(at: U, end: U, items: NDArray[np.int64], first: int, last: int, blob: U) -> Any:
    """Whether a piece of text ends with one of some strings."""
    for k in range(first, last):
        size = U(items[k, 1])
        if end - at >= size and starts_with(end - size, end, blob + U(items[k, 0]), size):
            return True
    return False


@numba.njit(nogil=True, cache=True)
def _word_byte(byte: U) -> Any:
    return byte >= U(0x80) or byte == _UNDERSCORE or U(0x30) <= byte <= U(0x39) or U(0x61) <= lower(byte) <= U(0x7A)


@numba.njit(nogil=True, cache=True)
def phrase_at(at: U, begin: U, end: U, whole: int, items: NDArray[np.int64], first: int, last: int, blob: U) -> U:
    """Bytes of the first listed phrase at an address; 0 where none is there."""
    for k in range(first, last):
        size = U(items[k, 1])
        if not starts_with_lower(at, end, blob + U(items[k, 0]), size):
            continue
        if whole and (
            (at > begin and _word_byte(load8(at - U(1)))) or (at + size < end and _word_byte(load8(at + size)))
        ):
            continue
        return size
    return U(0)


@numba.njit(nogil=True, cache=True)
def find_phrase(
    at: U, begin: U, end: U, place: int, whole: int, items: NDArray[np.int64], first: int, last: int, blob: U
) -> tuple[U, U]:
    """Address and bytes of the next phrase from an address on; (end, 0) where there is none.

    Args:
        begin: of the line, in which the phrase stands. place: of edit_program.PLACES.
    """
    if place == 1:
        size = phrase_at(begin, begin, end, whole, items, first, last, blob) if at == begin else U(0)
        return (begin, size) if size > U(0) else (end, U(0))
    if place == 2:
        for k in range(first, last):
            size = U(items[k, 1])
            if end - at >= size and phrase_at(end - size, begin, end, whole, items, k, k + 1, blob) > U(0):
                return end - size, size
        return end, U(0)
    while at < end:
        size = phrase_at(at, begin, end, whole, items, first, last, blob)
        if size > U(0):
            return at, size
        at += U(1)
    return end, U(0)


@numba.njit(nogil=True, cache=True)
def citation_at(at: U, end: U, numbers: int, items: NDArray[np.int64], first: int, last: int, blob: U, table: U) -> U:
    """Bytes of a mark in square brackets at an address; 0 where there is none."""
    if load8(at) != _OPEN:
        return U(0)
    if numbers:
        i = at + U(1)
        while i < end:
            _, entry, width = decode(i, end, table)
            if entry & _DIGIT == U(0):
                break
            i += width
        if i < end and load8(i) == _CLOSE:
            return i + U(1) - at
    for k in range(first, last):
        size = U(items[k, 1])
        after = at + U(1) + size
        if after < end and load8(after) == _CLOSE and starts_with(at + U(1), end, blob + U(items[k, 0]), size):
            return size + U(2)
    return U(0)


@numba.njit(nogil=True, cache=True)
def _is_letter(byte: U) -> Any:
    return U(0x61) <= lower(byte) <= U(0x7A)


@numba.njit(nogil=True, cache=True)
def _is_host(byte: U) -> Any:
    return _is_letter(byte) or U(0x30) <= byte <= U(0x39) or byte in (U(0x2D), _DOT, _UNDERSCORE, _AT)


@numba.njit(nogil=True, cache=True)
def _is_numeric_host(at: U, end: U) -> Any:
    """Four numbers of at most three digits with points between."""
    parts, digits = U(1), U(0)
    while at < end:
        byte = load8(at)
        if byte == _DOT:
            if digits == U(0):
                return False
            parts += U(1)
            digits = U(0)
        elif U(0x30) <= byte <= U(0x39) and digits < U(3):
            digits += U(1)
        else:
            return False
        at += U(1)
    return parts == U(4) and digits > U(0)


@numba.njit(nogil=True, cache=True)
def is_address(at: U, end: U, items: NDArray[np.int64], first: int, last: int, blob: U) -> Any:
    """Whether a word, without the punctuation around it, is a web address or the like."""
    if end - at < U(4):
        return False
    i = at
    while i < end and _is_letter(load8(i)):
        i += U(1)
    if i > at and i + U(3) < end and load8(i) == _COLON and load8(i + U(1)) == _SLASH and load8(i + U(2)) == _SLASH:
        return True
    www = i == at + U(3) and i + U(1) < end and load8(i) == _DOT
    k = U(0)
    while www and k < U(3):
        www = lower(load8(at + k)) == U(0x77)
        k += U(1)
    if www:
        return True
    while i < end and _is_host(load8(i)):
        i += U(1)
    if i < end and load8(i) not in (_SLASH, _COLON, U(0x3F), U(0x23)):
        return False
    if _is_numeric_host(at, i):
        return True
    for e in range(first, last):
        size = U(items[e, 1])
        dot = i - size - U(1)
        if i - at > size + U(1) and load8(dot) == _DOT and starts_with(i - size, i, blob + U(items[e, 0]), size):
            return True
    return False


@numba.njit(nogil=True, cache=True)
def find_address(at: U, begin: U, end: U, items: NDArray[np.int64], first: int, last: int, blob: U) -> tuple[U, U]:
    """Address and bytes of the next web address from a word's begin on, with the white space before it (at most ten
    characters); (end, 0) where there is none."""
    while True:
        at = strip_left(at, end)
        if at >= end:
            return end, U(0)
        after = next_blank(at, end)
        word, stop = at, after
        while word < stop and load8(word) < U(0x80) and not _word_byte(load8(word)):
            word += U(1)
        while stop > word and load8(stop - U(1)) < U(0x80) and not _word_byte(load8(stop - U(1))):
            if load8(stop - U(1)) == _SLASH:
                break
            stop -= U(1)
        if is_address(word, stop, items, first, last, blob):
            if word == at:  # nothing stands between it and the white space
                spaces = U(0)
                while word > begin and spaces < _MOST_BLANKS:
                    k = U(1)
                    while k <= U(3) and not (word - begin >= k and blank(word - k, k) == k):
                        k += U(1)
                    if k > U(3):
                        break
                    word -= k
                    spaces += U(1)
            return word, stop - word
        at = after


@numba.njit(nogil=True, cache=True)
def _is_word_character(entry: U) -> Any:
    kind = (entry >> _SHIFT) & U(7)
    return entry & _ALPHA != U(0) or kind in (_WORD, _SINGLE)


@numba.njit(nogil=True, cache=True)
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


@numba.njit(nogil=True, cache=True)
def line_key(at: U, end: U) -> tuple[U, U]:
    """Hash of a line without white space around it, A to Z small, and its bytes then."""
    at = strip_left(at, end)
    end = strip_right(at, end)
    h, i = SEED, at
    while i < end:
        h = absorb(h, lower(load8(i)))
        i += U(1)
    return mix64(h), end - at
