"""The loader beside a raw memory map: tokens per CPU second over one epoch, at 1, 256 and 2,000 shards of one size.

A made-up partition is stored as `pack` stores it; our side is the `Loader` of training with all it does: the order, row
groups verified by crc32 at their first touch, labels, document pieces. The raw side has one file of tokens, an order
that is there already; it gathers and widens rows, and takes labels as a copy of the rows from their second token on.

The same epoch is compared with loaders of others (bench/loader/peers.py), at each number of shards; floors hold at 256,
and --quick compares there alone.

Besides: memory of the process that is not mapped files, at a million rows and at three million.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa

from bench.common import arguments, interleaved, judged, note, report, run
from bench.loader import peers
from bench.peers.stopwatch import cpu_seconds
from corpusmill import schema
from corpusmill.dataset.manifest import PackedShard, Partition
from corpusmill.kernels.gather import pieces_of
from corpusmill.plain_text import human_bytes, table
from corpusmill.store import Store, Unit, open_store
from corpusmill.tokens.order import Plan, Stage
from corpusmill.tokens.shards import write_token_shard
from training.data import Loader

SEQ_LEN = 1024
ROWS = 524_288
"""1.07 GB of 2-byte tokens."""
BATCH = 64
DOCUMENT = 342
"""Tokens of a document piece; the last of a row is one shorter."""
SHARDS = (1, 16, 256, 2000)


def main(argv: Sequence[str]) -> int:
    """Measure, print, and say whether the floors hold."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--memory", type=int, help=argparse_help)
    options = parser.parse_args(argv)
    if options.memory:
        print(json.dumps(_memory(options.memory)))
        return 0
    rows = ROWS // 16 if options.quick else ROWS
    shares, lines, others = {}, [], dict[int, peers.Seconds]()
    for shards in SHARDS:
        with tempfile.TemporaryDirectory(prefix="bench-loader-") as scratch:
            note(f"writing {rows:,} rows into {shards:,} shards")
            store = open_store(Path(scratch) / "store", create=True)
            partition = _stored(store, Path(scratch), rows, shards)
            raw = _raw(Path(scratch) / "raw", rows)
            arms = {"loader": partial(_epoch, store, partition), "raw map": raw}
            found = interleaved(arms, options.repeats or 3, note)
            if not options.no_peer and (shards == peers.FLOORS_AT or not options.quick):
                repeats = options.repeats or (3 if shards == peers.FLOORS_AT else 1)
                others[shards] = peers.beside(store, partition, BATCH, Path(scratch), arms["loader"], repeats)
        ours, theirs = min(found["loader"]), min(found["raw map"])
        shares[f"shards_{shards}"] = theirs / ours
        tokens = rows * (SEQ_LEN + 1) / 1e6
        lines.append((f"{shards:,}", f"{tokens / ours:.0f}", f"{tokens / theirs:.0f}", f"{theirs / ours:.2f}"))
    grown = _grown()
    text = table(("shards", "loader, M tokens a CPU s", "raw map", "share"), lines, numbers=(1, 2, 3))
    text += f"\n\nmemory that is no mapped file, from 10^6 to 3 * 10^6 rows: {human_bytes(max(0, grown))} more"
    if others:
        text += "\n\n" + peers.shown(others, rows * (SEQ_LEN + 1))
    measured = {**shares, "memory": 2 * 2**20 / max(1, grown), **peers.ratios(others.get(peers.FLOORS_AT, {}))}
    document = {"shares": shares, "grown": grown, "cpu_seconds": others}
    return report(document, text, judged("loader", measured), options.json)


argparse_help = "print the private bytes of a process that has read batches of a partition of this many rows"


