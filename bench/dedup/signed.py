"""Made-up shards of signatures, as the judge stores them, and grouping them as deduplication does, without any text.

A document in 3 of 10 is a copy of an earlier one: each place of its signature is kept with a chance of 0.95. Every pair
that meets counts as similar, so what is measured is candidates and grouping; verification is measured apart.

    python -m bench.dedup.signed FOLDER DOCS MEMORY_MB     groups what lies there; prints {"cpu_s", "peak_bytes", ...}
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench.peers.stopwatch import cpu_seconds
from corpusmill.config import Recipe, parse_recipe
from corpusmill.kernels.duplicates.crowded_buckets import decode
from corpusmill.kernels.duplicates.keepers import KeeperSearch
from corpusmill.processes import forget_peak, peak_bytes
from corpusmill.store import Output, Receipt, Store, Unit, open_store
from tasks.dedup import near_duplicates
from tasks.dedup.documents import attribute, digests_column
from tasks.dedup.outcome import FOUND
from tasks.dedup.parts import keys, rounds
from tasks.dedup.parts import search as near_in_parts
from tasks.dedup.parts.ranges import Cut, by_number
from tasks.shards import Shard
from tasks.units import Done, Job

SHARD_DOCS = 250_000
NUM_PERM, BANDS = 112, 14
COPIES, KEPT = 0.3, 0.95


@dataclass(frozen=True)
class Grouped:
    """What grouping gave."""

    cpu_s: float
    pairs: int
    removed: int
    how: str
    """in one unit, or through the store in this number of ranges of keys"""


def recipe(memory_mb: int) -> Recipe:
    """The default settings."""
    source = {"made": {"kind": "jsonl", "root": "nowhere"}}
    return parse_recipe({"name": "signed", "source": source, "deduplicate": {"memory_mb": memory_mb}}, "signed")


def signatures(docs: int, seed: int) -> NDArray[np.uint32]:
    """uint32[docs, 112]."""
    rng = np.random.default_rng(seed)
    made = rng.integers(0, 2**32, (docs, NUM_PERM), dtype=np.uint32)
    copies = np.flatnonzero(rng.random(docs) < COPIES)
    copies = copies[copies > 0]
    originals = (rng.random(len(copies)) * copies).astype(np.int64)
    for begin in range(0, len(copies), 1 << 16):
        here = slice(begin, begin + (1 << 16))
        keep = rng.random((len(copies[here]), NUM_PERM)) < KEPT
        made[copies[here]] = np.where(keep, made[originals[here]], made[copies[here]])
    return made


def shards(folder: Path, docs: int, write_raw: Path | None = None) -> list[Shard]:
    """The shards of a number of documents in the store at `folder`, made where they are not there.

    Args:
        write_raw: a file that gets all signatures, for peers.
    """
    store = open_store(folder, create=True)
    made = []
    for number, begin in enumerate(range(0, docs, SHARD_DOCS)):
        count = min(SHARD_DOCS, docs - begin)
        units = {name: Unit(name, 1, {"docs": count, "number": number}, ()) for name in ("extract", "judge", "filter")}
        found = {name: receipt for name, unit in units.items() if (receipt := store.receipt(unit))}
        if len(found) < len(units):
            found = _write(store, units, count, number, write_raw)
        groups = {"digests": found["judge"], "measures": found["judge"]}
        docs_, decided = found["extract"], found["filter"]
        made.append(Shard("made", "one", f"{number:04d}", docs_, groups, decided, decided, decided))
    return made


def _write(store: Store, units: dict[str, Unit], count: int, number: int, raw: Path | None) -> dict[str, Receipt]:
    rng = np.random.default_rng(1000 + number)
    made = signatures(count, number)
    if raw:
        with raw.open("ab") as file:
            file.write(made.tobytes())

    def fixed(data: bytes, width: int) -> pa.Array:
        return pa.Array.from_buffers(pa.binary(width), count, [None, pa.py_buffer(data)])

    documents = pa.table(
        {"doc_id": fixed(rng.bytes(16 * count), 16), "date": pa.array(["2026-01-01"] * count, pa.string())}
    )
    measured = pa.table({"text_bytes": rng.integers(200, 20_000, count), "word_total": np.full(count, 100)})
    digests = pa.table(
        {
            "text_digest": fixed(rng.bytes(16 * count), 16),
            "shingles": pa.array(np.full(count, 100, np.int32)),
            "signature": fixed(made.astype("<u4").tobytes(), 4 * NUM_PERM),
        }
    )
    decided = pa.table({"stage": pa.nulls(count, pa.string())})
    tables = {
        "extract": {"documents": documents},
        "judge": {"measures": measured, "digests": digests},
        "filter": {"decisions": decided},
    }
    return {
        name: store.commit(units[name], {kind: store.draft_table(table) for kind, table in outputs.items()})
        for name, outputs in tables.items()
    }


def grouped(folder: Path, docs: int, memory_mb: int) -> Grouped:
    """Candidates and groups of the signatures in a store; what units in between write is written to it too."""
    store, made = open_store(folder), recipe(memory_mb)
    held = shards(folder, docs)
    unit = Unit("exact", 1, {"docs": docs}, ())
    exact = store.receipt(unit) or store.commit(unit, {"found": store.draft_table(FOUND.empty_table())})
    began = cpu_seconds()
    found = (
        _at_once(held, exact, made, store) if near_in_parts.fits(held, made) else _in_parts(held, exact, made, store)
    )
    pairs, removed, how = found
    return Grouped(cpu_seconds() - began, pairs, removed, how)


def _at_once(held: list[Shard], exact: Receipt, made: Recipe, store: Store) -> tuple[int, int, str]:
    docs = near_duplicates.left_by_exact(held, exact, made, store)
    shingles = attribute(held, docs, digests_column("shingles", store), np.int32)
    searched = KeeperSearch(near_duplicates.band_keys(held, docs, made, store), docs.rank, shingles, min_jaccard=0.8)
    while len(pairs := searched.next_pairs()):
        searched.settle(np.ones(len(pairs)))
    result = searched.result()
    return result.comparisons, int((result.keeper >= 0).sum()), "in one unit"


def _in_parts(held: list[Shard], exact: Receipt, made: Recipe, store: Store) -> tuple[int, int, str]:
    def run(unit: Callable[[Job], Done], item: object) -> Receipt:
        return unit(Job(store.uri, made, item)).receipt

    plan = run(keys.ranks_unit, keys.Ranks(held, exact, None))
    cut = Cut.of(plan)
    bands = [
        run(keys.bands_unit, keys.Bands(cut, g, cut.shards_of(g, held), plan.outputs[f"group.{g}"]))
        for g in range(cut.groups)
    ]
    entries = [tuple(receipt.outputs[f"keys.{p}"] for receipt in bands) for p in range(cut.partitions)]
    states = [run(rounds.buckets_unit, rounds.Buckets(cut, entries[p], None, None)) for p in range(cut.partitions)]
    edges: list[list[Output]] = [[] for _ in range(cut.partitions)]
    pairs = 0
    for group in range(cut.groups):
        codes = np.unique(
            np.concatenate([store.table(s.outputs[f"pairs.{group}"]).column("code").to_numpy() for s in states])
        )
        pairs += len(codes)
        unit = Unit("bench.edges", 1, {"group": group, "of": plan.key}, ())
        drafts = {
            str(number): store.draft_table(pa.table({"code": codes[here]}))
            for number, here in by_number(cut.range_of(decode(codes)[0]), cut.partitions)
        }
        receipt = store.commit(unit, drafts)
        for number in range(cut.partitions):
            edges[number].append(receipt.outputs[str(number)])
    removed = run(rounds.removed_unit, rounds.Removed(cut, tuple(map(tuple, edges)))).outputs["removed"]
    gone = int(rounds.read_removed(removed, cut, store).sum())
    for state in states:  # the second round, which finds nothing more to compare
        run(rounds.buckets_unit, rounds.Buckets(cut, (), state.outputs["state"], removed))
    return pairs, gone, f"through the store, {cut.partitions} ranges"


def verification(pairs: int, shingles: int = 500) -> float:
    """Pairs compared in a CPU second, of sets of `shingles` shingles in memory (loading them is measured apart)."""
    from corpusmill.kernels.duplicates import jaccard

    rng = np.random.default_rng(5)
    values = np.sort(rng.integers(0, 2**64, (1000, shingles), dtype=np.uint64), axis=1)
    sets = jaccard.Sets(np.arange(1001, dtype=np.int64) * shingles, values.ravel())
    which = rng.integers(0, 1000, (pairs, 2))
    jaccard.jaccard(sets, sets, which[:10])
    began = cpu_seconds()
    jaccard.jaccard(sets, sets, which)
    return pairs / (cpu_seconds() - began)


def main(argv: list[str]) -> None:
    """Group after a warm-up on few documents, and print what it took."""
    folder, docs, memory_mb = Path(argv[0]), int(argv[1]), int(argv[2])
    warm = folder / "warm"
    grouped_warm = [shards(warm, 2000), grouped(warm, 2000, 512), grouped(warm, 2000, 1)]
    assert len(grouped_warm) == 3
    forget_peak()
    result = grouped(folder / "store", docs, memory_mb)
    row: dict[str, Any] = {**vars(result), "docs": docs, "memory_mb": memory_mb, "peak_bytes": peak_bytes()}
    print(json.dumps(row))


if __name__ == "__main__":
    main(sys.argv[1:])
