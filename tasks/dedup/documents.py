"""Narrow columns of the documents that take part in deduplication, over all shards: some 40 bytes a document.

Arrays: N documents, in the order of shards and rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from corpusmill.canonical import sha256
from corpusmill.config import Deduplicate
from corpusmill.kernels.duplicates.keepers import rank_by
from corpusmill.store import Store
from tasks.shards import Shard, fixed_binary
from tasks.units import content_of

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Placed(Protocol):
    """Documents by shard and row, in that order."""

    @property
    def row(self) -> NDArray[np.int32]:
        """int32[N]: row in the shard."""

    def __len__(self) -> int:
        """N."""

    def bounds(self, shards: int) -> Ints:
        """int64[shards + 1]: where the documents of each shard begin."""


@dataclass(frozen=True)
class Alive:
    """Every document that no stage has ended yet."""

    shard: NDArray[np.int32]
    """int32[N]: number of the shard."""
    row: NDArray[np.int32]
    """int32[N]: row in the shard."""
    doc_id: NDArray[np.void]
    """V16[N]."""
    text_bytes: Ints
    words: NDArray[np.int32]
    rank: NDArray[np.uint32]
    """uint32[N]: place in the order of preference, 0 first."""

    def __len__(self) -> int:
        return len(self.row)

    def only(self, keep: Flags) -> Alive:
        """Those of them that `keep` marks; ranks have gaps then."""
        return Alive(*(getattr(self, f.name)[keep] for f in fields(self)))

    @property
    def place(self) -> Ints:
        """int64[N]: shard << 32 | row."""
        return self.shard.astype(np.int64) << 32 | self.row

    def bounds(self, shards: int) -> Ints:
        """int64[shards + 1]: where the documents of each shard begin."""
        return np.searchsorted(self.shard, np.arange(shards + 1))


def alive(shards: Sequence[Shard], config: Deduplicate, store: Store) -> Alive:
    """Read the columns, and rank by the recipe's preference."""
    shard_no, rows, doc_ids, sizes, words, dates = [], [], [], [], [], []
    scores: dict[str, list[pa.ChunkedArray]] = {group: [] for group in config.preferred_scores}
    for number, shard in enumerate(shards):
        stage = store.table(shard.decisions, columns=["stage"]).column("stage")
        here = np.flatnonzero(stage.is_null().to_numpy())
        docs = store.table(shard.documents.outputs["documents"], columns=["doc_id", "date"]).take(here)
        measured = store.table(shard.attribute("measures"), columns=["text_bytes", "word_total"]).take(here)
        shard_no.append(np.full(len(here), number, np.int32))
        rows.append(here.astype(np.int32))
        doc_ids.append(fixed_binary(docs.column("doc_id")))
        sizes.append(measured.column("text_bytes").to_numpy())
        words.append(measured.column("word_total").to_numpy().astype(np.int32))
        dates.append(docs.column("date").combine_chunks())
        for group, column in scores.items():  # of one column each
            column.append(store.table(shard.attribute(group)).column(0).take(here))
    ids, text_bytes = _joined(doc_ids, "V16"), _joined(sizes, np.int64)
    rank = rank_by(ids, [_preference(key, text_bytes, dates, scores) for key in config.prefer]).astype(np.uint32)
    return Alive(_joined(shard_no, np.int32), _joined(rows, np.int32), ids, text_bytes, _joined(words, np.int32), rank)


def scores_read(shards: Sequence[Shard], config: Deduplicate) -> tuple[str, ...]:
    """Content digests of the scores that the order of preference is made of: inputs of every unit that ranks."""
    return tuple(content_of(shard.groups[group], group) for group in config.preferred_scores for shard in shards)


def _preference(
    key: str, text_bytes: Ints, dates: Sequence[pa.Array], scores: Mapping[str, Sequence[pa.ChunkedArray]]
) -> Ints:
    """A column that is smaller for what is preferred; documents without a date, or a score, come last."""
    if key == "longest":
        return -text_bytes
    if key in scores:
        parts = [pc.fill_null(pc.negate(pc.cast(part, pa.int64())), 1).to_numpy() for part in scores[key]]
        return np.concatenate([np.zeros(0, np.int64), *parts])
    column = pa.chunked_array(dates or [pa.array([], pa.string())])
    column = pc.utf8_rtrim(column, characters="Z").dictionary_encode().unify_dictionaries()  # see readers/dates.py
    if not column.num_chunks:
        return np.zeros(0, np.int64)
    dictionary = column.chunk(0).dictionary
    place = np.zeros(len(dictionary) + 1, np.int64)
    place[pc.array_sort_indices(dictionary).to_numpy()] = np.arange(len(dictionary))
    place = place if key == "oldest" else -place
    place[-1] = len(dictionary)
    codes = [pc.fill_null(chunk.indices, len(dictionary)).to_numpy() for chunk in column.chunks]
    return place[np.concatenate(codes)]


def _joined(parts: list[NDArray], kind: Any) -> NDArray[Any]:
    """The parts as one array; the list is emptied, so that they are not held twice for long."""
    joined = np.concatenate([np.zeros(0, kind), *parts])
    parts.clear()
    return joined


def attribute(
    shards: Sequence[Shard], docs: Placed, read: Callable[[Shard, pa.Array], NDArray[Any]], kind: Any
) -> NDArray[Any]:
    """A column of the documents, read shard by shard: `read` gets a shard and the rows wanted, ascending."""
    parts = []
    for number, (begin, end) in enumerate(pairwise(docs.bounds(len(shards)).tolist())):
        if end > begin:
            parts.append(read(shards[number], pa.array(docs.row[begin:end])))
    return _joined(parts, kind)


def digests_column(column: str, store: Store) -> Callable[[Shard, pa.Array], NDArray[Any]]:
    """For `attribute`: a column of attribute group digests."""

    def read(shard: Shard, rows: pa.Array) -> NDArray[Any]:
        values = store.table(shard.attribute("digests"), columns=[column]).column(column).take(rows)
        return fixed_binary(values) if pa.types.is_fixed_size_binary(values.type) else values.to_numpy()

    return read


def salts(shards: Sequence[Shard], config: Deduplicate) -> NDArray[np.uint64]:
    """uint64 of each shard: documents are compared only with those whose salt is equal; 0 where all are."""
    if config.policy == "across":
        return np.zeros(len(shards), np.uint64)
    names = [f"{shard.source}/{shard.snapshot}".encode() for shard in shards]
    return np.array([int(sha256(name)[:16], 16) for name in names], np.uint64)
