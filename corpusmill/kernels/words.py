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
    load8,
    load32,
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

SLICE_BYTES = 1 << 19
"""Kernels walk a batch in slices of about so many bytes of text, so that the word table stays in the processor's
cache."""

_SEPARATOR, _WORD, _SINGLE = np.uint64(Kind.SEPARATOR), np.uint64(Kind.WORD), np.uint64(Kind.SINGLE)
_MARK, _FORMAT = np.uint64(Kind.MARK), np.uint64(Kind.FORMAT)
_JOINER, _NUMERIC = np.uint64(Kind.JOINER), np.uint64(Kind.NUMERIC)
_FOLD, _SHIFT, _DIGIT = np.uint64(FOLD_MASK), np.uint64(KIND_SHIFT), np.uint64(DIGIT)
_ALPHA, _NON_PUNCTUATION = np.uint64(ALPHA), np.uint64(NON_PUNCTUATION)

# Classes of bytes: blank, symbol, ASCII letter or digit, ASCII that may join words, part of a longer character.
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
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.flags & IS_WORD > 0, dtype=np.int64)])
        return before[self.offsets[1:]] - before[self.offsets[:-1]]


def word_table(text: pa.Array) -> WordTable:
    """Tokens of every document of a batch.

    Args:
        text: large_string[D] without nulls; slices are read in place.

    Raises:
        ValueError: another type, or nulls.
    """
    data, bounds = text_buffers(text)
    room = int(bounds[-1] - bounds[0]) + 1  # a token has at least one byte; pages that stay empty cost nothing
    offsets = np.empty(len(bounds), np.int64)
    start, stop, chars = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32)
    folded, exact, flags = np.empty(room, np.uint64), np.empty(room, np.uint64), np.empty(room, np.uint8)
    runs = np.empty(int(np.diff(bounds).max(initial=0)) + 1, np.int32)
    table, classes = load_table(), _byte_classes()
    n = int(
        _scan(
            address_of(data),
            bounds,
            address_of(table),
            address_of(classes),
            runs,
            offsets,
            start,
            stop,
            chars,
            exact,
            folded,
            flags,
        )
    )
    return WordTable(offsets, start[:n], stop[:n], chars[:n], folded[:n], exact[:n], flags[:n])


def folded_words(text: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """The words alone, and of each only its folded hash: offsets int64[D + 1] and uint64 hashes, as `word_table` has
    them, in two thirds of the time.

    Raises:
        ValueError: another type than large_string, or nulls.
    """
    data, bounds = text_buffers(text)
    offsets, folded = np.empty(len(bounds), np.int64), np.empty(int(bounds[-1] - bounds[0]) + 1, np.uint64)
    runs = np.empty(int(np.diff(bounds).max(initial=0)) + 1, np.int32)
    table, classes = load_table(), _byte_classes()
    addresses = (address_of(data), bounds, address_of(table), address_of(classes))
    n = int(_scan(*addresses, runs, offsets, None, None, None, None, folded, None))
    return offsets, folded[:n]


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


def _frozen(array: NDArray) -> NDArray:
    view = array.view()
    view.flags.writeable = False  # one compiled version: Numba types read-only and writable arrays apart
    return view


@numba.njit(nogil=True, inline="always")
def _hash_ascii(at: U, size: U) -> tuple[U, U, bool]:
    """`hash_bytes` of an ASCII token, `hash_bytes` of its lower case, and whether it has a letter."""
    exact = folded = SEED ^ size
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


@numba.njit(nogil=True, cache=True)
def _token(at: U, end: U, table: U) -> tuple[U, U, U, U, U]:
    """Read one token of any kind: bytes, characters, exact hash, folded hash, flags. No characters: a separator, no
    token."""
    code, entry, width = decode(at, end, table)
    first = (entry >> _SHIFT) & U(7)
    i = at + width
    if first in (_SEPARATOR, _FORMAT):
        return width, U(0), U(0), U(0), U(0)
    bits, length, symbol, digit = entry, U(1), code, entry & _DIGIT
    plain = code < U(0x80)  # ASCII without apostrophes: the folded form is the lower case of the bytes
    in_word = first in (_WORD, _MARK)
    in_run = not in_word and first != _SINGLE
    while i < end:
        code, entry, width = decode(i, end, table)
        kind = (entry >> _SHIFT) & U(7)
        if kind == _WORD and in_word:
            digit = entry & _DIGIT
        elif kind in (_MARK, _FORMAT):
            in_run = False
        elif in_word and i + width < end and (kind == _JOINER or (kind == _NUMERIC and digit != U(0))):
            _, after, _ = decode(i + width, end, table)
            if (after >> _SHIFT) & U(7) != _WORD or (kind == _NUMERIC and after & _DIGIT == U(0)):
                break
        elif not (in_run and code == symbol):
            break
        plain = plain and code < U(0x80) and entry & _FOLD != U(0)
        bits |= entry
        length += U(1)
        i += width
    exact, folded, _ = _hash_ascii(at, i - at)
    flags = U(0)
    if in_word or first == _SINGLE:
        flags = U(IS_WORD)
        folded = folded if plain else _hash_folded(at, i, table)
    else:
        folded = exact
    flags |= U(HAS_LETTER) if bits & _ALPHA != U(0) else U(0)
    flags |= U(HAS_NON_PUNCTUATION) if bits & _NON_PUNCTUATION != U(0) else U(0)
    return i - at, length, exact, folded, flags


@numba.njit(nogil=True, cache=True)
def _scan(
    data: U,
    bounds: NDArray[np.int64],
    table: U,
    classes: U,
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
            if whole:
                if start is None:
                    if now == _LETTERS:
                        folded[n] = _hash_lower(text + i, end - i)
                        n += U(1)
                    continue
                start[n], stop[n], chars[n] = i, end, end - i
                exact[n], folded[n], letter = _hash_ascii(text + i, end - i)
                other = load32(table + U(4) * load8(text + i)) & _NON_PUNCTUATION != U(0)
                facts = np.uint8(HAS_NON_PUNCTUATION) if other else np.uint8(0)
                if now == _LETTERS:
                    facts |= np.uint8(IS_WORD) | np.uint8(letter)
                flags[n] = facts
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
