"""Batches out of packed shards: memory-mapped token rows, gathered in the order of a plan. No workers, no state.

A row holds seq_len + 1 tokens: the input is all but the last, the label all but the first. A label that would cross
into the next document, or lies in padding, does not count.
"""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from corpusmill.errors import UsageError
from corpusmill.order import Ints, Plan
from corpusmill.store import Output, Store

IGNORED = -100
"""A label that does not count."""

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Batch:
    """Sequences for the model.

    Args:
        tokens: int64[n, seq_len].
        labels: int64[n, seq_len], IGNORED where nothing is to be predicted.
        lengths: token counts of the pieces of each row, padding as a last piece; each sums to seq_len.
        digests: sha256 of each stored row.
    """

    tokens: Ints
    labels: Ints
    lengths: list[list[int]]
    digests: list[bytes]

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def counted(self) -> int:
        """Labels that count."""
        return int((self.labels != IGNORED).sum())

    def part(self, start: int, stop: int) -> Batch:
        """The sequences start to stop."""
        cut = slice(start, stop)
        return Batch(self.tokens[cut], self.labels[cut], self.lengths[cut], self.digests[cut])


class Partition:
    """The sequences of one partition of a dataset, by row number."""

    def __init__(self, store: Store, entry: Mapping[str, Any]) -> None:
        self.seq_len, self.token_bytes = int(entry["seq_len"]), int(entry["token_bytes"])
        self.sequences = int(entry["sequences"])
        self._shards = [_Shard(store, shard, self.token_bytes * (self.seq_len + 1)) for shard in entry["shards"]]
        self._ends = np.cumsum([shard["sequences"] for shard in entry["shards"]], dtype=np.int64)

    def batch(self, rows: Ints) -> Batch:
        """The sequences with these numbers int64[n], in that order."""
        raw = np.empty((len(rows), self.token_bytes * (self.seq_len + 1)), np.uint8)
        pieces: list[list[int]] = [[] for _ in rows]
        for shard, members, local in self._by_shard(rows):
            raw[members] = shard.rows(local)
            for place, lengths in zip(members.tolist(), shard.pieces(local), strict=True):
                pieces[place] = lengths
        tokens = raw.view(f"<u{self.token_bytes}").astype(np.int64)
        digests = [hashlib.sha256(row.data).digest() for row in raw]
        labels = tokens[:, 1:].copy()
        for label, lengths in zip(labels, pieces, strict=True):
            ends = np.cumsum(lengths)
            label[ends[:-1] - 1] = IGNORED
            label[ends[-1] - 1 :] = IGNORED
        return Batch(tokens[:, :-1], labels, [_fill(lengths, self.seq_len) for lengths in pieces], digests)

    def text_bytes(self, rows: Ints) -> float:
        """Bytes of text in rows: of each document the share that its tokens in a row are of all its tokens."""
        return sum(float(shard.text_bytes(local).sum()) for shard, _, local in self._by_shard(rows))

    def _by_shard(self, rows: Ints) -> list[tuple[_Shard, Ints, Ints]]:
        """For each shard with some of the rows: the shard, their places in `rows`, their numbers in the shard."""
        number = np.searchsorted(self._ends, rows, side="right")
        found = []
        for s in np.unique(number).tolist():
            members = np.flatnonzero(number == s)
            first = self._ends[s - 1] if s else 0
            found.append((self._shards[s], members, rows[members] - first))
        return found


