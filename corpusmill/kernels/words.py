"""The word table: every token of a batch of texts with its span, hashes and flags, from one pass over the UTF-8 bytes.

One definition of a word serves all of it: measures, signatures, digests, the benchmark screen. A token is one of

* a **word**: a maximal run of letters, numbers and marks; an apostrophe, middle dot or underscore between two of them and a full
  stop or comma between two digits belong to it ("don't", "snake_case", "1,000.5" are one word; "well-known" is two and a symbol);
* a **word of one character** in scripts written without spaces: each ideograph, kana and Hangul syllable, and each letter of
  Thai, Lao, Khmer and Burmese, with the marks that follow it (UAX #29 without a dictionary);
* a **symbol**: a run of one and the same punctuation mark or symbol ("...", "---", but `),` is two).

Marks and invisible characters belong to the token they follow. Spaces, controls and U+200B separate. The folded form of a word is
lower case, without apostrophes and invisible characters; digits stay; nothing is normalised (NFC and NFD differ).

Numba's on-disk cache (`__pycache__`, or NUMBA_CACHE_DIR; safe to share between processes) looks at the time stamp of a kernel's
own file only: so kernels of other files take this table's arrays, and call no compiled function of this file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numba
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.kernels.hashing import mix64
from corpusmill.kernels.unicode_table import ALPHA, DIGIT, FOLD_MASK, KIND_SHIFT, LIMIT, NON_PUNCTUATION, Kind
from corpusmill.kernels.unicode_table import load_table, pack

HAS_LETTER, HAS_NON_PUNCTUATION, IS_WORD = 1, 2, 4
"""Bits of a token's flags: it has a letter; it has a character that datatrove does not list as punctuation; it is no symbol."""

SLICE_BYTES = 1 << 19
"""Kernels walk a batch in slices of about so many bytes of text, so that the word table stays in the processor's cache."""

_SEPARATOR, _WORD, _SINGLE = int(Kind.SEPARATOR), int(Kind.WORD), int(Kind.SINGLE)
_MARK, _FORMAT, _JOINER, _NUMERIC = int(Kind.MARK), int(Kind.FORMAT), int(Kind.JOINER), int(Kind.NUMERIC)
_IDEOGRAPH = pack(0, Kind.SINGLE, alpha=True)
_TAG = pack(0, Kind.FORMAT)
_OTHER = pack(0, Kind.SYMBOL)
_STRAY = 0xFFFD
_SEED = np.uint64(0x243F6A8885A308D3)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_U32 = np.uint64(0xFFFFFFFF)


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
    """Hash of the folded form: shingles, n-grams."""
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
    room = int(bounds[-1] - bounds[0])  # a token has at least one byte; pages that stay empty cost nothing
    offsets = np.empty(len(bounds), np.int64)
    start, stop, chars = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32)
    folded, exact, flags = np.empty(room, np.uint64), np.empty(room, np.uint64), np.empty(room, np.uint8)
    n = _scan(data, bounds, load_table(), offsets, start, stop, chars, folded, exact, flags)
    return WordTable(offsets, start[:n], stop[:n], chars[:n], folded[:n], exact[:n], flags[:n])


