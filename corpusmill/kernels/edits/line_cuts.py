"""What edit rules cut out of lines, by address: phrases, citations, URLs.

Frozen like `bytehash`, as `line_tests` is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpusmill.compiled import inner
from corpusmill.kernels.bytes.blanks import blank, lower, next_blank, starts_with, starts_with_lower, strip_left
from corpusmill.kernels.bytes.bytehash import U, load8
from corpusmill.kernels.bytes.unicode_table import DIGIT
from corpusmill.kernels.bytes.utf8 import decode

Ints = NDArray[np.int64]

_DIGIT = U(DIGIT)
_OPEN, _CLOSE, _UNDERSCORE, _DOT, _SLASH, _COLON, _AT = (U(ord(c)) for c in "[]_./:@")
_MOST_BLANKS = U(10)
_ANYWHERE, _START = 0, 1


@inner
def _word_byte(byte: U) -> Any:
    return byte >= U(0x80) or byte == _UNDERSCORE or U(0x30) <= byte <= U(0x39) or U(0x61) <= lower(byte) <= U(0x7A)


@inner
def phrase_at(at: U, begin: U, end: U, whole: int, items: Ints, first: int, last: int, blob: U) -> U:
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


@inner
def find_phrase(
    at: U, begin: U, end: U, place: int, whole: int, items: Ints, first: int, last: int, blob: U
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


@inner
def citation_at(at: U, end: U, numbers: int, items: Ints, first: int, last: int, blob: U, table: U) -> U:
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


@inner
def _is_letter(byte: U) -> Any:
    return U(0x61) <= lower(byte) <= U(0x7A)


@inner
def _is_host(byte: U) -> Any:
    return _is_letter(byte) or U(0x30) <= byte <= U(0x39) or byte in (U(0x2D), _DOT, _UNDERSCORE, _AT)


@inner
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


@inner
def is_url(at: U, end: U, items: Ints, first: int, last: int, blob: U) -> Any:
    """Whether a word, without the punctuation around it, is a URL or the like."""
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


@inner
def find_url(at: U, begin: U, end: U, items: Ints, first: int, last: int, blob: U) -> tuple[U, U]:
    """Address and bytes of the next URL from a word's begin on, with the white space before it (at most ten
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
        if is_url(word, stop, items, first, last, blob):
            if word == at:  # nothing stands between it and the white space
                spaces = U(0)
                while spaces < _MOST_BLANKS and _blank_before(word, begin) > U(0):
                    word -= _blank_before(word, begin)
                    spaces += U(1)
            return word, stop - word
        at = after


@inner
def _blank_before(at: U, begin: U) -> U:
    """Bytes of the white space character before an address; 0 where there is none."""
    k = U(1)
    while k <= U(3):
        if at - begin >= k and blank(at - k, k) == k:
            return k
        k += U(1)
    return U(0)


@inner
def citation_cuts(at: U, n: U, numbers: int, items: Ints, first: int, last: int, blob: U, table: U, cuts: Ints) -> int:
    """Places of marks in square brackets in a line of n bytes, into `cuts`; how many."""
    count, i = 0, U(0)
    while i < n:
        mark = U(0)
        if load8(at + i) == _OPEN:
            mark = citation_at(at + i, at + n, numbers, items, first, last, blob, table)
        if mark > U(0):
            cuts[count, 0], cuts[count, 1] = i, i + mark
            count += 1
        i += max(mark, U(1))
    return count


@inner
def url_cuts(at: U, n: U, items: Ints, first: int, last: int, blob: U, cuts: Ints) -> int:
    """Places of URLs in a line of n bytes, into `cuts`; how many."""
    count = 0
    place, length = find_url(at, at, at + n, items, first, last, blob)
    while length > U(0):
        cuts[count, 0], cuts[count, 1] = place - at, place + length - at
        count += 1
        place, length = find_url(place + length, place + length, at + n, items, first, last, blob)
    return count


@inner
def phrase_cuts(at: U, n: U, place: int, whole: int, items: Ints, first: int, last: int, blob: U, cuts: Ints) -> int:
    """Places of phrases in a line of n bytes with the white space before them (at the start: after), into `cuts`; how
    many."""
    count = 0
    begin, length = find_phrase(at, at, at + n, place, whole, items, first, last, blob)
    while length > U(0):
        finish = begin + length
        if place == _START:
            finish += blank(finish, at + n - finish)
        else:
            begin -= _blank_before(begin, at)
        floor = U(cuts[count - 1, 1]) if count else U(0)
        cuts[count, 0], cuts[count, 1] = max(begin - at, floor), finish - at
        count += 1
        if place != _ANYWHERE:
            break
        begin, length = find_phrase(finish, at, at + n, place, whole, items, first, last, blob)
    return count
