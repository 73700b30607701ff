"""The word table: every token of a batch of texts with its span, hashes and flags, from one pass over the UTF-8 bytes.

One definition of a word serves all of it: measures, signatures, digests, the benchmark screen. A token is one of

* a **word**: a maximal run of letters, numbers and marks; an apostrophe, middle dot or underscore between two of them
  and a full stop or comma between two digits belong to it ("don't", "snake_case", "1,000.5" are one word; "well-known"
  is two and a symbol);
* a **word of one character** in scripts written without spaces: each ideograph, kana and Hangul syllable, and each
  letter of Thai, Lao, Khmer and Burmese, with the marks that follow it (UAX #29 without a dictionary);
* a **symbol**: a run of one and the same punctuation mark or symbol ("...", "---", but `),` is two).

Marks and invisible characters belong to the token they follow. Spaces, controls and U+200B separate. The folded form
of a word is lower case, without apostrophes and invisible characters; digits stay; nothing is normalised (NFC and NFD
differ).

Numba's on-disk cache (`__pycache__`, or NUMBA_CACHE_DIR; safe to share between processes) looks at the time stamp of a
kernel's own file only: so kernels of other files take this table's arrays and call no compiled function of this file;
what they share lies in `bytehash` and `utf8`, which do not change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numba
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.kernels.bytehash import (
    SEED,
    U,
    absorb,
    address_of,
    has_ascii_letter,
    hash_bytes,
    load8,
    load32,
    load64,
    load_chunk,
    lower_ascii,
)
from corpusmill.kernels.hashing import mix64
from corpusmill.kernels.unicode_table import (
    ALPHA,
    DIGIT,
    FOLD_MASK,
    KIND_SHIFT,
    NON_PUNCTUATION,
    Kind,
    load_table,
)
from corpusmill.kernels.utf8 import decode, utf8_byte, utf8_size

HAS_LETTER, HAS_NON_PUNCTUATION, IS_WORD = 1, 2, 4
"""Bits of a token's flags: it has a letter; it has a character that datatrove does not list as punctuation; it is no
symbol."""

MAX_TEXT_BYTES = 2**31 - 1
"""Places in a document are int32."""

SLICE_BYTES = 1 << 20
"""Kernels walk a batch in slices of about so many bytes of text: the word table stays in the processor's last cache,
and what each slice costs besides its bytes is little."""

_LEAST_ROOM = 1 << 22
"""Bytes from which on NumPy asks Linux for large pages: far fewer faults than small ones."""

_SEPARATOR, _WORD, _SINGLE = np.uint64(Kind.SEPARATOR), np.uint64(Kind.WORD), np.uint64(Kind.SINGLE)
_MARK, _FORMAT = np.uint64(Kind.MARK), np.uint64(Kind.FORMAT)
_JOINER, _NUMERIC = np.uint64(Kind.JOINER), np.uint64(Kind.NUMERIC)
_FOLD, _SHIFT, _DIGIT = np.uint64(FOLD_MASK), np.uint64(KIND_SHIFT), np.uint64(DIGIT)
_ALPHA, _NON_PUNCTUATION = np.uint64(ALPHA), np.uint64(NON_PUNCTUATION)

# Classes of bytes: blank, symbol, ASCII letter or digit, ASCII that may join words, part of a longer character.
_IS_WORD = np.uint8(IS_WORD)
_ALL = U(0xFFFFFFFFFFFFFFFF)
_BLANK, _SIGNS, _LETTERS, _JOINTS, _WIDE = (U(c) for c in range(5))


@dataclass(frozen=True)
class WordTable:
    """Tokens of D documents, in text order; token t of document d has offsets[d] <= t < offsets[d + 1]."""

    offsets: NDArray[np.int64]
    """int64[D + 1]."""
    start: NDArray[np.int32]
    """First byte of each token, counted from the start of its document."""
    stop: NDArray[np.int32]
    """Byte after its last."""
    chars: NDArray[np.int32]
    """Its length in characters."""
    folded: NDArray[np.uint64]
    """Hash of the folded form of a word (shingles, n-grams), of a symbol as it stands."""
    exact: NDArray[np.uint64]
    """Hash of the form in the text: repetition measures."""
    flags: NDArray[np.uint8]
    """HAS_LETTER | HAS_NON_PUNCTUATION | IS_WORD."""

    def __len__(self) -> int:
        """Number of documents."""
        return len(self.offsets) - 1

    def word_counts(self) -> NDArray[np.int64]:
        """Words (not symbols) of each document, int64[D]."""
        counts = np.empty(len(self), np.int64)
        _count_words(self.offsets, self.flags, counts)
        return counts


class Room:
    """Memory for word tables, one at a time: a table goes when the next one is made."""

    def __init__(self) -> None:
        self._block = np.empty(_LEAST_ROOM, np.uint8)

    def block(self, size: int) -> NDArray[np.uint8]:
        """`size` bytes, whatever they hold."""
        if size > len(self._block):
            self._block = np.empty(size, np.uint8)
        return self._block[:size]


def word_table(text: pa.Array, room: Room | None = None) -> WordTable:
    """Tokens of every document of a batch.

    Args:
        text: large_string[D] without nulls; slices are read in place.
        room: where to put the columns but `offsets`, in place of new memory.

    Raises:
        ValueError: another type, or nulls.
    """
    data, bounds = text_buffers(text)
    offsets = np.empty(len(bounds), np.int64)
    text_bytes = int(bounds[-1] - bounds[0])
    addresses = (address_of(data), bounds, address_of(load_table()), address_of(_byte_classes()), address_of(_signs()))
    runs = np.empty(int(np.diff(bounds).max(initial=0)) + 1, np.int32)
    for most in (text_bytes // 2 + 1, text_bytes + 1):  # few texts have a token every two bytes, none one a byte
        start, stop, chars, folded, exact, flags = _columns(most, room)
        n = int(_scan(*addresses, U(most), runs, offsets, start, stop, chars, exact, folded, flags))
        if n <= most:
            break
    return WordTable(offsets, start[:n], stop[:n], chars[:n], folded[:n], exact[:n], flags[:n])


def _columns(most: int, room: Room | None) -> tuple[NDArray, ...]:
    """The columns of a table of so many tokens, in one block: blocks of one size are reused without new pages."""
    block = room.block(most * 29) if room else np.empty(most * 29, np.uint8)
    wide = block[: most * 16].view(np.uint64)
    narrow = block[most * 16 : most * 28].view(np.int32)
    return (
        *(narrow[most * i : most * (i + 1)] for i in range(3)),
        wide[:most],
        wide[most:],
        block[most * 28 :],
    )


def folded_words(text: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """The words alone, and of each only its folded hash: offsets int64[D + 1] and uint64 hashes, as `word_table` has
    them, in two thirds of the time.

    Raises:
        ValueError: another type than large_string, or nulls.
    """
    data, bounds = text_buffers(text)
    offsets = np.empty(len(bounds), np.int64)
    text_bytes = int(bounds[-1] - bounds[0])
    addresses = (address_of(data), bounds, address_of(load_table()), address_of(_byte_classes()), address_of(_signs()))
    runs = np.empty(int(np.diff(bounds).max(initial=0)) + 1, np.int32)
    for room in (text_bytes // 2 + 1, text_bytes + 1):
        folded = np.empty(room, np.uint64)
        n = int(_scan(*addresses, U(room), runs, offsets, None, None, None, None, folded, None))
        if n <= room:
            break
    return offsets, folded[:n]


@cache
def _signs() -> NDArray[np.uint64]:
    """Hash and flags of each ASCII character as a symbol of its own, uint64[128, 2]."""
    bits = [HAS_NON_PUNCTUATION if int(entry) & NON_PUNCTUATION else 0 for entry in load_table()[:0x80]]
    signs = np.array([np.zeros(0x80), bits], np.uint64).T.copy()
    _hash_signs(signs)
    signs.flags.writeable = False
    return signs


@numba.njit(nogil=True, cache=True)
def _hash_signs(signs: NDArray[np.uint64]) -> None:
    for i in range(len(signs)):
        signs[i, 0] = mix64(absorb(SEED ^ U(1), U(i)))


@cache
def _byte_classes() -> NDArray[np.uint8]:
    """Class of each byte, uint8[256]."""
    by_kind = {Kind.SEPARATOR: _BLANK, Kind.WORD: _LETTERS, Kind.JOINER: _JOINTS, Kind.NUMERIC: _JOINTS}
    kinds = [Kind(int(entry) >> KIND_SHIFT & 7) for entry in load_table()[:0x80]]
    return np.array([by_kind.get(kind, _SIGNS) for kind in kinds] + [_WIDE] * 0x80, np.uint8)


def text_buffers(text: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Bytes and offsets (int64[D + 1]) of a text column, zero copy; both read-only.

    Raises:
        ValueError: not a large_string array, or one with nulls or with a document over MAX_TEXT_BYTES.
    """
    if not isinstance(text, pa.LargeStringArray):
        raise ValueError(f"text must be a large_string array, got {getattr(text, 'type', type(text).__name__)}")
    if text.null_count:
        raise ValueError(f"text must have no nulls, got {text.null_count}")
    if len(text) == 0:
        return _frozen(np.zeros(0, np.uint8)), _frozen(np.zeros(1, np.int64))
    _, offsets, data = text.buffers()
    bounds = np.frombuffer(offsets, np.int64, len(text) + 1, text.offset * 8)
    if (longest := int(np.diff(bounds).max())) > MAX_TEXT_BYTES:
        raise ValueError(f"text must have less than {MAX_TEXT_BYTES + 1} bytes a document, got {longest}")
    return _frozen(np.frombuffer(data, np.uint8) if data else np.zeros(0, np.uint8)), _frozen(bounds)


