"""Batches out of packed shards: memory-mapped token rows, gathered in the order of a plan. No workers, no state.

A row holds seq_len + 1 tokens: the input is all but the last, the label all but the first. A label that would cross
into the next document, or lies in padding, does not count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from corpusmill.dataset import manifest
from corpusmill.errors import UsageError
from corpusmill.store import Store
from corpusmill.tokens.order import Ints, Plan, Rows
from corpusmill.tokens.shards import MappedShard, map_token_shard

IGNORED = -100
"""A label that does not count."""


NO_BATCHES = ""
"""The chain of batches before the first."""

AHEAD = 2048
"""Sequences whose places are found at once."""


@dataclass(frozen=True)
class Batch:
    """Sequences for the model.

    Args:
        rows: int64[n, seq_len + 1], as stored.
        labels: int64[n, seq_len], IGNORED where nothing is to be predicted.
        piece_row: int64[p], the row of each document piece, ascending.
        piece_length: int64[p], its tokens of input; padding is a piece at a row's end, so each row sums to seq_len.
    """

    rows: Ints
    labels: Ints
    piece_row: Ints
    piece_length: Ints

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def tokens(self) -> Ints:
        """The input, int64[n, seq_len]."""
        return self.rows[:, :-1]

    @property
    def counted(self) -> int:
        """Labels that count."""
        return int(np.count_nonzero(self.labels != IGNORED))

    @property
    def lengths(self) -> list[list[int]]:
        """The piece lengths of each row."""
        cuts = np.searchsorted(self.piece_row, np.arange(1, len(self)))
        return [part.tolist() for part in np.split(self.piece_length, cuts)]

    def part(self, start: int, stop: int) -> Batch:
        """The sequences start to stop."""
        first, last = np.searchsorted(self.piece_row, [start, stop])
        pieces, cut = slice(first, last), slice(start, stop)
        return Batch(self.rows[cut], self.labels[cut], self.piece_row[pieces] - start, self.piece_length[pieces])

    def digests(self) -> list[bytes]:
        """sha256 of each row as little-endian uint32."""
        return [hashlib.sha256(row.data).digest() for row in self.rows.astype("<u4")]


class Partition:
    """The sequences of one partition of a dataset, by row number."""

    def __init__(self, store: Store, entry: manifest.Partition) -> None:
        self.seq_len, self.sequences = entry.seq_len, entry.sequences
        self._shards = [_Shard(store, shard, entry.token_bytes, self.seq_len) for shard in entry.shards]
        self._ends = np.cumsum([shard.sequences for shard in entry.shards], dtype=np.int64)

    def batch(self, numbers: Ints) -> Batch:
        """The sequences with these row numbers int64[n], in that order."""
        return _assemble(list(self.found(numbers, np.arange(len(numbers)))))

    def found(self, numbers: Ints, places: Ints) -> Iterator[_Found]:
        """The sequences with these row numbers, for these places of a batch; some from each shard."""
        for shard, members, local in self._by_shard(numbers):
            offsets, lengths = shard.lists["doc_lens"]
            counts = offsets[local + 1] - offsets[local]
            before = np.cumsum(counts) - counts
            index = np.repeat(offsets[local] - before, counts) + np.arange(counts.sum())
            yield _Found(places[members], shard.tokens.rows(local), counts, lengths[index].astype(np.int64))

    def text_bytes(self, numbers: Ints) -> float:
        """Bytes of text in rows: of each document the share that its tokens in a row are of all its tokens."""
        return sum(float(shard.text_bytes(local).sum()) for shard, _, local in self._by_shard(numbers))

    def _by_shard(self, numbers: Ints) -> Iterator[tuple[_Shard, Ints, Ints]]:
        """For each shard with some of the rows: the shard, their places in `numbers`, their numbers in the shard."""
        owner = np.searchsorted(self._ends, numbers, side="right")
        for s in np.unique(owner).tolist():
            members = np.flatnonzero(owner == s)
            first = self._ends[s - 1] if s else 0
            yield self._shards[s], members, numbers[members] - first


@dataclass(frozen=True)
class _Found:
    """Stored sequences on their way into a batch.

    Args:
        places: int64[n], where in the batch they go.
        rows: int64[n, seq_len + 1].
        pieces: int64[n], how many document pieces each has.
        lengths: int64[p], the stored tokens of each piece, row after row.
    """

    places: Ints
    rows: Ints
    pieces: Ints
    lengths: Ints


class _Shard:
    """One shard; its files are verified and opened when a row of it is first read."""

    def __init__(self, store: Store, entry: manifest.PackedShard, token_bytes: int, seq_len: int) -> None:
        self._store, self._entry, self._token_bytes, self._seq_len = store, entry, token_bytes, seq_len

    @cached_property
    def tokens(self) -> MappedShard:
        """The rows, mapped."""
        path = self._store.local_path(self._entry.tokens)
        return map_token_shard(path, self._entry.payload, self._token_bytes, self._seq_len)

    @cached_property
    def lists(self) -> dict[str, tuple[Ints, Ints]]:
        """Offsets and values of the two list columns of the side table."""
        table = self._store.table(self._entry.rows, ["doc_lens", "doc_refs"])
        columns = {name: table[name].combine_chunks() for name in table.column_names}
        return {name: (c.offsets.to_numpy(), c.values.to_numpy()) for name, c in columns.items()}

    def text_bytes(self, local: Ints) -> npt.NDArray[np.float64]:
        """Bytes of text in each row, float64[n]."""
        offsets, _ = self.lists["doc_lens"]
        total: npt.NDArray[np.float64] = self._bytes_before[offsets[local + 1]] - self._bytes_before[offsets[local]]
        return total

    @cached_property
    def _bytes_before(self) -> npt.NDArray[np.float64]:
        """Bytes of text before each piece of the shard, float64[pieces + 1]."""
        docs = self._store.table(self._entry.docs, ["tokens", "text_bytes"])
        rate = docs["text_bytes"].to_numpy() / docs["tokens"].to_numpy()
        return np.concatenate([[0.0], np.cumsum(self.lists["doc_lens"][1] * rate[self.lists["doc_refs"][1]])])


class Loader:
    """The batches of a plan over a dataset."""

    def __init__(self, store: Store, dataset: manifest.Manifest, plan: Plan) -> None:
        self._plan = plan
        self._ahead: tuple[tuple[int, int, int], Rows] | None = None
        self._partitions = [Partition(store, dataset.partitions[name]) for name in plan.partitions]
        if len({p.seq_len for p in self._partitions}) > 1:
            shown = {name: p.seq_len for name, p in zip(plan.partitions, self._partitions, strict=True)}
            raise UsageError("partitions of different sequence lengths cannot share a batch", f"seq_len: {shown}")

    @property
    def seq_len(self) -> int:
        """Tokens a sequence."""
        return self._partitions[0].seq_len

    def batch(self, step: int, rank: int = 0, world_size: int = 1) -> Batch:
        """The share of one rank in the global batch of a step."""
        partition, row = self._located(step, rank, world_size)
        found: list[_Found] = []
        for k in np.unique(partition).tolist():
            places = np.flatnonzero(partition == k)
            found += self._partitions[k].found(row[places], places)
        return _assemble(found)

    def _located(self, step: int, rank: int, world_size: int) -> tuple[Ints, Ints]:
        """Partition and row of each sequence of a batch; found for many steps at once, and kept."""
        share = self._plan.global_batch // world_size
        several = max(1, AHEAD // share)
        first = step - step % several
        if self._ahead is None or self._ahead[0] != (first, rank, world_size):
            steps = min(several, self._plan.steps - first)
            self._ahead = (first, rank, world_size), self._plan.rows(first, rank, world_size, steps)
        cut = slice((step - first) * share, (step - first + 1) * share)
        return self._ahead[1].partition[cut], self._ahead[1].row[cut]


def _assemble(found: Sequence[_Found]) -> Batch:
    """A batch of stored sequences, which come in any order of their places."""
    rows, row, length = _in_place(found)
    seq_len = rows.shape[1] - 1
    first = np.searchsorted(row, np.arange(len(rows)))  # every row has a piece
    sums = np.cumsum(length)
    end = sums - (sums - length)[first][row]  # of a piece in its row
    begin = end - length
    labels = rows[:, 1:].copy()
    inside = end <= seq_len
    labels[row[inside], end[inside] - 1] = IGNORED  # the next token belongs to another document, or to padding
    total = np.minimum(np.maximum.reduceat(end, first), seq_len)
    padded = np.flatnonzero(total < seq_len)
    for r in padded.tolist():
        labels[r, total[r] :] = IGNORED
    some = begin < seq_len  # a last piece of one token is label only
    row, length = row[some], np.minimum(end, seq_len)[some] - begin[some]
    if not len(padded):
        return Batch(rows, labels, row, length)
    row, length = np.append(row, padded), np.append(length, seq_len - total[padded])
    order = np.argsort(row, kind="stable")
    return Batch(rows, labels, row[order], length[order])


def _in_place(found: Sequence[_Found]) -> tuple[Ints, Ints, Ints]:
    """The rows of a batch, and row and stored length of each document piece, in order."""
    row = np.concatenate([np.repeat(part.places, part.pieces) for part in found])
    length = np.concatenate([part.lengths for part in found])
    if len(found) == 1:
        return found[0].rows, row, length
    rows = np.empty((sum(len(part.rows) for part in found), found[0].rows.shape[1]), np.int64)
    for part in found:
        rows[part.places] = part.rows
    order = np.argsort(row, kind="stable")
    return rows, row[order], length[order]


def batch_digest(rows: Sequence[bytes]) -> str:
    """Identity of a global batch: sha256 over the digests of its rows, in order."""
    return hashlib.sha256(b"".join(rows)).hexdigest()


def chained(chain: str, batch: str) -> str:
    """Identity of all batches so far: sha256 over the former chain and the next batch's digest."""
    return hashlib.sha256(f"{chain}{batch}".encode()).hexdigest()
