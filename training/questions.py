"""Questions about the order of a run: which documents a step reads, and which steps read a document.

Both are arithmetic on the plan and the tables beside the token shards; there is no index of steps, and no torch.
Steps count from 1, as in log, metrics and the names of checkpoints: the checkpoint RUN/17 has seen steps 1 to 17.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusmill.dataset.manifest import PackedShard
from corpusmill.errors import NotFound, UsageError
from corpusmill.store import Store
from corpusmill.tokens.tokenizer import Tokenizer
from training.checkpoints import commits
from training.data import Partition, batch_digest
from training.run import RunSpec


@dataclass(frozen=True)
class Piece:
    """A document, or a part of one, in a row.

    Args:
        address: its URL; None where its source has none.
        text: of these tokens alone.
    """

    doc_id: str
    address: str | None
    tokens: int
    text: str


@dataclass(frozen=True)
class Row:
    """A sequence of a batch.

    Args:
        row: its place in the global batch, from 0.
        partition, number: its partition (the source of its documents), and its row there, over all shards.
        epoch: passes over the partition before this one.
        shard, shard_row: digest of its shard's tokens, and its row there.
        sha256: of its tokens as little-endian uint32.
    """

    row: int
    partition: str
    number: int
    epoch: int
    shard: str
    shard_row: int
    sha256: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class BatchRead:
    """The global batch of a step; `batch` is its digest in the metrics."""

    step: int
    batch: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Draw:
    """A time that a row with the document is read: in a step, at a place of its batch."""

    step: int
    row: int
    partition: str
    number: int


@dataclass(frozen=True)
class Trace:
    """A document in one run.

    Args:
        draws: in the order of steps; those after `reached` are to come.
        reached: steps that the newest checkpoint has seen.
        seen: checkpoints that have seen it, the oldest first.
        unseen: the last checkpoint that has not; None: there is none.
        heldout: it lies in the held-out partition, which is never trained on.
    """

    run: str
    manifest: str
    doc_id: str
    address: str | None
    draws: tuple[Draw, ...]
    reached: int
    seen: tuple[str, ...]
    unseen: str | None
    heldout: bool


def batch(spec: RunSpec, step: int) -> BatchRead:
    """What a step reads.

    Args:
        step: from 1 to the number of steps.

    Raises:
        UsageError: there is no such step. CheckFailed, NotFound: a shard is damaged or gone.
    """
    plan, store = spec.plan, spec.open()
    if not 1 <= step <= plan.steps:
        raise UsageError(f"--step {step}", f"this run has steps 1 to {plan.steps:,}")
    tokenizer = Tokenizer(store.bytes(spec.facts.vocabulary.output), spec.facts.vocabulary.eos)
    places, rows, digests = plan.rows(step - 1), dict[int, Row](), dict[int, bytes]()
    for k in np.unique(places.partition).tolist():
        name = plan.partitions[k]
        entry, members = spec.facts.partitions[name], np.flatnonzero(places.partition == k)
        read = Partition(store, entry).batch(places.row[members])
        for i, tokens, digest in zip(members.tolist(), read.rows, read.digests(), strict=True):
            number, epoch = int(places.row[i]), int(places.epoch[i])
            shard, local = _shard_of(entry.shards, number)
            pieces = tuple(_pieces(store, shard, local, tokens, tokenizer))
            rows[i] = Row(i, name, number, epoch, shard.tokens.digest, local, digest.hex(), pieces)
            digests[i] = digest
    every = range(plan.global_batch)
    return BatchRead(step, batch_digest([digests[i] for i in every]), tuple(rows[i] for i in every))


def trace(spec: RunSpec, name: str) -> list[Trace]:
    """The steps of a run that read a document, and what its checkpoints have seen of it.

    Args:
        name: a doc id (or 8 and more of its first hex digits), or the URL of documents.

    Returns:
        one for each document of that name in the datasets of the run; none where they have none.
    """
    store, plan = spec.open(), spec.plan
    found: dict[tuple[str, str | None], list[tuple[str, int]]] = {}
    for partition, content in spec.facts.partitions.items():
        first = 0
        for shard in content.shards:
            for doc_id, address, rows in _documents(store, shard, name):
                found.setdefault((doc_id, address), []).extend((partition, first + row) for row in rows)
            first += shard.sequences
    names = list(reversed(commits.names(store, spec.run_id)))
    reached = max(map(commits.step_of, names), default=0)
    traces = []
    for (doc_id, address), places in sorted(found.items(), key=lambda item: item[0][0]):
        draws = sorted(_draws(spec, places), key=lambda draw: (draw.step, draw.row))
        first_step = draws[0].step if draws else plan.steps + 1
        seen = tuple(n for n in names if commits.step_of(n) >= first_step)
        unseen = next((n for n in reversed(names) if commits.step_of(n) < first_step), None)
        heldout = all(partition not in plan.sizes for partition, _ in places)
        traces.append(Trace(spec.run_id, spec.manifest, doc_id, address, tuple(draws), reached, seen, unseen, heldout))
    return traces


def _draws(spec: RunSpec, rows: Sequence[tuple[str, int]]) -> Iterator[Draw]:
    plan = spec.plan
    for partition, number in dict.fromkeys(rows):
        if partition in plan.sizes:
            for at in plan.numbers_of(partition, number).tolist():
                step, row = divmod(at, plan.global_batch)
                if step < plan.steps:
                    yield Draw(step + 1, row, partition, number)


def _shard_of(shards: Sequence[PackedShard], number: int) -> tuple[PackedShard, int]:
    """The shard of a row of a partition, and its row there."""
    for shard in shards:
        if number < shard.sequences:
            return shard, number
        number -= shard.sequences
    raise IndexError(number)


def _pieces(store: Store, shard: PackedShard, row: int, tokens: np.ndarray, tokenizer: Tokenizer) -> Iterator[Piece]:
    rows, docs = _side(store, shard)
    begin = 0
    for length, ref in zip(rows["doc_lens"][row].as_py(), rows["doc_refs"][row].as_py(), strict=True):
        doc_id, url = docs["doc_id"][ref].as_py().hex(), docs["url"][ref].as_py()
        yield Piece(doc_id, url, length, tokenizer.decode(tokens[begin : begin + length].tolist()))
        begin += length


def _documents(store: Store, shard: PackedShard, name: str) -> Iterator[tuple[str, str | None, list[int]]]:
    """The documents of this name in a shard: (doc id, URL, rows)."""
    docs = store.table(shard.docs, ["doc_id", "url"])
    ids = docs["doc_id"].combine_chunks()
    match = pc.fill_null(pc.equal(docs["url"], name), False).to_numpy()
    if prefix := _id_prefix(name):
        width = ids.type.byte_width
        begin = ids.offset * width
        all_ids = np.frombuffer(ids.buffers()[1], np.uint8)[begin : begin + len(ids) * width].reshape(-1, width)
        match = match | _starts_with(all_ids, prefix)
    refs = np.flatnonzero(match)
    if not len(refs):
        return
    lists = store.table(shard.rows, ["doc_refs"])["doc_refs"].combine_chunks()
    row_of = pc.list_parent_indices(lists).to_numpy()
    flat = pc.list_flatten(lists).to_numpy()
    for ref in refs.tolist():
        yield ids[ref].as_py().hex(), docs["url"][ref].as_py(), row_of[flat == ref].tolist()


def _id_prefix(name: str) -> str:
    digits = name.lower()
    return digits if len(digits) >= 8 and not digits.strip("0123456789abcdef") else ""


def _starts_with(ids: np.ndarray, prefix: str) -> np.ndarray:
    """Which ids uint8[n, width] begin with these hex digits, bool[n]."""
    if len(prefix) > 2 * ids.shape[1]:
        return np.zeros(len(ids), np.bool_)
    whole = np.frombuffer(bytes.fromhex(prefix[: len(prefix) // 2 * 2]), np.uint8)
    match: np.ndarray = (ids[:, : len(whole)] == whole).all(1)
    if len(prefix) % 2:
        match &= (ids[:, len(whole)] >> 4) == int(prefix[-1], 16)
    return match


@lru_cache(maxsize=256)
def _side(store: Store, shard: PackedShard) -> tuple[pa.Table, pa.Table]:
    return store.table(shard.rows, ["doc_lens", "doc_refs"]), store.table(shard.docs, ["doc_id", "url"])


def runs_on(store: Store, run: str | None = None) -> list[RunSpec]:
    """The recorded runs of a store, or one of them and those whose checkpoints it began from.

    Raises:
        NotFound: there is no such run, or none was recorded.
    """
    if run is None:
        ids = sorted({name.split("/")[1] for name in store.list("runs/") if name.endswith("/run.json")})
        if not ids:
            raise NotFound(f"no run is recorded in {store.uri}", "each run of `mill train` is, from this version on")
        return [RunSpec.recorded(store, one) for one in ids]
    chain = [RunSpec.recorded(store, run)]
    while begin := chain[-1].origin.run if chain[-1].origin else (chain[-1].parent or "").partition("/")[2][:16]:
        chain.append(RunSpec.recorded(store, begin))
    return chain
