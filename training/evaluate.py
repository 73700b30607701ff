"""Held-out loss in bits per byte of text: comparable between tokenizers, sequence lengths and models.

Each document by itself, so that sums can be had for all, for a source, and for those that share no 13-gram with what is
trained on (`corpusmill/dataset/overlap.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from corpusmill.dataset.manifest import HELDOUT, Manifest
from corpusmill.kernels.gather import IGNORED
from corpusmill.store import Store
from corpusmill.tokens.order import Ints, Permutation
from training.config import TrainConfig
from training.data import Batch, Partition
from training.model import Layout
from training.parallel import Ranks, precision, sums

Floats = npt.NDArray[np.float64]


def nll(
    model: nn.Module, batch: Batch, rope_base: int, config: TrainConfig, ranks: Ranks, reduction: str = "sum"
) -> Tensor:
    """Summed negative log-likelihood (nats) of a batch's labels; with reduction "none" of each, [n, seq_len]."""
    seq_len, head_dim = batch.labels.shape[1], config.model.dim // config.model.heads
    layout = Layout.of(batch.piece_length, seq_len, head_dim, rope_base, ranks.device)
    tokens, labels = (torch.from_numpy(a).to(ranks.device) for a in (batch.tokens, batch.labels))
    with precision(config, ranks):
        loss: Tensor = model(tokens, labels, layout, reduction)
    return loss


@dataclass(frozen=True)
class Documents:
    """The documents of a partition, and which piece of a row is whose.

    Args:
        ids: doc_ids, D of them, in the order of the shards.
        urls: of each.
        shard: int64[D], number of its shard.
        tokens, text_bytes: int64[D].
        first_piece: int64[R + 1], of each row.
        owner, length: int64[P], document and tokens of each piece.
    """

    ids: list[bytes]
    urls: list[str | None]
    shard: Ints
    tokens: Ints
    text_bytes: Ints
    first_piece: Ints
    owner: Ints
    length: Ints

    @staticmethod
    def of(store: Store, manifest: Manifest, name: str = HELDOUT) -> Documents:
        """Those of a dataset."""
        ids, urls = list[bytes](), list[str | None]()
        shard, tokens, sizes, counts, owner, length = ([np.zeros(0, np.int64)] for _ in range(6))
        for number, packed in enumerate(manifest.partitions[name].shards):
            docs, rows = store.table(packed.docs), store.table(packed.rows)
            lens, refs = (rows.column(kind).combine_chunks() for kind in ("doc_lens", "doc_refs"))
            owner.append(refs.values.to_numpy().astype(np.int64) + len(ids))
            length.append(lens.values.to_numpy().astype(np.int64))
            counts.append(np.diff(lens.offsets.to_numpy()).astype(np.int64))
            ids += docs.column("doc_id").to_pylist()
            urls += docs.column("url").to_pylist()
            tokens.append(docs.column("tokens").to_numpy().astype(np.int64))
            sizes.append(docs.column("text_bytes").to_numpy().astype(np.int64))
            shard.append(np.full(len(docs), number, np.int64))
        first = np.concatenate([[0], np.cumsum(np.concatenate(counts))]).astype(np.int64)
        places, lengths, texts = (np.concatenate(parts) for parts in (shard, tokens, sizes))
        return Documents(ids, urls, places, lengths, texts, first, np.concatenate(owner), np.concatenate(length))

    def pieces(self, row: int) -> slice:
        """The pieces of a row."""
        return slice(int(self.first_piece[row]), int(self.first_piece[row + 1]))

    def owners(self, rows: Ints, seq_len: int) -> Ints:
        """The document of each label, int64[n, seq_len]; -1 in padding."""
        found = np.full((len(rows), seq_len + 1), -1, np.int64)
        for k, row in enumerate(rows.tolist()):
            mine = np.repeat(self.owner[self.pieces(row)], self.length[self.pieces(row)])
            found[k, : len(mine)] = mine
        return found[:, 1:]


