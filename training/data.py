"""Batches out of packed shards: memory-mapped token rows, gathered in the order of a plan. No processes, no state.

A row holds seq_len + 1 tokens: the input is all but the last, the label all but the first. A label that would cross
into the next document, or lies in padding, does not count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from corpusmill.dataset import manifest
from corpusmill.errors import UsageError
from corpusmill.kernels.gather import IGNORED
from corpusmill.store import Store
from corpusmill.tokens.mapped import NOWHERE, Places, assemble
from corpusmill.tokens.opened import lists_of, mapped_rows, places_of
from corpusmill.tokens.order import Ints, Plan, Stage

NO_BATCHES = ""
"""The chain of batches before the first."""

AHEAD = 2048
"""Sequences whose places are found at once, while those before are read."""


@dataclass(frozen=True)
class Batch:
    """Sequences for the model.

    Args:
        rows: int64[n, seq_len + 1], as stored.
        labels: int64[n, seq_len], IGNORED where nothing is to be predicted.
        piece_row: int64[p], the row of each document piece, ascending.
        piece_length: int64[p], its tokens of input; padding is a piece at a row's end, so each row sums to seq_len.
        withheld: labels that were taken out (training/excluded.py) and count all the same.
    """

    rows: Ints
    labels: Ints
    piece_row: Ints
    piece_length: Ints
    withheld: int = 0

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def tokens(self) -> Ints:
        """The input, int64[n, seq_len]."""
        return self.rows[:, :-1]

    @property
    def counted(self) -> int:
        """Labels that the loss is divided by."""
        return int(np.count_nonzero(self.labels != IGNORED)) + self.withheld

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
        self.seq_len, self.sequences, self.token_bytes = entry.seq_len, entry.sequences, entry.token_bytes
        self._store, self._shards = store, entry.shards
        self._ends = np.cumsum([shard.sequences for shard in entry.shards], dtype=np.int64)
        self.rows = mapped_rows(store, entry)

    def places(self, numbers: Ints) -> Places:
        """Where the sequences with these row numbers int64[n] lie in memory."""
        return self.rows.places(numbers)

    def batch(self, numbers: Ints) -> Batch:
        """The sequences with these row numbers int64[n], in that order."""
        return Batch(*assemble(self.places(numbers), self.token_bytes, self.seq_len))

    def text_bytes(self, numbers: Ints) -> float:
        """Bytes of text in rows: of each document the share that its tokens in a row are of all its tokens."""
        owner, total = np.searchsorted(self._ends, numbers, side="right"), 0.0
        for s in np.unique(owner).tolist():
            local = numbers[owner == s] - (self._ends[s - 1] if s else 0)
            total += float((self._bytes_until(s)[local + 1] - self._bytes_until(s)[local]).sum())
        return total

    @lru_cache(maxsize=64)  # noqa: B019 - a partition lives as long as its run
    def _bytes_until(self, number: int) -> npt.NDArray[np.float64]:
        """Bytes of text in a shard's rows before each row, float64[rows + 1]."""
        shard = self._shards[number]
        docs = self._store.table(shard.docs, ["tokens", "text_bytes"])
        rate = docs["text_bytes"].to_numpy() / docs["tokens"].to_numpy()
        (ends, lengths), (_, refs) = lists_of(self._store, shard, "doc_lens"), lists_of(self._store, shard, "doc_refs")
        before = np.concatenate([[0.0], np.cumsum(lengths * rate[refs])])
        return before[np.concatenate([[0], ends])]


class Loader:
    """The batches of a plan over a dataset.

    The places of many sequences are found at once, and their row groups verified, by a thread that is one such stretch
    ahead; what is left for a batch is to gather its rows.
    """

    def __init__(self, store: Store, dataset: manifest.Manifest, plan: Plan) -> None:
        self._plan = plan
        self._partitions = [Partition(store, dataset.partitions[name]) for name in plan.partitions]
        self._now: _Stretch | None = None
        self._next: tuple[_Stretch, Future[Places]] | None = None
        self._thread = ThreadPoolExecutor(1, "read-ahead")
        self._lengths = [_length(stage, dataset) for stage in plan.stages]

    def seq_len(self, step: int) -> int:
        """Tokens a sequence of a step: those of its stage."""
        return self._lengths[self._plan.stages.index(self._plan.stage_at(step)[0])]

    def batch(self, step: int, rank: int = 0, world_size: int = 1) -> Batch:
        """The share of one rank in the global batch of a step."""
        places = self._places(step, rank, world_size)
        return Batch(*assemble(places, self._partitions[0].token_bytes, self.seq_len(step)))

    def close(self) -> None:
        """Wait for what is being read ahead, and forget it."""
        if self._next is not None:
            self._next[1].exception()
        self._now = self._next = None

    def _places(self, step: int, rank: int, world_size: int) -> Places:
        share = self._plan.global_batch // world_size
        if self._now is None or not self._now.holds(step, rank, world_size):
            if self._next is not None and self._next[0].holds(step, rank, world_size):
                now = replace(self._next[0], places=self._next[1].result())
            else:  # the first batch, or a jump: no longer than it must be
                self.close()
                now = _Stretch(step, 1, rank, world_size)
                now = replace(now, places=self._find(now))
            self._now, self._next = now, None
            if left := self._plan.steps - now.first - now.steps:
                following = _Stretch(now.first + now.steps, min(left, max(1, AHEAD // share)), rank, world_size)
                self._next = following, self._thread.submit(self._find, following)
        at = (step - self._now.first) * share
        return self._now.places.part(at, at + share)

    def _find(self, stretch: _Stretch) -> Places:
        """Places of all sequences of a stretch, verified."""
        rows = self._plan.rows(stretch.first, stretch.rank, stretch.world_size, stretch.steps)
        return places_of([partition.rows for partition in self._partitions], rows)


def _length(stage: Stage, dataset: manifest.Manifest) -> int:
    """Tokens a sequence of the partitions that a stage draws from."""
    lengths = {name: dataset.partitions[name].seq_len for name in stage.weights}
    if len(set(lengths.values())) > 1:
        raise UsageError("partitions of different sequence lengths cannot share a batch", f"seq_len: {lengths}")
    return next(iter(lengths.values()))


@dataclass(frozen=True)
class _Stretch:
    """Steps that follow each other, and where the sequences of one rank's shares in them lie."""

    first: int
    steps: int
    rank: int
    world_size: int
    places: Places = NOWHERE

    def holds(self, step: int, rank: int, world_size: int) -> bool:
        same = (rank, world_size) == (self.rank, self.world_size)
        return same and self.first <= step < self.first + self.steps


def batch_digest(rows: Sequence[bytes]) -> str:
    """Identity of a global batch: sha256 over the digests of its rows, in order."""
    return hashlib.sha256(b"".join(rows)).hexdigest()


def chained(chain: str, batch: str) -> str:
    """Identity of all batches so far: sha256 over the former chain and the next batch's digest."""
    return hashlib.sha256(f"{chain}{batch}".encode()).hexdigest()
