"""What a deduplicating stage found, as a table, written in slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from corpusmill import schema
from corpusmill.store import Draft, Output, Receipt, Store, Unit
from corpusmill.store.parquet import open_parquet
from tasks.dedup.documents import Alive, Ints
from tasks.funnel.tally import Tally

FOUND = pa.schema(
    [
        pa.field("shard", pa.int64(), nullable=False),
        pa.field("row", pa.int64(), nullable=False),
        pa.field("doc_id", schema.DOC_ID, nullable=False),
        pa.field("reason", pa.string()),  # null: kept
        pa.field("keeper", schema.DOC_ID),  # null: kept
        pa.field("manifest", pa.string()),  # of the earlier dataset that holds the keeper; null: it is in this one
        pa.field("similarity", pa.float64()),  # null: kept, or equal by URL only
        pa.field("cluster", schema.DOC_ID, nullable=False),
        pa.field("cluster_size", pa.int64(), nullable=False),
    ]
)
"""One row per document that is in a cluster of two or more, or (near) alive; by shard and row."""

SLICE_ROWS = 1 << 18
GROUP_BYTES = 1 << 22
"""Row groups: what is read to get the documents of one shard."""


@dataclass(frozen=True)
class Old:
    """Documents that earlier datasets kept and that were met here; L of them."""

    doc_id: NDArray[np.void]
    """V16[L]."""
    manifest: Sequence[str]
    """Digest of the manifest that holds each."""

    @classmethod
    def none(cls) -> Old:
        """No such document."""
        return cls(np.empty(0, "V16"), ())

    def __len__(self) -> int:
        return len(self.doc_id)


@dataclass(frozen=True)
class Outcome:
    """The verdict on N documents. A keeper is one of them, or N + i for the i-th old document; -1 where kept."""

    keeper: Ints
    similarity: NDArray[np.float64]
    reason: NDArray[np.int8]
    """int8[N] into `reasons`."""
    reasons: tuple[str, ...]
    old: Old

    def cluster(self) -> tuple[Ints, Ints]:
        """Each document's kept one (numbered as in `keeper`), and the documents of its cluster with that one."""
        n = len(self.keeper)
        cluster = np.where(self.keeper >= 0, self.keeper, np.arange(n))
        sizes = np.bincount(cluster, minlength=n + len(self.old))
        sizes[n:] += 1
        return cluster, sizes[cluster]


def commit(
    unit: Unit,
    row: str,
    docs: Alive,
    outcome: Outcome,
    facts: Mapping[str, object],
    store: Store,
    *,
    every: bool,
    more: Mapping[str, Draft] | None = None,
) -> Receipt:
    """Store the table of what was found (`every`: also documents that stand alone) with counts for the funnel."""
    gone = outcome.keeper >= 0
    tally = Tally(row)
    tally.add_in(len(docs), int(docs.text_bytes.sum()), int(docs.words.sum()))
    tally.add_out(int((~gone).sum()), int(docs.text_bytes[~gone].sum()), int(docs.words[~gone].sum()))
    for code, reason in enumerate(outcome.reasons):
        here = gone & (outcome.reason == code)
        if here.any():
            tally.add_reason(reason, int(here.sum()), int(docs.text_bytes[here].sum()), int(docs.words[here].sum()))
    with store.table_writer(FOUND, row_group_bytes=GROUP_BYTES) as out:
        cluster, size = outcome.cluster()
        take = np.arange(len(docs)) if every else np.flatnonzero(size > 1)
        ids = np.concatenate([docs.doc_id, outcome.old.doc_id])
        for begin in range(0, len(take), SLICE_ROWS):
            out.write(_slice(docs, outcome, ids, cluster, size, take[begin : begin + SLICE_ROWS]))
    return store.commit(
        unit,
        {"found": out.draft, **(more or {})},
        counters=tally.counters(),
        reasons=tally.reason_counts(),
        facts=facts,
    )


def of_shard(found: Output, number: int, store: Store) -> pa.Table:
    """The rows of one shard; only row groups that may hold one of them are read."""
    with open_parquet(store.local_path(found), found.name) as file:
        chosen = []
        for group in range(file.num_row_groups):
            range_ = file.metadata.row_group(group).column(0).statistics
            if range_ is None or not range_.has_min_max or range_.min <= number <= range_.max:
                chosen.append(group)
        table = file.read_row_groups(chosen, use_threads=False)
    return table.filter(pc.equal(table.column("shard"), number))


def _slice(docs: Alive, outcome: Outcome, ids: NDArray[np.void], cluster: Ints, size: Ints, take: Ints) -> pa.Table:
    keeper = outcome.keeper[take]
    gone = keeper >= 0
    names = np.array([*outcome.reasons, ""], object)
    origin = np.array([*outcome.old.manifest, None], object)
    old = np.where(keeper >= len(docs), keeper - len(docs), -1)
    return pa.table(
        {
            "shard": docs.shard[take],
            "row": docs.row[take],
            "doc_id": binary(docs.doc_id[take]),
            "reason": pa.array(names[outcome.reason[take]], pa.string(), mask=~gone),
            "keeper": binary(ids[np.maximum(keeper, 0)], gone),
            "manifest": pa.array(origin[old], pa.string()),
            "similarity": pa.array(outcome.similarity[take], mask=~gone | np.isnan(outcome.similarity[take])),
            "cluster": binary(ids[cluster[take]]),
            "cluster_size": size[take],
        }
    ).cast(FOUND)


def binary(values: NDArray[np.void], valid: NDArray[np.bool_] | None = None) -> pa.Array:
    """Void rows as a fixed-size binary array."""
    mask = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    data = pa.py_buffer(np.ascontiguousarray(values).tobytes())
    return pa.Array.from_buffers(pa.binary(values.dtype.itemsize), len(values), [mask, data])