class _Shard:
    """One shard; its files are verified and opened when a row of it is first read."""

    def __init__(self, store: Store, entry: Mapping[str, Any], row_bytes: int) -> None:
        self._store, self._entry, self._row_bytes = store, entry, row_bytes

    def rows(self, local: Ints) -> Bytes:
        """Stored rows, uint8[n, row_bytes]."""
        out = np.empty((len(local), self._row_bytes), np.uint8)
        group = np.searchsorted(self._ends, local, side="right")
        for g in np.unique(group).tolist():
            members = np.flatnonzero(group == g)
            first = self._ends[g - 1] if g else 0
            out[members] = self._groups[g][local[members] - first]
        return out

    def pieces(self, local: Ints) -> list[list[int]]:
        """Token counts of the document pieces in each row."""
        offsets, lengths = self._lists["doc_lens"]
        return [lengths[offsets[i] : offsets[i + 1]].tolist() for i in local.tolist()]

    def text_bytes(self, local: Ints) -> npt.NDArray[np.float64]:
        """Bytes of text in each row, float64[n]."""
        offsets, _ = self._lists["doc_lens"]
        total: npt.NDArray[np.float64] = self._bytes_before[offsets[local + 1]] - self._bytes_before[offsets[local]]
        return total

    @cached_property
    def _bytes_before(self) -> npt.NDArray[np.float64]:
        """Bytes of text before each piece of the shard, float64[pieces + 1]."""
        docs = self._store.table(Output.from_json(self._entry["docs"]), ["tokens", "text_bytes"])
        rate = docs["text_bytes"].to_numpy() / docs["tokens"].to_numpy()
        return np.concatenate([[0.0], np.cumsum(self._lists["doc_lens"][1] * rate[self._lists["doc_refs"][1]])])

    @cached_property
    def _groups(self) -> list[Bytes]:
        """The raw rows of each row group, uint8[rows, row_bytes], mapped."""
        path = self._store.local_path(Output.from_json(self._entry["tokens"]))
        return map_groups(path, self._entry["payload"], self._row_bytes)

    @cached_property
    def _ends(self) -> Ints:
        return np.cumsum([group["rows"] for group in self._entry["payload"]], dtype=np.int64)

    @cached_property
    def _lists(self) -> dict[str, tuple[Ints, Ints]]:
        """Offsets and values of the two list columns of the side table."""
        table = self._store.table(Output.from_json(self._entry["rows"]), ["doc_lens", "doc_refs"])
        columns = {name: table[name].combine_chunks() for name in table.column_names}
        return {name: (c.offsets.to_numpy(), c.values.to_numpy()) for name, c in columns.items()}


def map_groups(path: Path, payload: Sequence[Mapping[str, int]], row_bytes: int) -> list[Bytes]:
    """Map the row groups of a token shard: one uint8[rows, row_bytes] each, over the page's bytes in the file."""
    with path.open("rb") as file:
        whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return [
        np.frombuffer(whole, np.uint8, g["rows"] * row_bytes, g["offset"]).reshape(g["rows"], row_bytes)
        for g in payload
    ]


def _fill(pieces: Sequence[int], seq_len: int) -> list[int]:
    """Pieces of a row of seq_len + 1 tokens, cut to its input, padding as a last piece."""
    lengths, left = [], seq_len
    for piece in pieces:
        lengths.append(min(piece, left))
        left -= lengths[-1]
    return [n for n in (*lengths, left) if n]


class Loader:
    """The batches of a plan over a dataset."""

    def __init__(self, store: Store, manifest: Mapping[str, Any], plan: Plan) -> None:
        self._plan = plan
        self._partitions = [Partition(store, manifest["partitions"][name]) for name in plan.partitions]
        if len({p.seq_len for p in self._partitions}) > 1:
            shown = {name: p.seq_len for name, p in zip(plan.partitions, self._partitions, strict=True)}
            raise UsageError("partitions of different sequence lengths cannot share a batch", f"seq_len: {shown}")

    @property
    def seq_len(self) -> int:
        """Tokens a sequence."""
        return self._partitions[0].seq_len

    def batch(self, step: int, rank: int, world_size: int) -> Batch:
        """The share of one rank in the global batch of a step."""
        where = self._plan.rows(step, rank, world_size)
        parts: list[Batch | None] = [None] * len(where.row)
        for k in np.unique(where.partition).tolist():
            members = np.flatnonzero(where.partition == k)
            found = self._partitions[k].batch(where.row[members])
            for i, place in enumerate(members.tolist()):
                parts[place] = found.part(i, i + 1)
        return concat([part for part in parts if part is not None])


def concat(parts: Sequence[Batch]) -> Batch:
    """One batch of several."""
    return Batch(
        np.concatenate([p.tokens for p in parts]),
        np.concatenate([p.labels for p in parts]),
        [lengths for p in parts for lengths in p.lengths],
        [digest for p in parts for digest in p.digests],
    )


def batch_digest(rows: Sequence[bytes]) -> str:
    """Identity of a global batch: sha256 over the digests of its rows, in order."""
    return hashlib.sha256(b"".join(rows)).hexdigest()


def chained(chain: str, batch: str) -> str:
    """Identity of all batches so far: sha256 over the former chain and the next batch's digest."""
    return hashlib.sha256(f"{chain}{batch}".encode()).hexdigest()