def slices(text: pa.LargeStringArray) -> Iterator[tuple[int, pa.LargeStringArray]]:
    """Consecutive slices of about SLICE_BYTES (at least one document each), each with the number of its first
    document."""
    _, bounds = text_buffers(text)
    first = 0
    while first < len(text):
        after = int(np.searchsorted(bounds, bounds[first] + SLICE_BYTES, side="right")) - 1
        after = min(max(after, first + 1), len(text))
        yield first, text.slice(first, after - first)
        first = after


@numba.njit(nogil=True, cache=True)
def _count_words(offsets: NDArray[np.int64], flags: NDArray[np.uint8], counts: NDArray[np.int64]) -> None:
    for d in range(len(counts)):
        count = 0
        for facts in flags[offsets[d] : offsets[d + 1]]:
            count += (facts & _IS_WORD) != 0
        counts[d] = count


def _frozen(array: NDArray) -> NDArray:
    view = array.view()
    view.flags.writeable = False  # one compiled version: Numba types read-only and writable arrays apart
    return view


@numba.njit(nogil=True, inline="always")
def _hash_ascii(at: U, size: U) -> tuple[U, U, bool]:
    """`hash_bytes` of an ASCII token, `hash_bytes` of its lower case, and whether it has a letter."""
    exact = folded = SEED ^ size
    if size <= U(16) and (at & U(0xFFF)) <= U(0xFF0):  # within one page, so the bytes beyond exist
        first = load64(at) & (_ALL >> (U(64) - U(8) * min(size, U(8))))
        low = lower_ascii(first)
        letter = has_ascii_letter(first)
        exact, folded = absorb(exact, first), absorb(folded, low)
        if size > U(8):
            second = load64(at + U(8)) & (_ALL >> (U(128) - U(8) * size))
            exact, folded = absorb(exact, second), absorb(folded, lower_ascii(second))
            letter |= has_ascii_letter(second)
        return mix64(exact), mix64(folded), letter
    letter = False
    while size > U(0):
        chunk = load_chunk(at, size)
        exact = absorb(exact, chunk)
        folded = absorb(folded, lower_ascii(chunk))
        letter |= has_ascii_letter(chunk)
        at += U(8)
        size -= min(size, U(8))
    return mix64(exact), mix64(folded), letter


