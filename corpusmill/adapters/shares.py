"""One rank's shares of the global batches of a plan, by step: what every adapter serves.

A share is a function of dataset, plan, step, rank and number of ranks; nothing else is state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from corpusmill.dataset.manifest import Partition, open_manifest
from corpusmill.errors import UsageError
from corpusmill.store import Store, open_store
from corpusmill.tokens.mapped import Ints, MappedRows, assemble
from corpusmill.tokens.opened import mapped_rows, places_of
from corpusmill.tokens.order import Plan


class Share(NamedTuple):
    """Sequences of one rank.

    Args:
        rows: int64[n, seq_len + 1], as stored: the input is all but the last token, what is to be predicted all but
            the first.
        labels: int64[n, seq_len], the next token, or gather.IGNORED where it is of another document or padding.
        positions: int64[n, seq_len], of each input token in its document's piece: 0 where one begins. Padding is a
            piece of its own.
        pieces: int64[n, seq_len], the number of each input token's piece in its row, from 1.
    """

    rows: Ints
    labels: Ints
    positions: Ints
    pieces: Ints

    @property
    def tokens(self) -> Ints:
        """The input, int64[n, seq_len]."""
        return self.rows[:, :-1]


@dataclass(frozen=True)
class Shares:
    """The shares of rank `rank` of `world_size` in the batches of `plan`; any thread may ask for any step.

    It can be pickled: a copy in another process opens the store again.

    Args:
        store: URI of the store.
        dataset: REF of the dataset; a name becomes the digest that it stands for now.
        plan: the order; of a training config, `training.config.plan_of` makes it.

    Raises:
        NotFound: there is no such store, dataset or partition.
        UsageError: the ranks cannot share a batch, the plan is of another dataset, or sequences of different lengths
            would share a batch.
    """

    store: str
    dataset: str
    plan: Plan
    rank: int = 0
    world_size: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "dataset", self._store.resolve(self.dataset)[1])
        if not 0 <= self.rank < self.world_size:
            raise UsageError(f"rank {self.rank} of {self.world_size} ranks", "ranks are 0 to world_size - 1")
        if not self.plan.steps:
            raise UsageError(
                "the plan has no step",
                f"it has {self.plan.total} sequences, and a global batch is {self.plan.global_batch}",
                "Give it more sequences, or lower global_batch.",
            )
        self.plan.rows(0, self.rank, self.world_size)  # refuses ranks that do not divide the batch
        for name, entry in zip(self.plan.partitions, self._entries, strict=True):
            if entry.sequences != self.plan.sizes[name]:
                raise UsageError(
                    f"the plan is not one of dataset {self.dataset[:12]}",
                    f"partition {name} has {entry.sequences:,} sequences, the plan expects {self.plan.sizes[name]:,}",
                    "Make the plan from this dataset's manifest.",
                )
        if len(set(self.lengths)) > 1 and any(s.sequences % self.plan.global_batch for s in self.plan.stages[:-1]):
            raise UsageError(
                "sequences of different lengths would share a batch",
                f"stages have seq_len {list(self.lengths)}; one ends within a global batch of {self.plan.global_batch}",
                "Let each stage but the last be whole global batches.",
            )

    def __len__(self) -> int:
        """Steps."""
        return self.plan.steps

    def __reduce__(self) -> tuple[Callable[..., Shares], tuple[Any, ...]]:
        return Shares, (self.store, self.dataset, self.plan, self.rank, self.world_size)

    @property
    def size(self) -> int:
        """Sequences in a share."""
        return self.plan.global_batch // self.world_size

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """Tokens a sequence of each stage."""
        of = {name: entry.seq_len for name, entry in zip(self.plan.partitions, self._entries, strict=True)}
        found = [{of[name] for name in stage.weights} for stage in self.plan.stages]
        if any(len(lengths) > 1 for lengths in found):
            raise UsageError("partitions of different sequence lengths cannot share a batch", f"seq_len: {of}")
        return tuple(lengths.pop() for lengths in found)

    def share(self, step: int) -> Share:
        """The share of a step, counted from 0; its row groups are verified.

        Raises:
            IndexError: the plan has no such step. CheckFailed: a shard is damaged.
        """
        if not 0 <= step < self.plan.steps:
            raise IndexError(f"step {step} of a plan of {self.plan.steps}")
        seq_len = self.lengths[self.plan.stages.index(self.plan.stage_at(step)[0])]
        places = places_of(self._rows, self.plan.rows(step, self.rank, self.world_size))
        rows, labels, row, length = assemble(places, self._rows[0].token_bytes, seq_len)
        # Each row's pieces sum to seq_len, so that all of them, one after another, are the batch.
        positions = np.arange(labels.size) - np.repeat(np.cumsum(length) - length, length)
        number = np.arange(len(row)) - np.searchsorted(row, np.arange(len(rows)))[row] + 1
        return Share(rows, labels, positions.reshape(labels.shape), np.repeat(number, length).reshape(labels.shape))

    def ahead(self, step: int) -> Iterator[Share]:
        """The shares from a step to the plan's end; a thread reads the next one while one is used."""
        with ThreadPoolExecutor(1, "read-ahead") as thread:
            following = thread.submit(self.share, step) if step < len(self) else None
            while following is not None:
                share, step = following.result(), step + 1
                following = thread.submit(self.share, step) if step < len(self) else None
                yield share

    @cached_property
    def _store(self) -> Store:
        return open_store(self.store)

    @cached_property
    def _entries(self) -> list[Partition]:
        """The partitions of the plan, in its order; `DIGEST:NAME` is one of another dataset."""
        found = []
        for full in self.plan.partitions:
            digest, _, name = full.rpartition(":")
            partitions = open_manifest(self._store, digest or self.dataset).partitions
            if name not in partitions:
                raise UsageError(
                    f"the plan draws from partition {name}",
                    f"dataset {(digest or self.dataset)[:12]} has {', '.join(sorted(partitions))}",
                    "Make the plan from this dataset's manifest.",
                )
            found.append(partitions[name])
        return found

    @cached_property
    def _rows(self) -> list[MappedRows]:
        return [mapped_rows(self._store, entry) for entry in self._entries]
