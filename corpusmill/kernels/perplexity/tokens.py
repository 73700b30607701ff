"""What a word is to the language model: tokens of lines, as hashes, the same at training and at scoring.

A sentence is a line with at least one token. Tokens are those of the word table (`words`): words folded (lower case),
symbols as they stand; a word without a letter is a number, and all numbers are the one word "0" (CCNet does so with
digits, Wenzek et al. 2020). "<s>" and "</s>" cannot come from text, where each would be three tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.compiled import kernel
from corpusmill.kernels.bytes.bytehash import U, address_of, load8
from corpusmill.kernels.screen.screen import fold
from corpusmill.kernels.words.table import HAS_LETTER, IS_WORD, WordTable, slices, text_buffers, word_table

BEGIN, END, NUMBER = U(0x946815DBCE43545B), U(0xBDF3498105AAA670), U(0x12973AF850552EE9)
"""Hashes (`bytehash.hash_bytes`) of "<s>", "</s>" and "0"."""
BEGIN_TEXT, END_TEXT, UNKNOWN_TEXT, NUMBER_TEXT = "<s>", "</s>", "<unk>", "0"

_KIND, _NUMBER_KIND = np.uint8(IS_WORD | HAS_LETTER), np.uint8(IS_WORD)
_NEWLINE = U(0x0A)


@dataclass(frozen=True)
class Sentences:
    """Hashed sentences, one behind the other, each from BEGIN to END."""

    hashes: NDArray[np.uint64]
    token: NDArray[np.int64]
    """For each hash its token in the word table; -1 for BEGIN and END."""
    offsets: NDArray[np.int64]
    """int64[n + 1]: where the sentences of each document begin."""


def sentences(text: pa.Array, table: WordTable) -> Sentences:
    """Sentences of all documents of a batch.

    Args:
        text: large_string[n] without nulls, of which `table` is the word table.
    """
    data, bounds = text_buffers(text)
    room = 3 * len(table.folded)  # a line has a token at least, besides BEGIN and END
    hashes, token, begins = np.empty(room, np.uint64), np.empty(room, np.int64), np.empty(len(bounds), np.int64)
    kinds = (table.start, table.stop, table.folded, table.flags)
    n = _sentences(address_of(data), bounds, table.offsets, *kinds, hashes, token, begins)
    return Sentences(hashes[:n], token[:n], begins)


def words_of(text: pa.Array, table: WordTable, tokens: NDArray[np.int64]) -> list[str]:
    """Tokens of the word table as the language model spells them."""
    data, bounds = text_buffers(text)
    document = np.searchsorted(table.offsets, tokens, side="right") - 1
    starts = (bounds[document] + table.start[tokens]).tolist()
    stops = (bounds[document] + table.stop[tokens]).tolist()
    out = []
    for start, stop, flags in zip(starts, stops, table.flags[tokens].tolist(), strict=True):
        raw = data[start:stop].tobytes().decode("utf-8")
        out.append(NUMBER_TEXT if flags & _KIND == IS_WORD else fold(raw) if flags & IS_WORD else raw)
    return out


def spelled(text: pa.Array) -> list[list[str]]:
    """The sentences of a batch as words, for other tools (ARPA files, KenLM, lmplz)."""
    lines: list[list[str]] = []
    for _, part in slices(text):
        table = word_table(part)
        found = sentences(part, table)
        is_word = found.token >= 0
        words = iter(words_of(part, table, found.token[is_word]))
        for begins, inside in zip((found.hashes == BEGIN).tolist(), is_word.tolist(), strict=True):
            if inside:
                lines[-1].append(next(words))
            elif begins:
                lines.append([])
    return lines


@kernel
def _sentences(
    data: U,
    bounds: NDArray[np.int64],
    offsets: NDArray[np.int64],
    start: NDArray[np.int32],
    stop: NDArray[np.int32],
    folded: NDArray[np.uint64],
    flags: NDArray[np.uint8],
    hashes: NDArray[np.uint64],
    token: NDArray[np.int64],
    begins: NDArray[np.int64],
) -> int:
    n = 0
    for d in range(len(offsets) - 1):
        begins[d] = n
        text = data + U(bounds[d])
        at, inside = U(0), False
        for t in range(offsets[d], offsets[d + 1]):
            while inside and at < U(start[t]):  # a newline between two tokens
                inside = load8(text + at) != _NEWLINE
                at += U(1)
                if not inside:
                    hashes[n], token[n] = END, -1
                    n += 1
            if not inside:
                hashes[n], token[n] = BEGIN, -1
                n += 1
                inside = True
            hashes[n] = NUMBER if flags[t] & _KIND == _NUMBER_KIND else folded[t]
            token[n] = t
            n += 1
            at = U(stop[t])
        if inside:
            hashes[n], token[n] = END, -1
            n += 1
    begins[len(offsets) - 1] = n
    return n