@dataclass(frozen=True)
class Scores:
    """What a model says of documents, D of each.

    Args:
        nll: nats of all labels.
        labels: how many there were; the first token of a piece is predicted from nothing, and is none.
        text_bytes: of the document, or of the share of it that was read.
    """

    nll: Floats
    labels: Ints
    text_bytes: Floats

    def bits_per_byte(self, among: npt.NDArray[np.bool_] | None = None) -> float | None:
        """Sum of nll / ln 2 / sum of text bytes, of some; None where they have no text.

        The first token of a piece is left out, its text is not; so the figure is a little low, by the same share for
        every model on this dataset.
        """
        loss, size = (float(a.sum() if among is None else a[among].sum()) for a in (self.nll, self.text_bytes))
        return loss / math.log(2) / size if size else None


@dataclass(frozen=True)
class Bits:
    """Bits per byte of all held-out text, and of documents that share no 13-gram with what is trained on."""

    all: float
    clean: float | None = None

    def __str__(self) -> str:
        return f"{self.all:.4f} bits per byte" + ("" if self.clean is None else f" ({self.clean:.4f} of the clean)")


def scores(
    documents: Documents,
    partition: Partition,
    rows: Ints,
    losses: Callable[[Batch], Tensor],
    micro_batch: int,
    *,
    rank: int = 0,
    world_size: int = 1,
    beat: Callable[[], None] = lambda: None,
) -> Scores:
    """Score the documents in some rows; of several ranks each its share of them.

    Args:
        losses: nll of each label of a batch, [n, seq_len].
        beat: called after each micro-batch.
    """
    total, labels, seen = np.zeros(len(documents.ids)), *(np.zeros(len(documents.ids), np.int64) for _ in range(2))
    for start in range(0, len(rows), micro_batch * world_size):
        mine = rows[start + rank * micro_batch : start + (rank + 1) * micro_batch]
        batch = partition.batch(mine if len(mine) else rows[:1])
        if not len(mine):  # the others' forward pass may need this rank's shards
            batch.labels[:] = IGNORED
        with torch.no_grad():
            lost = losses(batch).double().cpu().numpy()
        if len(mine):
            counts = batch.labels != IGNORED
            owner = documents.owners(mine, partition.seq_len)[counts]
            np.add.at(total, owner, lost[counts])
            np.add.at(labels, owner, 1)
        for row in mine.tolist():
            at = documents.pieces(row)
            np.add.at(seen, documents.owner[at], documents.length[at])
        beat()
    return Scores(total, labels, documents.text_bytes * (seen / np.maximum(documents.tokens, 1)))


class Heldout:
    """The held-out sequences of a dataset: all of them, or a fixed draw of `config.heldout_sequences`.

    Args:
        shared: documents that share a 13-gram with what is trained on; None: not known.
    """

    def __init__(
        self, store: Store, manifest: Manifest, config: TrainConfig, shared: Collection[bytes] | None = None
    ) -> None:
        self._partition, self._config = Partition(store, manifest.partitions[HELDOUT]), config
        self._documents = Documents.of(store, manifest)
        self._clean = None if shared is None else np.array([one not in shared for one in self._documents.ids], bool)
        count = min(config.heldout_sequences or self._partition.sequences, self._partition.sequences)
        self._rows = Permutation.of(self._partition.sequences, 0, HELDOUT)(np.arange(count))

    def bits_per_byte(
        self, model: nn.Module, rope_base: int, ranks: Ranks, beat: Callable[[], None] = lambda: None
    ) -> Bits:
        """Bits per byte over all ranks.

        Args:
            beat: called after each micro-batch.
        """
        model.eval()
        found = scores(
            self._documents,
            self._partition,
            self._rows,
            lambda batch: nll(model, batch, rope_base, self._config, ranks, "none"),
            self._config.run.micro_batch,
            rank=ranks.rank,
            world_size=ranks.world_size,
            beat=beat,
        )
        model.train()
        clean = np.zeros(len(found.nll), bool) if self._clean is None else self._clean
        parts = [found.nll, found.text_bytes, found.nll[clean], found.text_bytes[clean]]
        lost, size, clean_lost, clean_size = sums(*(float(part.sum()) for part in parts))
        return Bits(lost / math.log(2) / size, clean_lost / math.log(2) / clean_size if clean_size else None)


def has_heldout(manifest: Manifest) -> bool:
    """Whether a dataset keeps something out."""
    return HELDOUT in manifest.partitions and manifest.partitions[HELDOUT].sequences > 0
