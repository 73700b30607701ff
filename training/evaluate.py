"""Held-out loss in bits per byte of text: comparable between tokenizers, sequence lengths and models."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from corpusmill.dataset.manifest import HELDOUT, Manifest
from corpusmill.kernels.gather import IGNORED
from corpusmill.store import Store
from corpusmill.tokens.order import Permutation
from training.config import TrainConfig
from training.data import Batch, Partition
from training.model import Layout
from training.parallel import Ranks, precision, sums


def nll(model: nn.Module, batch: Batch, rope_base: int, config: TrainConfig, ranks: Ranks) -> Tensor:
    """Summed negative log-likelihood (nats) of a batch's labels."""
    seq_len, head_dim = batch.labels.shape[1], config.model.dim // config.model.heads
    layout = Layout.of(batch.piece_length, seq_len, head_dim, rope_base, ranks.device)
    tokens, labels = (torch.from_numpy(a).to(ranks.device) for a in (batch.tokens, batch.labels))
    with precision(config, ranks):
        loss: Tensor = model(tokens, labels, layout)
    return loss


class Heldout:
    """The held-out sequences of a dataset: all of them, or a fixed draw of `config.heldout_sequences`."""

    def __init__(self, store: Store, manifest: Manifest, config: TrainConfig) -> None:
        entry = manifest.partitions[HELDOUT]
        self._partition, self._config = Partition(store, entry), config
        count = min(config.heldout_sequences or self._partition.sequences, self._partition.sequences)
        self._rows = Permutation.of(self._partition.sequences, 0, HELDOUT)(np.arange(count))

    def bits_per_byte(
        self, model: nn.Module, rope_base: int, ranks: Ranks, beat: Callable[[], None] = lambda: None
    ) -> float:
        """Sum of nll / ln 2 / sum of text bytes.

        The first token of a piece is predicted from nothing and is left out, its text is not; so the figure is a little
        low, by the same share for every model on this dataset.

        Args:
            beat: called after each micro-batch.
        """
        model.eval()
        micro = self._config.run.micro_batch
        total = text_bytes = 0.0
        for start in range(0, len(self._rows), micro * ranks.world_size):
            rows = self._rows[start + ranks.rank * micro : start + (ranks.rank + 1) * micro]
            batch = self._partition.batch(rows if len(rows) else self._rows[:1])
            if not len(rows):  # the others' forward pass may need this rank's shards
                batch.labels[:] = IGNORED
            with torch.no_grad():
                total += float(nll(model, batch, rope_base, self._config, ranks))
            text_bytes += self._partition.text_bytes(rows)
            beat()
        model.train()
        total, text_bytes = sums(total, text_bytes)
        return total / math.log(2) / text_bytes


def has_heldout(manifest: Manifest) -> bool:
    """Whether a dataset keeps something out."""
    return HELDOUT in manifest.partitions and manifest.partitions[HELDOUT].sequences > 0