@numba.njit(nogil=True, inline="always")
def _hash_lower(at: U, size: U) -> U:
    """`hash_bytes` of the lower case of an ASCII token."""
    folded = SEED ^ size
    while size > U(0):
        folded = absorb(folded, lower_ascii(load_chunk(at, size)))
        at += U(8)
        size -= min(size, U(8))
    return mix64(folded)


@numba.njit(nogil=True, cache=True)
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


@numba.njit(nogil=True, inline="always")
def _decode(at: U, end: U, table: U) -> tuple[U, U, U]:
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


@numba.njit(nogil=True, cache=True)
def _token(at: U, end: U, table: U) -> tuple[U, U, U, U, U]:
    """Read one token of any kind: bytes, characters, exact hash, folded hash, flags. No characters: a separator, no
    token."""
    code, entry, width = _decode(at, end, table)
    first = (entry >> _SHIFT) & U(7)
    i = at + width
    if first in (_SEPARATOR, _FORMAT):
        return width, U(0), U(0), U(0), U(0)
    bits, length, symbol, digit = entry, U(1), code, entry & _DIGIT
    same = entry & _FOLD == code
    in_word = first in (_WORD, _MARK)
    in_run = not in_word and first != _SINGLE
    while i < end:
        code, entry, width = _decode(i, end, table)
        kind = (entry >> _SHIFT) & U(7)
        if kind == _WORD and in_word:
            digit = entry & _DIGIT
        elif kind in (_MARK, _FORMAT):
            in_run = False
        elif in_word and i + width < end and (kind == _JOINER or (kind == _NUMERIC and digit != U(0))):
            _, after, _ = _decode(i + width, end, table)
            if (after >> _SHIFT) & U(7) != _WORD or (kind == _NUMERIC and after & _DIGIT == U(0)):
                break
        elif not (in_run and code == symbol):
            break
        same &= entry & _FOLD == code
        bits |= entry
        length += U(1)
        i += width
    exact = folded = hash_bytes(at, i - at)
    flags = U(0)
    if in_word or first == _SINGLE:
        flags = U(IS_WORD)
        if not same:
            folded = _hash_folded(at, i, table)
    flags |= U(HAS_LETTER) if bits & _ALPHA != U(0) else U(0)
    flags |= U(HAS_NON_PUNCTUATION) if bits & _NON_PUNCTUATION != U(0) else U(0)
    return i - at, length, exact, folded, flags


