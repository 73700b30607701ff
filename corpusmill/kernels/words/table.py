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
differ: what compares texts takes words of their plain form, plain_form.py).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.compiled import kernel
from corpusmill.kernels.bytes.bytehash import U, address_of
from corpusmill.kernels.bytes.bytemasks import bit_count, block, in_span
from corpusmill.kernels.bytes.unicode_table import load_table
from corpusmill.kernels.words.scan import HAS_LETTER as HAS_LETTER
from corpusmill.kernels.words.scan import HAS_NON_PUNCTUATION as HAS_NON_PUNCTUATION
from corpusmill.kernels.words.scan import IS_WORD as IS_WORD
from corpusmill.kernels.words.scan import byte_classes, scan, signs

MAX_TEXT_BYTES = 2**31 - 1
"""Places in a document are int32."""

SLICE_BYTES = 1 << 20
"""Kernels walk a batch in slices of about this many bytes of text: the word table stays in the processor's last cache,
and what each slice costs besides its bytes is little."""

_LEAST_KEPT, _MOST_KEPT = 1 << 22, 1 << 26
"""Bytes of a `Scratch`. From the least on NumPy asks Linux for large pages: far fewer faults than small ones."""

_NOT_WORD = U(0xFF - IS_WORD)


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
        _count_words(self.offsets, address_of(self.flags), counts)
        return counts


class Scratch(threading.local):
    """Memory for word tables that each thread keeps for its next one, so that its pages need not be made again: a
    thread's table goes when its next one comes."""

    def __init__(self) -> None:
        self._block = np.empty(0, np.uint8)

    def block(self, size: int) -> NDArray[np.uint8]:
        """`size` bytes, whatever they hold."""
        if size > _MOST_KEPT:
            return np.empty(size, np.uint8)
        if size > len(self._block):
            self._block = np.empty(max(size, _LEAST_KEPT), np.uint8)
        return self._block[:size]


def word_table(text: pa.Array, scratch: Scratch | None = None) -> WordTable:
    """Tokens of every document of a batch.

    Args:
        text: large_string[D] without nulls; slices are read in place.
        scratch: where to put the columns but `offsets`, in place of new memory.

    Raises:
        ValueError: another type, or nulls.
    """
    data, bounds = text_buffers(text)
    offsets = np.empty(len(bounds), np.int64)
    text_bytes = int(bounds[-1] - bounds[0])
    addresses = (address_of(data), bounds, address_of(load_table()), address_of(byte_classes()), address_of(signs()))
    runs = np.empty((2, int(np.diff(bounds).max(initial=0)) + 1), np.int32)
    places = (address_of(runs[0]), address_of(runs[1]))
    for most in (text_bytes // 2 + 1, text_bytes + 1):  # few texts have a token every two bytes, none one a byte
        start, stop, chars, folded, exact, flags = _columns(most, scratch)
        n = int(scan(*addresses, U(most), *places, offsets, start, stop, chars, exact, folded, flags))
        if n <= most:
            break
    return WordTable(offsets, start[:n], stop[:n], chars[:n], folded[:n], exact[:n], flags[:n])


def _columns(most: int, scratch: Scratch | None) -> tuple[NDArray, ...]:
    """The columns of a table of a number of tokens, in one block: blocks of one size are reused without new pages."""
    block = scratch.block(most * 29) if scratch else np.empty(most * 29, np.uint8)
    wide = block[: most * 16].view(np.uint64)
    narrow = block[most * 16 : most * 28].view(np.int32)
    return (
        *(narrow[most * i : most * (i + 1)] for i in range(3)),
        wide[:most],
        wide[most:],
        block[most * 28 :],
    )


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


@kernel
def _count_words(offsets: NDArray[np.int64], flags: U, counts: NDArray[np.int64]) -> None:
    for d in range(len(counts)):
        at, end, count = flags + U(offsets[d]), flags + U(offsets[d + 1]), U(0)
        while at < end:
            place, shift, keep = block(at, end)
            count += bit_count((in_span(place, _NOT_WORD, U(0xFF), U(1)) >> shift) & keep)
            at += U(64)
        counts[d] = count


def _frozen(array: NDArray) -> NDArray:
    view = array.view()
    view.flags.writeable = False  # one compiled version: Numba types read-only and writable arrays apart
    return view
