"""Packed shards for Grain: a random-access source whose item k is this rank's share of global batch k.

    source = Steps(Shares(store, "demo", plan, rank=jax.process_index(), world_size=jax.process_count()))
    batches = iter(grain.MapDataset.source(source).to_iter_dataset(grain.ReadOptions(num_threads=1,
        prefetch_buffer_size=2)))

The plan has shuffled, mixed and divided already: no `shuffle`, `mix`, `batch` or slice by rank follows. The iterator's
state is the number of the next step, the same on all ranks, so it goes on at any number of ranks that divides the
global batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from corpusmill.adapters.shares import Shares
from corpusmill.kernels.gather import IGNORED

Arrays = dict[str, NDArray[np.int32]]


@dataclass(frozen=True)
class Steps:
    """The protocol of Grain's random-access sources (`grain.sources.RandomAccessDataSource`)."""

    shares: Shares

    def __len__(self) -> int:
        """Steps of the plan."""
        return len(self.shares)

    def __getitem__(self, step: SupportsIndex) -> Arrays:
        """This rank's sequences of a step, counted from 0: int32[n, seq_len] each, by the names that MaxText uses.

        `inputs`, and `targets`, the token that follows each. `inputs_position` begins at 0 in each document, and
        `inputs_segmentation` counts the documents of a row from 1, padding as one. `targets_segmentation` is the same
        where a target counts, and 0 where it is of another document or padding.
        """
        rows, labels, positions, pieces = self.shares.share(step.__index__())
        return {
            "inputs": rows[:, :-1].astype(np.int32),
            "targets": rows[:, 1:].astype(np.int32),
            "inputs_position": positions.astype(np.int32),
            "inputs_segmentation": pieces.astype(np.int32),
            "targets_segmentation": np.where(labels == IGNORED, 0, pieces).astype(np.int32),
        }

    def __repr__(self) -> str:
        """What decides the batches, without the ranks: Grain's `DataLoader` compares it when it restores a state."""
        return f"Steps(dataset={self.shares.dataset}, plan={self.shares.plan.digest})"
