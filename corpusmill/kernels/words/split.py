"""Words as `str.split` gives them, for the definitions that count those: as they stand, or normalised.

Normalised as RedPajama does it: lower case, ASCII punctuation out, what is empty then left out; accents stay (there
they are decomposed, so that an accented letter counts as two characters).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.compiled import inner, kernel
from corpusmill.kernels.bytes.blanks import next_blank, strip_left
from corpusmill.kernels.bytes.bytehash import SEED, U, absorb, address_of, hash_bytes, load_chunk, lower_ascii
from corpusmill.kernels.bytes.hashing import mix64
from corpusmill.kernels.bytes.unicode_table import ALPHA, FOLD_MASK, KIND_SHIFT, Kind, load_table
from corpusmill.kernels.bytes.utf8 import decode, utf8_byte, utf8_size
from corpusmill.kernels.words.table import WordTable, text_buffers

SPLIT_LETTER, SPLIT_SYMBOL, SPLIT_BEGINS_ALNUM = 1, 2, 4
"""Bits of a word's flags: it has a letter; it has "#" or "…"; its first character is a letter or number."""

_FOLD, _ALPHA, _SHIFT = U(FOLD_MASK), U(ALPHA), U(KIND_SHIFT)
_WORD, _SINGLE = U(Kind.WORD), U(Kind.SINGLE)
_HASH, _ELLIPSIS = U(ord("#")), U(ord("…"))
_HIGH = U(0x8080808080808080)


def split_table(text: pa.LargeStringArray) -> WordTable:
    """Words of each document as they stand; `exact` hashes them, `folded` too but for ASCII words of at most eight
    letters, which it hashes in lower case; flags are SPLIT_LETTER and the others here."""
    return _table(text, normal=False)


def normal_table(text: pa.LargeStringArray) -> WordTable:
    """Normalised words of each document, with their characters and hashes; no flags."""
    return _table(text, normal=True)


def _table(text: pa.LargeStringArray, normal: bool) -> WordTable:
    data, bounds = text_buffers(text)
    room = int(bounds[-1] - bounds[0]) // 2 + len(text) + 1  # a word and a blank have two bytes
    offsets = np.empty(len(bounds), np.int64)
    start, stop, chars = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32)
    folded, exact, flags = np.empty(room, np.uint64), np.empty(room, np.uint64), np.empty(room, np.uint8)
    table = load_table()
    split = _normalise if normal else _split
    n = int(split(address_of(data), bounds, address_of(table), offsets, start, stop, chars, exact, folded, flags))
    return WordTable(offsets, start[:n], stop[:n], chars[:n], folded[:n], exact[:n], flags[:n])


@kernel
def _split(
    data: U,
    bounds: NDArray[np.int64],
    table: U,
    offsets: NDArray[np.int64],
    start: NDArray[np.int32],
    stop: NDArray[np.int32],
    chars: NDArray[np.int32],
    exact: NDArray[np.uint64],
    folded: NDArray[np.uint64],
    flags: NDArray[np.uint8],
) -> int:
    n = 0
    for d in range(len(bounds) - 1):
        offsets[d] = n
        text, end = data + U(bounds[d]), data + U(bounds[d + 1])
        at = strip_left(text, end)
        while at < end:
            after = next_blank(at, end)
            length, facts, i = 0, U(0), at
            while i < after:
                code, entry, width = decode(i, after, table)
                kind = (entry >> _SHIFT) & U(7)
                if i == at and (entry & _ALPHA != U(0) or kind in (_WORD, _SINGLE)):
                    facts |= U(SPLIT_BEGINS_ALNUM)
                facts |= U(SPLIT_LETTER) * U(entry & _ALPHA != U(0))
                facts |= U(SPLIT_SYMBOL) * U(code in (_HASH, _ELLIPSIS))
                length += 1
                i += width
            size = after - at
            start[n], stop[n], chars[n], flags[n] = at - text, after - text, length, facts
            exact[n] = folded[n] = hash_bytes(at, size)
            if size <= U(8):
                chunk = load_chunk(at, size)
                if chunk & _HIGH == U(0):
                    folded[n] = mix64(absorb(SEED ^ size, lower_ascii(chunk)))
            n += 1
            at = strip_left(after, end)
    offsets[len(bounds) - 1] = n
    return n


@inner
def _is_ascii_punctuation(code: U) -> Any:
    return (
        U(0x21) <= code <= U(0x2F)
        or U(0x3A) <= code <= U(0x40)
        or U(0x5B) <= code <= U(0x60)
        or U(0x7B) <= code <= U(0x7E)
    )


@kernel
def _normalise(
    data: U,
    bounds: NDArray[np.int64],
    table: U,
    offsets: NDArray[np.int64],
    start: NDArray[np.int32],
    stop: NDArray[np.int32],
    chars: NDArray[np.int32],
    exact: NDArray[np.uint64],
    folded: NDArray[np.uint64],
    flags: NDArray[np.uint8],
) -> int:
    n = 0
    for d in range(len(bounds) - 1):
        offsets[d] = n
        text, end = data + U(bounds[d]), data + U(bounds[d + 1])
        at = strip_left(text, end)
        while at < end:
            after = next_blank(at, end)
            length, h, chunk, filled, i = 0, SEED, U(0), U(0), at
            while i < after:
                code, entry, width = decode(i, after, table)
                i += width
                if _is_ascii_punctuation(code):
                    continue
                small = entry & _FOLD if entry & _FOLD != U(0) else code
                length += 1
                size, k = utf8_size(small), U(0)
                while k < size:
                    chunk |= utf8_byte(small, size, k) << (U(8) * filled)
                    filled += U(1)
                    if filled == U(8):
                        h, chunk, filled = absorb(h, chunk), U(0), U(0)
                    k += U(1)
            if length:
                start[n], stop[n], chars[n], flags[n] = at - text, after - text, length, 0
                exact[n] = folded[n] = mix64(absorb(absorb(h, chunk), U(length)))
                n += 1
            at = strip_left(after, end)
    offsets[len(bounds) - 1] = n
    return n