@numba.njit(nogil=True, cache=True)
def _scan(
    data: U,
    bounds: NDArray[np.int64],
    table: U,
    classes: U,
    signs: U,
    room: U,
    runs: NDArray[np.int32],
    offsets: NDArray[np.int64],
    start: Any,
    stop: Any,
    chars: Any,
    exact: Any,
    folded: NDArray[np.uint64],
    flags: Any,
) -> U:
    """Fill the word table. First the runs of bytes of one class, without a branch; then tokens, from whole runs where
    one will do. Without the other columns (None; compiled apart) only `folded` of words is filled.

    Finding the end of each word by a loop costs a mispredicted branch a word: half the speed.
    """
    n = U(0)
    for d in range(len(bounds) - 1):
        offsets[d] = n
        text = data + U(bounds[d])
        size = U(bounds[d + 1]) - U(bounds[d])
        last, i, before = U(0), U(0), U(255)
        while i < size:
            now = load8(classes + load8(text + i))
            runs[last] = i
            last += U(now != before)
            before = now
            i += U(1)
        runs[last] = size
        r, done = U(0), U(0)  # bytes before `done` belong to tokens already
        while r < last:
            i, end = max(U(runs[r]), done), U(runs[r + U(1)])
            r += U(1)
            now = load8(classes + load8(text + i)) if i < end else _BLANK
            if now == _BLANK:
                continue
            after = load8(classes + load8(text + end)) if end < size else _BLANK
            if now == _LETTERS:
                whole = after <= _SIGNS
                if after == _JOINTS:  # one joint between letters may join: `_token` knows
                    beyond = load8(classes + load8(text + end + U(1))) if end + U(1) < size else _BLANK
                    whole = beyond != _LETTERS and beyond != _WIDE
            else:
                whole = now != _WIDE and after != _WIDE and end == i + U(1)
            if n + (end - i) > room:
                return room + U(1)
            if whole:
                if start is None:
                    if now == _LETTERS:
                        folded[n] = _hash_lower(text + i, end - i)
                        n += U(1)
                    continue
                start[n], stop[n], chars[n] = i, end, end - i
                if now == _LETTERS:
                    exact[n], folded[n], letter = _hash_ascii(text + i, end - i)
                    flags[n] = np.uint8(HAS_NON_PUNCTUATION | IS_WORD) | np.uint8(letter)
                else:
                    sign = signs + U(16) * load8(text + i)
                    exact[n] = folded[n] = load64(sign)
                    flags[n] = load8(sign + U(8))
                n += U(1)
                continue
            while i < end:
                width, length, hash_exact, hash_folded, found = _token(text + i, text + size, table)
                i += width
                if start is None:
                    folded[n] = hash_folded
                    n += U(found & U(IS_WORD) != U(0))
                    continue
                start[n], stop[n], chars[n] = i - width, i, length
                exact[n], folded[n], flags[n] = hash_exact, hash_folded, found
                n += U(length > U(0))
            done = i
    offsets[len(bounds) - 1] = n
    return n
