"""Documents whose labels give no gradient, by a list of ids: takedown without packing again, exact counterfactual runs.

Nothing else in any batch changes: the tokens stay, so do the order and the digests of batches; no other document sees
them (attention ends at documents); and the labels that are taken out stay in the count that the loss is divided by.
Needs no torch.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusmill.dataset.manifest import HELDOUT, Manifest, PackedShard
from corpusmill.errors import CheckFailed, NotFound, UsageError
from corpusmill.kernels.gather import IGNORED
from corpusmill.store import Store
from corpusmill.tokens.order import Ints, Plan
from training.data import Batch

_ID = re.compile(r"[0-9a-f]{32}")


def kept_list(store: Store, file: Path, manifest: Manifest) -> tuple[str, int, int]:
    """Keep a list of doc ids in the store, in one form: sorted, each once, those that the dataset has.

    Args:
        file: a doc id (32 hex digits) a line; what follows a `#` is a comment.

    Returns:
        the sha256 of the list, how many ids it has, how many of the file are in no partition that is trained on.

    Raises:
        NotFound: there is no such file. UsageError: a line is no doc id; or none of them is in the dataset.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as err:
        raise NotFound(
            f"exclude = {str(file)!r} cannot be read", str(err), "Expected a file with a doc id a line."
        ) from err
    asked = dict[str, int]()
    for number, line in enumerate(lines, 1):
        if name := line.partition("#")[0].strip().lower():
            asked.setdefault(name, number)
    wrong = [f"line {number}: {name[:60]!r}" for name, number in asked.items() if not _ID.fullmatch(name)]
    if wrong or not asked:
        raise UsageError(
            f"exclude = {str(file)!r}: {len(wrong) or 'no'} line{'s' if len(wrong) > 1 else ''} of {len(lines)} "
            f"{'is no doc id' if wrong else 'has a doc id'}",
            "\n".join(wrong[:10]) or "the file lists nothing",
            "A doc id is 32 hex digits; `mill trace URL` and `mill export` show them.",
        )
    wanted = {bytes.fromhex(name) for name in asked}
    there = {doc_id for shard in _shards(manifest) for doc_id in _ids(store, shard) if doc_id in wanted}
    if not there:
        raise UsageError(
            f"exclude = {str(file)!r}: none of its {len(wanted):,} documents is trained on",
            f"dataset {manifest.name} has them in no partition, or holds them out",
            "Check the ids with `mill trace`, or remove the key.",
        )
    data = "".join(f"{doc_id.hex()}\n" for doc_id in sorted(there)).encode()
    digest = hashlib.sha256(data).hexdigest()
    store.put(_place(digest), data)
    return digest, len(there), len(wanted) - len(there)


def _place(digest: str) -> str:
    return f"runs/excluded/{digest}"


def _shards(manifest: Manifest) -> Iterator[PackedShard]:
    return (s for name, part in sorted(manifest.partitions.items()) if name != HELDOUT for s in part.shards)


def _ids(store: Store, shard: PackedShard) -> list[bytes]:
    ids: list[bytes] = store.table(shard.docs, ["doc_id"])["doc_id"].to_pylist()
    return ids


@dataclass(frozen=True)
class Excluded:
    """Where the excluded documents lie: of each partition of a plan the pieces (row, first token, tokens), by row.

    Args:
        pieces: int64[n, 3] of each partition of the plan, in its order.
    """

    plan: Plan
    pieces: tuple[Ints, ...]

    @staticmethod
    def read(store: Store, digest: str, manifest: Manifest, plan: Plan) -> Excluded:
        """The list of this sha256.

        Raises:
            NotFound: it is gone. CheckFailed: it is damaged.
        """
        data = store.get(_place(digest))
        if hashlib.sha256(data).hexdigest() != digest:
            raise CheckFailed(f"{_place(digest)} is damaged", "its sha256 is not its name", "Name the file again.")
        wanted = pa.array([bytes.fromhex(line) for line in data.decode().split()], pa.binary(16))
        found = []
        for name in plan.partitions:
            parts, first = [np.zeros((0, 3), np.int64)], 0
            for shard in manifest.partitions[name].shards:
                part = _pieces(store, shard, wanted)
                parts.append(part + np.array([first, 0, 0]))
                first += shard.sequences
            found.append(np.concatenate(parts))
        return Excluded(plan, tuple(found))

    def taken_out(self, batch: Batch, step: int, rank: int, world_size: int) -> Batch:
        """A rank's share of a step without the labels of these documents.

        Args:
            step: from 0.
        """
        rows = self.plan.rows(step, rank, world_size)
        labels, withheld = None, 0
        for i, (k, row) in enumerate(zip(rows.partition.tolist(), rows.row.tolist(), strict=True)):
            begin, end = np.searchsorted(self.pieces[k][:, 0], [row, row + 1])
            for _, first, tokens in self.pieces[k][begin:end].tolist():
                labels = batch.labels.copy() if labels is None else labels
                own = labels[i, first : first + tokens - 1]  # the last one's label would be of the next document
                withheld += int(np.count_nonzero(own != IGNORED))
                own[:] = IGNORED
        return batch if labels is None else replace(batch, labels=labels, withheld=withheld)


def _pieces(store: Store, shard: PackedShard, wanted: pa.Array) -> Ints:
    """The pieces of these documents in a shard, int64[n, 3], in the order of rows."""
    ids = store.table(shard.docs, ["doc_id"])["doc_id"].combine_chunks()
    excluded = pc.is_in(ids, wanted.cast(ids.type)).to_numpy(zero_copy_only=False)
    if not excluded.any():
        return np.zeros((0, 3), np.int64)
    table = store.table(shard.rows, ["doc_lens", "doc_refs"]).combine_chunks()
    lists = table["doc_lens"].combine_chunks()
    row = pc.list_parent_indices(lists).to_numpy().astype(np.int64)
    length = pc.list_flatten(lists).to_numpy().astype(np.int64)
    refs = pc.list_flatten(table["doc_refs"].combine_chunks()).to_numpy()
    before = np.cumsum(length) - length
    starts = np.flatnonzero(np.diff(row, prepend=-1))  # every row has a piece
    first = before - np.repeat(before[starts], np.diff(np.append(starts, len(row))))
    mine = excluded[refs]
    return np.stack([row[mine], first[mine], length[mine]], axis=1)
