"""Passages that documents of a corpus share: lines, paragraphs, and windows of a fixed number of words.

A passage that covers every repeated window of n words covers every repeated run of n words or more: a run is repeated
where all its windows are, and each of its words lies in one. So counting window hashes finds what a suffix array of the
whole corpus would (Lee et al. 2021, "exact substring"), and, as hashes can be dealt out by ranges, without holding it.

Passages are compared in the plain form of their text (plain_form.py), as exact and near duplicates are; places are
those of the text as it is stored.

Arrays: D documents; an item is a place in a document with the hash of what stands there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.compiled import kernel
from corpusmill.kernels.bytes.bytehash import U
from corpusmill.kernels.bytes.hashing import mix64
from corpusmill.kernels.words.plain_form import plain
from corpusmill.kernels.words.table import IS_WORD, text_buffers, word_table

Ints = NDArray[np.int64]

_BASE = U(0x9E3779B97F4A7C15)
_WORD = np.uint8(IS_WORD)


class Items(NamedTuple):
    """Items in text order; those of document d are offsets[d] to offsets[d + 1]."""

    offsets: Ints
    hashes: NDArray[np.uint64]
    start: NDArray[np.int32]
    """First byte of each, counted from the start of its document."""
    end: NDArray[np.int32]
    """Byte after its last; of a line or paragraph with the line feeds after it."""


def lines(text: pa.LargeStringArray, feeds: int) -> Items:
    """Lines (ending with a line feed; `feeds` 1) or paragraphs (with two or more; `feeds` 2) that have a word.

    Equal are those with the same words: case, punctuation and white space make no difference.
    """
    form, changed = plain(text)
    data, bounds = text_buffers(form)
    table = word_table(form)
    room = len(table.start)
    hashes, start, end = np.empty(room, np.uint64), np.empty(room, np.int32), np.empty(room, np.int32)
    offsets = np.zeros(len(text) + 1, np.int64)
    n = _lines(data, bounds, feeds, table.offsets, table.start, table.folded, table.flags, offsets, hashes, start, end)
    changed.places(offsets, start, end)
    return Items(offsets, hashes[:n], start[:n], end[:n])


def windows(text: pa.LargeStringArray, words: int) -> Items:
    """Every run of `words` consecutive words, as they stand: case counts, punctuation and white space do not."""
    form, changed = plain(text)
    table = word_table(form)
    counts = np.maximum(table.word_counts() - (words - 1), 0)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    hashes = np.empty(offsets[-1], np.uint64)
    start, end = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.int32)
    _windows(table.offsets, table.start, table.stop, table.exact, table.flags, words, offsets, hashes, start, end)
    changed.places(offsets, start, end)
    return Items(offsets, hashes, start, end)


class Repeated(NamedTuple):
    """What `repeated` found among M items."""

    cut: NDArray[np.bool_]
    """bool[M]: occurrences that go."""
    group: Ints
    """int64[G]: first item of each hash that occurs in enough documents: the occurrence that stays."""
    documents: Ints
    """int64[G]: documents that hold it."""


def repeated(
    hashes: NDArray[np.uint64], rank: NDArray[np.uint32], start: NDArray[np.int32], *, least: int, once: bool
) -> Repeated:
    """Which occurrences go, of all items of a range of hashes.

    A passage stays in the document that comes first in rank.

    Args:
        rank: the document of each item, by preference.
        least: documents that must hold it (with `once`: occurrences).
        once: whether it stays once only, also within that document.
    """
    order = np.lexsort((start, rank, hashes))
    cut = np.zeros(len(hashes), np.bool_)
    groups, documents = _repeated(hashes[order], rank[order], least, once, cut)
    back = np.empty(len(order), np.bool_)
    back[order] = cut
    return Repeated(back, order[groups], documents)


@kernel
def _repeated(
    hashes: NDArray[np.uint64], rank: NDArray[np.uint32], least: int, once: bool, cut: NDArray[np.bool_]
) -> tuple[Ints, Ints]:
    groups, documents, found = np.empty(len(hashes), np.int64), np.empty(len(hashes), np.int64), 0
    begin = 0
    for i in range(1, len(hashes) + 1):
        if i < len(hashes) and hashes[i] == hashes[begin]:
            continue
        different = 1
        for j in range(begin + 1, i):
            different += rank[j] != rank[j - 1]
        if (i - begin if once else different) >= least:
            groups[found], documents[found] = begin, different
            found += 1
            for j in range(begin + 1, i):
                cut[j] = once or rank[j] != rank[begin]
        begin = i
    return groups[:found].copy(), documents[:found].copy()


def unite(row: Ints, start: Ints, end: Ints, rows: int) -> tuple[Ints, Ints, Ints]:
    """Spans of each row with those that overlap or touch made one: (offsets int64[rows + 1], start, end)."""
    order = np.lexsort((start, row))
    offsets = np.zeros(rows + 1, np.int64)
    first, last = np.empty(len(row), np.int64), np.empty(len(row), np.int64)
    n = _unite(row[order], start[order], end[order], offsets, first, last)
    return np.cumsum(offsets), first[:n], last[:n]


@kernel
def _unite(row: Ints, start: Ints, end: Ints, offsets: Ints, first: Ints, last: Ints) -> int:
    n = 0
    for i in range(len(row)):
        if i and row[i] == row[i - 1] and start[i] <= last[n - 1]:
            last[n - 1] = max(last[n - 1], end[i])
        else:
            first[n], last[n] = start[i], end[i]
            offsets[row[i] + 1] += 1
            n += 1
    return n


@kernel
def _lines(
    data: NDArray[np.uint8],
    bounds: Ints,
    feeds: int,
    tokens: Ints,
    token_start: NDArray[np.int32],
    folded: NDArray[np.uint64],
    flags: NDArray[np.uint8],
    offsets: Ints,
    hashes: NDArray[np.uint64],
    start: NDArray[np.int32],
    end: NDArray[np.int32],
) -> int:
    n = 0
    for d in range(len(bounds) - 1):
        first, size = bounds[d], bounds[d + 1] - bounds[d]
        t, at = tokens[d], 0
        while at < size:
            begin = at
            while at < size:  # to the byte after the line feeds that end it
                if data[first + at] != 0x0A:
                    at += 1
                    continue
                run = at
                while run < size and data[first + run] == 0x0A:
                    run += 1
                enough = run - at >= feeds
                at = run
                if enough:
                    break
            state, words = U(0), 0
            while t < tokens[d + 1] and token_start[t] < at:
                if flags[t] & _WORD:
                    state = state * _BASE + folded[t]
                    words += 1
                t += 1
            if words:
                hashes[n] = mix64(state ^ U(words))
                start[n], end[n] = begin, at
                n += 1
        offsets[d + 1] = n
    return n


@kernel
def _windows(
    tokens: Ints,
    token_start: NDArray[np.int32],
    token_stop: NDArray[np.int32],
    exact: NDArray[np.uint64],
    flags: NDArray[np.uint8],
    size: int,
    offsets: Ints,
    hashes: NDArray[np.uint64],
    start: NDArray[np.int32],
    end: NDArray[np.int32],
) -> None:
    power = U(1)
    for _ in range(size):
        power *= _BASE
    for d in range(len(tokens) - 1):
        most = tokens[d + 1] - tokens[d]
        prefix, where = np.zeros(most + 1, np.uint64), np.empty(most, np.int64)
        words, out = 0, offsets[d]
        for t in range(tokens[d], tokens[d + 1]):
            if flags[t] & _WORD == 0:
                continue
            prefix[words + 1] = prefix[words] * _BASE + exact[t]
            where[words] = t
            words += 1
            if words >= size:
                hashes[out] = mix64(prefix[words] - prefix[words - size] * power)
                start[out], end[out] = token_start[where[words - size]], token_stop[t]
                out += 1
