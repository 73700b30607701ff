"""The compiled pass of the word table (words.py): from UTF-8 bytes to tokens."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from corpusmill.compiled import inner, kernel
from corpusmill.kernels.bytes.bytehash import (
    SEED,
    U,
    absorb,
    has_ascii_letter,
    hash_bytes,
    load8,
    load32,
    load64,
    load_chunk,
    lower_ascii,
)
from corpusmill.kernels.bytes.bytemasks import block, in_span, lowest_bit, store32
from corpusmill.kernels.bytes.hashing import mix64
from corpusmill.kernels.bytes.unicode_table import (
    ALPHA,
    DIGIT,
    FOLD_MASK,
    KIND_SHIFT,
    NON_PUNCTUATION,
    Kind,
    load_table,
)
from corpusmill.kernels.bytes.utf8 import decode, utf8_byte, utf8_size

HAS_LETTER, HAS_NON_PUNCTUATION, IS_WORD = 1, 2, 4
"""Bits of a token's flags: it has a letter; it has a character that datatrove does not list as punctuation; it is no
symbol."""

_SEPARATOR, _WORD, _SINGLE = np.uint64(Kind.SEPARATOR), np.uint64(Kind.WORD), np.uint64(Kind.SINGLE)
_MARK, _FORMAT = np.uint64(Kind.MARK), np.uint64(Kind.FORMAT)
_JOINER, _NUMERIC = np.uint64(Kind.JOINER), np.uint64(Kind.NUMERIC)
_FOLD, _SHIFT, _DIGIT = np.uint64(FOLD_MASK), np.uint64(KIND_SHIFT), np.uint64(DIGIT)
_ALPHA, _NON_PUNCTUATION = np.uint64(ALPHA), np.uint64(NON_PUNCTUATION)

_ALL = U(0xFFFFFFFFFFFFFFFF)
BLANK, SIGNS, LETTERS, JOINTS, WIDE = (U(c) for c in range(5))
"""Classes of bytes: blank, symbol, ASCII letter or digit, ASCII that may join words, part of a longer character."""


@cache
def signs() -> NDArray[np.uint64]:
    """Hash and flags of each ASCII character as a symbol of its own, uint64[128, 2]."""
    bits = [HAS_NON_PUNCTUATION if int(entry) & NON_PUNCTUATION else 0 for entry in load_table()[:0x80]]
    signs = np.array([np.zeros(0x80), bits], np.uint64).T.copy()
    _hash_signs(signs)
    signs.flags.writeable = False
    return signs


@kernel
def _hash_signs(signs: NDArray[np.uint64]) -> None:
    for i in range(len(signs)):
        signs[i, 0] = mix64(absorb(SEED ^ U(1), U(i)))


@cache
def byte_classes() -> NDArray[np.uint8]:
    """Class of each byte, uint8[256]."""
    by_kind = {Kind.SEPARATOR: BLANK, Kind.WORD: LETTERS, Kind.JOINER: JOINTS, Kind.NUMERIC: JOINTS}
    kinds = [Kind(int(entry) >> KIND_SHIFT & 7) for entry in load_table()[:0x80]]
    return np.array([by_kind.get(kind, SIGNS) for kind in kinds] + [WIDE] * 0x80, np.uint8)


@inner(forceinline=True)
def _hash_ascii(at: U, size: U) -> tuple[U, U, bool]:
    """`hash_bytes` of an ASCII token, `hash_bytes` of its lower case, and whether it has a letter."""
    exact = folded = SEED ^ size
    if size <= U(16) and (at & U(0xFFF)) <= U(0xFF0):  # within one page, so the bytes beyond exist
        longer = U(0) - U(size > U(8))  # without a branch: of many words it would be foreseen wrongly
        first = load64(at) & (_ALL >> (U(64) - U(8) * min(size, U(8))))
        second = load64(at + U(8)) & (_ALL >> ((U(128) - U(8) * size) & U(63))) & longer
        exact, folded = absorb(exact, first), absorb(folded, lower_ascii(first))
        exact ^= (exact ^ absorb(exact, second)) & longer
        folded ^= (folded ^ absorb(folded, lower_ascii(second))) & longer
        return mix64(exact), mix64(folded), has_ascii_letter(first) | has_ascii_letter(second)
    letter = False
    while size > U(0):
        chunk = load_chunk(at, size)
        exact = absorb(exact, chunk)
        folded = absorb(folded, lower_ascii(chunk))
        letter |= has_ascii_letter(chunk)
        at += U(8)
        size -= min(size, U(8))
    return mix64(exact), mix64(folded), letter


@inner
def _hash_folded(at: U, end: U, table: U) -> U:
    """`hash_bytes` of the folded form of a word."""
    length, i = U(0), at
    while i < end:  # its length comes first
        _, entry, width = decode(i, end, table)
        length += utf8_size(entry & _FOLD)
        i += width
    h = SEED ^ length
    chunk, filled, i = U(0), U(0), at
    while i < end:
        _, entry, width = decode(i, end, table)
        size = utf8_size(entry & _FOLD)
        k = U(0)
        while k < size:
            chunk |= utf8_byte(entry & _FOLD, size, k) << (U(8) * filled)
            filled += U(1)
            if filled == U(8):
                h = absorb(h, chunk)
                chunk, filled = U(0), U(0)
            k += U(1)
        i += width
    if filled > U(0):
        h = absorb(h, chunk)
    return mix64(h)


@inner(forceinline=True)
def decode_fast(at: U, end: U, table: U) -> tuple[U, U, U]:
    """`decode`, the usual lengths first."""
    code = load8(at)
    if code < U(0x80):
        return code, load32(table + U(4) * code), U(1)
    if U(0xC0) <= code < U(0xE0) and at + U(2) <= end:
        code = (code & U(0x1F)) << U(6) | (load8(at + U(1)) & U(0x3F))
        return code, load32(table + U(4) * code), U(2)
    if U(0xE0) <= code < U(0xF0) and at + U(3) <= end:
        code = (code & U(0x0F)) << U(12) | (load8(at + U(1)) & U(0x3F)) << U(6) | (load8(at + U(2)) & U(0x3F))
        return code, load32(table + U(4) * code), U(3)
    return decode(at, end, table)


@inner(forceinline=True)
def _hash_short(at: U, size: U) -> U:
    """`hash_bytes`, without a branch where there are at most 16 bytes."""
    if size <= U(16) and (at & U(0xFFF)) <= U(0xFF0):  # within one page, so the bytes beyond exist
        longer = U(0) - U(size > U(8))
        h = absorb(SEED ^ size, load64(at) & (_ALL >> (U(64) - U(8) * min(size, U(8)))))
        second = load64(at + U(8)) & (_ALL >> ((U(128) - U(8) * size) & U(63)))
        return mix64(h ^ ((h ^ absorb(h, second)) & longer))
    return hash_bytes(at, size)


@inner(forceinline=True)
def token(at: U, end: U, table: U, code: U, entry: U, width: U) -> tuple[U, U, U, U, U, U, U, U]:
    """Read one token of any kind, from a character that `decode_fast` has read: where it stops, characters, exact hash,
    folded hash, flags, and the character there as `decode_fast` has it. No characters: a separator, no token."""
    begin, first = at, (entry >> _SHIFT) & U(7)
    bits, symbol, digit = entry, code, entry & _DIGIT
    same = entry & _FOLD == code
    in_word = first in (_WORD, _MARK)
    in_run = not in_word and first != _SINGLE
    length = U(first != _SEPARATOR and first != _FORMAT)
    at += width
    while at < end:
        code, entry, width = decode_fast(at, end, table)
        if length == U(0):
            break
        kind = (entry >> _SHIFT) & U(7)
        if kind == _WORD and in_word:
            digit = entry & _DIGIT
        elif kind in (_MARK, _FORMAT):
            in_run = False
        elif in_word and at + width < end and (kind == _JOINER or (kind == _NUMERIC and digit != U(0))):
            _, after, _ = decode_fast(at + width, end, table)
            if (after >> _SHIFT) & U(7) != _WORD or (kind == _NUMERIC and after & _DIGIT == U(0)):
                break
        elif not (in_run and code == symbol):
            break
        same &= entry & _FOLD == code
        bits |= entry
        length += U(1)
        at += width
    word = in_word or first == _SINGLE
    exact = folded = _hash_short(begin, at - begin)
    if word and not same:
        folded = _hash_folded(begin, at, table)
    flags = U(bits & _ALPHA != U(0)) * U(HAS_LETTER) | U(bits & _NON_PUNCTUATION != U(0)) * U(HAS_NON_PUNCTUATION)
    return at, length, exact, folded, flags | U(word) * U(IS_WORD), code, entry, width


@inner(forceinline=True)
def _changes(bits: U, before: U) -> U:
    """Where a class of bytes begins or ends in a block; `before`: the last bit of the block before."""
    return bits ^ (bits << U(1) | before)


@inner
def _runs(text: U, size: U, begins: U, ends: U) -> U:
    """Runs of bytes of one class, blanks left out: where they begin and end (int32 each, at addresses); how many."""
    if size == U(0):
        return U(0)
    at, end = text, text + size
    begun, ended = begins, ends
    blank_before, letter_before, joint_before, wide_before = U(1), U(0), U(0), U(0)
    while at < end:
        place, shift, keep = block(at, end)
        blank = ((in_span(place, U(0), U(0), U(0x21)) | in_span(place, U(0), U(0x7F), U(1))) >> shift) & keep
        letter = ((in_span(place, U(0x20), U(0x61), U(26)) | in_span(place, U(0), U(0x30), U(10))) >> shift) & keep
        joint = in_span(place, U(0x02), U(0x2E), U(1)) | in_span(place, U(0), U(0x27), U(1))  # . , '
        joint = ((joint | in_span(place, U(0), U(0x5F), U(1))) >> shift) & keep
        wide = (in_span(place, U(0), U(0x80), U(0x80)) >> shift) & keep
        found = _changes(blank, blank_before) | _changes(letter, letter_before)
        found = (found | _changes(joint, joint_before) | _changes(wide, wide_before)) & keep
        begin, stop = found & ~blank, found & ~(blank << U(1) | blank_before)
        base = at - text
        while begin != U(0):
            store32(begun, base + lowest_bit(begin))
            begin &= begin - U(1)
            begun += U(4)
        while stop != U(0):
            store32(ended, base + lowest_bit(stop))
            stop &= stop - U(1)
            ended += U(4)
        last = U(63)
        blank_before, letter_before = blank >> last, letter >> last
        joint_before, wide_before = joint >> last, wide >> last
        at += U(64)
    if ended != ends + (begun - begins):  # the last one ends with the text
        store32(ended, size)
    return (begun - begins) >> U(2)


@kernel
def scan(
    data: U,
    bounds: NDArray[np.int64],
    table: U,
    classes: U,
    signs: U,
    room: U,
    begins: U,
    ends: U,
    offsets: NDArray[np.int64],
    start: NDArray[np.int32],
    stop: NDArray[np.int32],
    chars: NDArray[np.int32],
    exact: NDArray[np.uint64],
    folded: NDArray[np.uint64],
    flags: NDArray[np.uint8],
) -> U:
    """Fill the word table. First the runs of bytes of one class; then tokens, from whole runs where one will do, else
    character by character.

    Finding the end of each word by a loop costs a mispredicted branch a word: half the speed.
    """
    n = U(0)
    for d in range(len(bounds) - 1):
        offsets[d] = n
        text = data + U(bounds[d])
        size = U(bounds[d + 1]) - U(bounds[d])
        beyond = text + size
        last = _runs(text, size, begins, ends)
        r, done = U(0), U(0)  # bytes before `done` belong to tokens already
        while r < last:
            i, end = max(load32(begins + U(4) * r), done), load32(ends + U(4) * r)
            r += U(1)
            if i >= end:
                continue
            now = load8(classes + load8(text + i))
            after = load8(classes + load8(text + end)) if end < size else BLANK
            if now == LETTERS:
                whole = after <= SIGNS
                if after == JOINTS:  # one joint between letters may join: the loop below knows
                    next_one = load8(classes + load8(text + end + U(1))) if end + U(1) < size else BLANK
                    whole = next_one != LETTERS and next_one != WIDE
            else:
                whole = now != WIDE and after != WIDE and end == i + U(1)
            if n + (end - i) > room:
                return room + U(1)
            if whole:
                start[n], stop[n], chars[n] = i, end, end - i
                if now == LETTERS:
                    exact[n], folded[n], letter = _hash_ascii(text + i, end - i)
                    flags[n] = np.uint8(HAS_NON_PUNCTUATION | IS_WORD) | np.uint8(letter)
                else:
                    sign = signs + U(16) * load8(text + i)
                    exact[n] = folded[n] = load64(sign)
                    flags[n] = load8(sign + U(8))
                n += U(1)
                continue
            at, end = text + i, text + end
            code, entry, width = decode_fast(at, beyond, table)
            while at < end:
                begin = at
                at, length, hashed, low, found, code, entry, width = token(at, beyond, table, code, entry, width)
                start[n], stop[n], chars[n] = begin - text, at - text, length
                exact[n], folded[n], flags[n] = hashed, low, found
                n += U(length > U(0))
            done = at - text
    offsets[len(bounds) - 1] = n
    return n