def _stored(store: Store, scratch: Path, rows: int, shards: int, seq_len: int = SEQ_LEN) -> Partition:
    """A partition of random tokens; side tables that the loader does not read are those of an empty shard."""
    rng = np.random.default_rng(0)
    lists = pa.table([pa.array([], f.type) for f in schema.PACK_ROWS], schema=schema.PACK_ROWS)
    documents = pa.table([pa.array([], f.type) for f in schema.PACK_DOCS], schema=schema.PACK_DOCS)
    rest = store.commit(
        Unit("bench", 1, {}, ()), {"rows": store.draft_table(lists), "docs": store.draft_table(documents)}
    ).outputs
    per_row = -(-(seq_len + 1) // DOCUMENT)
    lengths = np.full(per_row, DOCUMENT)
    lengths[-1] = seq_len + 1 - DOCUMENT * (per_row - 1)
    made = []
    for number, part in enumerate(np.array_split(np.arange(rows), shards)):
        path = scratch / "part"
        n = len(part)
        shard = write_token_shard(path, rng.integers(0, 50_000, (n, seq_len + 1), np.uint16))
        pieces = pieces_of(per_row * np.arange(1, n + 1), np.tile(lengths, n)).tobytes()
        drafts = {"tokens": store.draft_file(path, content=shard.content, rows=n), "pieces": store.draft_bytes(pieces)}
        files = store.commit(Unit("bench", 1, {"shard": number, "rows": rows, "of": shards}, ()), drafts).outputs
        made.append(PackedShard(files["tokens"], rest["rows"], rest["docs"], n, shard.payload, files["pieces"]))
        path.unlink()
    return Partition(seq_len, 2, 0, 0, 0, rows, 0, tuple(made))


def _loader(store: Store, partition: Partition) -> tuple[Loader, Plan]:
    plan = Plan(1, BATCH, {"p": partition.sequences}, (Stage(partition.sequences, {"p": 1}),))
    return Loader(store, cast(Any, SimpleNamespace(partitions={"p": partition})), plan), plan


def _epoch(store: Store, partition: Partition) -> float:
    """CPU seconds of a first epoch."""
    loader, plan = _loader(store, partition)
    loader.batch(0)  # compiled kernels are loaded
    loader.close()
    loader, plan = _loader(store, partition)
    began = cpu_seconds()
    for step in range(plan.steps):
        loader.batch(step)
    return cpu_seconds() - began


def _raw(path: Path, rows: int) -> Callable[[], float]:
    """One file of tokens, and an epoch of gathering rows of it."""
    np.random.default_rng(1).integers(0, 50_000, (rows, SEQ_LEN + 1), np.uint16).tofile(path)
    mapped = np.memmap(path, np.uint16, "r", shape=(rows, SEQ_LEN + 1))
    order = np.random.default_rng(2).permutation(rows)

    def once() -> float:
        began = cpu_seconds()
        for begin in range(0, len(order), BATCH):
            rows = mapped[order[begin : begin + BATCH]].astype(np.int64)
            rows[:, 1:].copy()
        return cpu_seconds() - began

    return once


def _memory(rows: int) -> int:
    """Private bytes of this process after batches from everywhere in a partition of short rows."""
    with tempfile.TemporaryDirectory(prefix="bench-loader-") as scratch:
        code = (
            "import sys; from pathlib import Path; from bench.loader import __main__ as m; "
            "from corpusmill.store import open_store; import pickle; "
            "s = open_store(sys.argv[1] + '/store', create=True); "
            "p = m._stored(s, Path(sys.argv[1]), int(sys.argv[2]), 4, 62); "
            "open(sys.argv[1] + '/p', 'wb').write(pickle.dumps(p))"
        )
        subprocess.run([sys.executable, "-c", code, scratch, str(rows)], check=True)
        read = (
            "import sys, pickle; from bench.loader import __main__ as m; from corpusmill.store import open_store; "
            "p = pickle.load(open(sys.argv[1] + '/p', 'rb')); "
            "l, plan = m._loader(open_store(sys.argv[1] + '/store'), p); "
            "[l.batch(step) for step in range(0, plan.steps, max(1, plan.steps // 2000))]; "
            "print([x for x in open('/proc/self/smaps_rollup') if x.startswith('Anonymous')][0].split()[1])"
        )
        done = subprocess.run([sys.executable, "-c", read, scratch], check=True, capture_output=True, text=True)
    return 1024 * int(done.stdout)


def _grown() -> int:
    return _memory(3_000_000) - _memory(1_000_000)


if __name__ == "__main__":
    run(main)