def text_buffers(text: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Bytes and offsets (int64[D + 1]) of a text column, zero copy; both read-only.

    Raises:
        ValueError: not a large_string array, or one with nulls.
    """
    if not isinstance(text, pa.LargeStringArray):
        raise ValueError(f"text must be a large_string array, got {getattr(text, 'type', type(text).__name__)}")
    if text.null_count:
        raise ValueError(f"text must have no nulls, got {text.null_count}")
    if len(text) == 0:
        return _frozen(np.zeros(0, np.uint8)), _frozen(np.zeros(1, np.int64))
    _, offsets, data = text.buffers()
    bounds = np.frombuffer(offsets, np.int64, len(text) + 1, text.offset * 8)
    return _frozen(np.frombuffer(data, np.uint8) if data else np.zeros(0, np.uint8)), _frozen(bounds)


def slices(text: pa.LargeStringArray) -> Iterator[tuple[int, pa.LargeStringArray]]:
    """Consecutive slices of about SLICE_BYTES (at least one document each), each with the number of its first document."""
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


@numba.njit(nogil=True, cache=True)
def _decode(data: NDArray[np.uint8], i: int, end: int, table: NDArray[np.uint32]) -> tuple[int, int, int]:
    """Code point, its packed entry and its length in bytes at data[i]; a cut sequence is U+FFFD of one byte."""
    b = np.int64(data[i])
    if b < 0x80:
        return b, np.int64(table[b]), 1
    width = 2 if b < 0xE0 else 3 if b < 0xF0 else 4
    if i + width > end or b < 0xC0:
        return _STRAY, np.int64(table[_STRAY]), 1
    if width == 2:
        code = (b & 0x1F) << 6 | (np.int64(data[i + 1]) & 0x3F)
    elif width == 3:
        code = (b & 0x0F) << 12 | (np.int64(data[i + 1]) & 0x3F) << 6 | (np.int64(data[i + 2]) & 0x3F)
    else:
        code = (
            (b & 0x07) << 18
            | (np.int64(data[i + 1]) & 0x3F) << 12
            | (np.int64(data[i + 2]) & 0x3F) << 6
            | (np.int64(data[i + 3]) & 0x3F)
        )
    if code < LIMIT:
        return code, np.int64(table[code]), width
    if code < 0x40000:
        return code, _IDEOGRAPH | code, width
    if 0xE0000 <= code < 0xE1000:
        return code, _TAG, width
    return code, _OTHER | code, width


@numba.njit(nogil=True, cache=True)
def _scan(
    data: NDArray[np.uint8],
    bounds: NDArray[np.int64],
    table: NDArray[np.uint32],
    offsets: NDArray[np.int64],
    start: NDArray[np.int32],
    stop: NDArray[np.int32],
    chars: NDArray[np.int32],
    folded: NDArray[np.uint64],
    exact: NDArray[np.uint64],
    flags: NDArray[np.uint8],
) -> int:
    n = 0
    for d in range(len(bounds) - 1):
        begin, end = bounds[d], bounds[d + 1]
        offsets[d] = n
        i = begin
        while i < end:
            code, entry, width = _decode(data, i, end, table)
            first = (entry >> KIND_SHIFT) & 7
            if first == _SEPARATOR or first == _FORMAT:
                i += width
                continue
            start[n] = i - begin
            bits = entry
            e = (_SEED ^ np.uint64(code)) * _MULTIPLIER
            f = (_SEED ^ np.uint64(entry & FOLD_MASK)) * _MULTIPLIER
            length = 1
            i += width
            digit = entry & DIGIT
            in_word = first == _WORD or first == _MARK
            in_run = not in_word and first != _SINGLE
            symbol = code
            while i < end:
                while in_word and i < end and data[i] < 0x80:  # the fast path: two thirds of the bytes of English text
                    entry = np.int64(table[data[i]])
                    if (entry >> KIND_SHIFT) & 7 != _WORD:
                        break
                    bits |= entry
                    e = (e ^ np.uint64(data[i])) * _MULTIPLIER
                    f = (f ^ np.uint64(entry & FOLD_MASK)) * _MULTIPLIER
                    length += 1
                    i += 1
                    digit = entry & DIGIT
                if i >= end:
                    break
                code, entry, width = _decode(data, i, end, table)
                kind = (entry >> KIND_SHIFT) & 7
                if kind == _WORD and in_word:
                    digit = entry & DIGIT
                elif kind == _MARK or kind == _FORMAT:
                    in_run = False
                elif in_word and i + width < end and (kind == _JOINER or (kind == _NUMERIC and digit != 0)):
                    _, after, _ = _decode(data, i + width, end, table)
                    if (after >> KIND_SHIFT) & 7 != _WORD or (kind == _NUMERIC and after & DIGIT == 0):
                        break
                elif not (in_run and code == symbol):
                    break
                bits |= entry
                e = (e ^ np.uint64(code)) * _MULTIPLIER
                if entry & FOLD_MASK:
                    f = (f ^ np.uint64(entry & FOLD_MASK)) * _MULTIPLIER
                length += 1
                i += width
            stop[n] = i - begin
            chars[n] = length
            exact[n] = mix64(e)
            folded[n] = mix64(f)
            word = IS_WORD if in_word or first == _SINGLE else 0
            letter = HAS_LETTER if bits & ALPHA else 0
            flags[n] = word | letter | (HAS_NON_PUNCTUATION if bits & NON_PUNCTUATION else 0)
            n += 1
    offsets[len(bounds) - 1] = n
    return n
