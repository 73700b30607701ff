"""Digest of a text as a reader takes it in: equal for texts that differ only in case, white space, punctuation, or in
how their characters are encoded (NFC, NFD, full width, ligatures).

The normalised text is the folded words of the plain form with one space between them. A text without words (only
symbols, or nothing) is that form as it stands, stripped.
"""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.compiled import kernel
from corpusmill.kernels.bytes.bytehash import U, address_of, load8
from corpusmill.kernels.bytes.unicode_table import FOLD_MASK, load_table
from corpusmill.kernels.bytes.utf8 import decode, utf8_byte, utf8_size
from corpusmill.kernels.words.plain_form import plain
from corpusmill.kernels.words.table import IS_WORD, WordTable, slices, text_buffers, word_table
from corpusmill.schema import DIGEST16

_FOLD, _WORD = U(FOLD_MASK), np.uint8(IS_WORD)


def text_digest(text: pa.LargeStringArray, words: WordTable | None = None) -> pa.FixedSizeBinaryArray:
    """First 16 bytes of the sha256 of each normalised text, one a document.

    Args:
        text: large_string[D] without nulls.
        words: the words of these texts, where they are known already and the texts are in plain form; then the batch
            is not cut into slices.

    Raises:
        ValueError: not a large_string array, or one with nulls.
    """
    if words is not None:
        return pa.array(_digests(text, words), DIGEST16)
    form, _ = plain(text)
    return pa.array([digest for _, part in slices(form) for digest in _digests(part, word_table(part))], DIGEST16)


def _digests(text: pa.LargeStringArray, words: WordTable) -> list[bytes]:
    normalised, ends = normalise(text, words)
    out, begin = [], 0
    for d, end in enumerate(ends.tolist()):
        content = normalised[begin:end].tobytes() if end > begin else text[d].as_py().strip().encode("utf-8")
        out.append(hashlib.sha256(content).digest()[:16])
        begin = end
    return out


def normalise(text: pa.LargeStringArray, words: WordTable | None = None) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Normalised UTF-8 bytes of all documents, one after the other, and where each ends, int64[D]."""
    data, bounds = text_buffers(text)
    table, words = load_table(), words if words is not None else word_table(text)
    # A fold is at most one byte longer than a character of two bytes or more; a space stands for a word's end.
    room = np.empty(2 * int(bounds[-1] - bounds[0]) + len(text) + 1, np.uint8)
    ends = np.empty(len(text), np.int64)
    size = int(
        _write(
            address_of(data),
            bounds,
            address_of(table),
            words.offsets,
            words.start,
            words.stop,
            words.flags,
            room,
            ends,
        )
    )
    return room[:size], ends


@kernel
def _write(
    data: U,
    bounds: NDArray[np.int64],
    table: U,
    offsets: NDArray[np.int64],
    start: NDArray[np.int32],
    stop: NDArray[np.int32],
    flags: NDArray[np.uint8],
    out: NDArray[np.uint8],
    ends: NDArray[np.int64],
) -> U:
    n = U(0)
    for d in range(len(ends)):
        text = data + U(bounds[d])
        begin = n
        for t in range(offsets[d], offsets[d + 1]):
            if flags[t] & _WORD == 0:
                continue
            if n > begin:
                out[n] = U(0x20)
                n += U(1)
            at, end = text + U(start[t]), text + U(stop[t])
            while at < end:
                byte = load8(at)
                if U(0x61) <= byte <= U(0x7A):  # a small ASCII letter: most bytes
                    out[n] = byte
                    n += U(1)
                    at += U(1)
                    continue
                _, entry, width = decode(at, end, table)
                fold = entry & _FOLD
                size = utf8_size(fold)
                k = U(0)
                while k < size:
                    out[n] = utf8_byte(fold, size, k)
                    n += U(1)
                    k += U(1)
                at += width
        ends[d] = n
    return n
