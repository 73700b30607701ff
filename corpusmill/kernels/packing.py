"""Packing documents into rows of fixed length: keyed shuffle, best-fit-decreasing, keyed order of the rows.

Method: best-fit-decreasing bin packing (Johnson 1974) as used for training sequences by Ding et al. 2024
(arXiv:2404.10830): no document that fits into a row is cut; one that is longer is cut at the row length and only there.
Everything is a function of lengths, ids and a seed: no random state.

Arrays: D documents, P pieces, R rows. A row holds `capacity` = seq_len + 1 tokens.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.compiled import kernel
from corpusmill.kernels.bytes.hashing import mix64
from corpusmill.kernels.gather import pieces_of
from corpusmill.schema import PACK_DOCS, PACK_ROWS

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Layout:
    """Which piece of which document lies where; rows in their final order, the pieces of a row in document order."""

    row_offsets: Ints
    """int64[R + 1]: pieces of row r are row_offsets[r] to row_offsets[r + 1]."""
    doc: Ints
    """int64[P]: document of a piece."""
    start: Ints
    """int64[P]: first token of the piece in its document."""
    length: Ints
    """int64[P]: tokens of the piece, 1 to capacity."""

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.row_offsets) - 1


@dataclass(frozen=True)
class PackedWindow:
    """One window, packed: token rows, their pieces, the two side tables and the sums for the manifest."""

    tokens: NDArray[np.unsignedinteger]
    """uint16 or uint32[R, seq_len + 1]; what is beyond the pieces of a row is `pad_id`."""
    rows: pa.Table
    """schema.PACK_ROWS, R rows."""
    pieces: NDArray[np.uint32]
    """uint32[R + P], as `gather.pieces_of` lays them out."""
    docs: pa.Table
    """schema.PACK_DOCS in shuffled order; documents without tokens are not in it."""
    stats: dict[str, int]
    """documents, empty_documents, split_documents, text_bytes, tokens, padding, sequences."""


def shuffle_key(seed: int, doc_id: bytes) -> int:
    """Position of a document in the keyed shuffle: 64 bits of blake2b over its id, keyed by the seed."""
    return int.from_bytes(hashlib.blake2b(doc_id, digest_size=8, key=_key(seed, "shuffle1")).digest(), "big")


def shuffle_order(seed: int, doc_ids: Sequence[bytes]) -> Ints:
    """Documents in shuffled order, int64[D] of positions in `doc_ids`; ties, if ever, by doc_id."""
    keyed = [(shuffle_key(seed, doc_id), doc_id, i) for i, doc_id in enumerate(doc_ids)]
    return np.array([i for _, _, i in sorted(keyed)], np.int64)


def window_of(locator: str, windows: int) -> int:
    """Window of a shard, 0 to windows - 1, by a hash of its locator.

    `windows` is a power of two, so that twice as many split each window in two and move nothing else.
    """
    if windows < 1 or windows & (windows - 1):
        raise ValueError(f"windows must be a power of two, got {windows}")
    digest = hashlib.blake2b(locator.encode("utf-8"), digest_size=8, person=b"window1").digest()
    return int.from_bytes(digest, "little") & (windows - 1)


def row_order(rows: int, seed: int, tweak: str = "") -> Ints:
    """A keyed permutation of `rows` rows, int64[R]: new position -> old row."""
    key = np.frombuffer(hashlib.blake2b(tweak.encode("utf-8"), digest_size=16, key=_key(seed, "rows1")).digest(), "<u8")
    return np.argsort(_row_keys(rows, key[0], key[1]), kind="stable").astype(np.int64)


def best_fit(lengths: Ints, capacity: int) -> Layout:
    """Pack documents, given in shuffled order, into rows: best-fit-decreasing.

    A document longer than `capacity` is cut into full rows and a rest; documents of length 0 get no piece. Among pieces
    of one length the earlier document goes first, among rows with equal room the one that got its room last.

    Args:
        lengths: int64[D] tokens per document, not negative.
        capacity: tokens of a row, at least 1.

    Returns:
        Rows in the order in which they were opened (longest piece first): apply `reorder` before storing.
    """
    lengths = np.ascontiguousarray(lengths, np.int64)
    pieces = -(-lengths // capacity)
    doc = np.repeat(np.arange(len(lengths)), pieces)
    part = np.arange(len(doc)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    start = part * capacity
    length = np.minimum(lengths[doc] - start, capacity)
    row, rows = _assign_rows(length, capacity)
    order = np.argsort(row, kind="stable")  # pieces lie in document order, so they do in every row
    row_offsets = np.zeros(rows + 1, np.int64)
    np.cumsum(np.bincount(row, minlength=rows), out=row_offsets[1:])
    return Layout(row_offsets, doc[order], start[order], length[order])


def reorder(layout: Layout, order: Ints) -> Layout:
    """The same rows, row order[r] at place r."""
    counts = np.diff(layout.row_offsets)[order]
    row_offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    pieces = np.repeat(layout.row_offsets[:-1][order] - row_offsets[:-1], counts) + np.arange(row_offsets[-1])
    return Layout(row_offsets, layout.doc[pieces], layout.start[pieces], layout.length[pieces])


def pack_window(
    doc_ids: Sequence[bytes],
    tokens: NDArray[np.unsignedinteger],
    offsets: Ints,
    text_bytes: Ints,
    urls: Sequence[str | None],
    *,
    seq_len: int,
    seed: int,
    pad_id: int,
    window: str = "",
) -> PackedWindow:
    """Shuffle, pack and lay out the documents of one window; the order in which they are given does not matter.

    Args:
        doc_ids: D ids of 16 bytes, unique.
        tokens: uint16 or uint32, all documents one after the other, each with its end-of-text token.
        offsets: int64[D + 1] into `tokens`; a document without tokens is counted as empty and gets no row.
        text_bytes: int64[D], bytes of the text that was tokenised.
        urls: D URLs or None.
        seq_len: tokens a sequence; a row has one more.
        seed: of the dataset.
        pad_id: fills what is left of a row (masked in training through doc_lens).
        window: name of the window (and partition), mixed into the order of the rows.
    """
    shuffled = shuffle_order(seed, doc_ids)
    all_lengths = np.diff(offsets)
    docs = shuffled[all_lengths[shuffled] > 0]
    lengths = all_lengths[docs]
    layout = best_fit(lengths, seq_len + 1)
    layout = reorder(layout, row_order(layout.rows, seed, window))
    packed = np.full((layout.rows, seq_len + 1), pad_id, tokens.dtype)
    _fill(packed, tokens, layout.row_offsets, offsets[docs][layout.doc] + layout.start, layout.length)
    docs_table = pa.Table.from_arrays(
        [
            pa.array([doc_ids[i] for i in docs], PACK_DOCS.field("doc_id").type),
            pa.array(lengths, pa.uint32()),
            pa.array(np.asarray(text_bytes, np.int64)[docs]),
            pa.array([urls[i] for i in docs], pa.string()),
        ],
        schema=PACK_DOCS,
    )
    rows_table = pa.Table.from_arrays(
        [_lists(layout.row_offsets, layout.length), _lists(layout.row_offsets, layout.doc)], schema=PACK_ROWS
    )
    token_count = int(lengths.sum())
    stats = {
        "documents": len(docs),
        "empty_documents": len(shuffled) - len(docs),
        "split_documents": int((lengths > seq_len + 1).sum()),
        "text_bytes": int(np.asarray(text_bytes, np.int64)[docs].sum()),
        "tokens": token_count,
        "padding": packed.size - token_count,
        "sequences": layout.rows,
    }
    return PackedWindow(packed, rows_table, pieces_of(layout.row_offsets[1:], layout.length), docs_table, stats)


def _key(seed: int, purpose: str) -> bytes:
    return hashlib.blake2b(f"{purpose}|{seed}".encode(), digest_size=32).digest()


def _lists(offsets: Ints, values: Ints) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(values.astype(np.uint32)))


@kernel
def _row_keys(rows: int, key_a: np.uint64, key_b: np.uint64) -> NDArray[np.uint64]:
    keys = np.empty(rows, np.uint64)  # distinct: each step is a bijection of 64 bits
    for i in range(rows):
        keys[i] = mix64(mix64(np.uint64(i) + key_a) ^ key_b)
    return keys


@kernel
def _assign_rows(length: Ints, capacity: int) -> tuple[Ints, int]:
    """Row of each piece and the number of rows: counting sort by length, then best fit.

    Rows with r tokens of room are a stack `top[r]` linked by `below`; a tree of flags over r finds the smallest room
    that fits in O(log capacity).
    """
    n = len(length)
    slots = np.zeros(capacity + 2, np.int64)
    for i in range(n):
        slots[capacity - length[i] + 1] += 1
    for r in range(capacity + 1):
        slots[r + 1] += slots[r]
    by_length = np.empty(n, np.int64)
    for i in range(n):
        by_length[slots[capacity - length[i]]] = i
        slots[capacity - length[i]] += 1

    leaves = 1
    while leaves < capacity + 1:
        leaves *= 2
    filled = np.zeros(2 * leaves, np.bool_)
    top = np.full(capacity + 1, -1, np.int64)
    below = np.empty(n, np.int64)
    row = np.empty(n, np.int64)
    rows = 0
    for j in range(n):
        piece = by_length[j]
        size = length[piece]
        node = leaves + size  # smallest filled leaf at or right of this one
        while node > 1 and not filled[node]:
            while node > 1 and node & 1:
                node >>= 1
            if node > 1:
                node += 1
        if node > 1:
            while node < leaves:
                node = 2 * node if filled[2 * node] else 2 * node + 1
            room = node - leaves
            chosen = top[room]
            top[room] = below[chosen]
            if top[room] < 0:
                filled[node] = False
                while node > 1:
                    node >>= 1
                    filled[node] = filled[2 * node] or filled[2 * node + 1]
        else:
            room, chosen = capacity, rows
            rows += 1
        row[piece] = chosen
        left = room - size
        if left > 0:
            below[chosen] = top[left]
            top[left] = chosen
            node = leaves + left
            while node > 0 and not filled[node]:
                filled[node] = True
                node >>= 1
    return row, rows


@kernel
def _fill(packed: NDArray, tokens: NDArray, row_offsets: Ints, source: Ints, length: Ints) -> None:
    for r in range(packed.shape[0]):
        at = 0
        for p in range(row_offsets[r], row_offsets[r + 1]):
            for k in range(length[p]):
                packed[r, at + k] = tokens[source[p] + k]
            at += length[p]
