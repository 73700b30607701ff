"""Held-out texts kept out of training: CPU and memory at 100,000 and a million made documents.

Two snapshots, deduplicated apart, of documents of 250 words (2 kB). Of the second 3 in 10 are copies of one of the
first: a third equal, a third with one word in 125 replaced, a third with one in 25 (J about 0.7: looked at, no copies).
All were kept. Measured are the two units that a build has for it, each in a process of its own, compiled before:
`heldout`, which finds what to hold out with the 1 in 100 that are drawn, and `leaks`, which compares what was packed.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench.common import REPOSITORY, arguments, judged, note, report, run
from bench.peers.stopwatch import cpu_seconds
from corpusmill import schema
from corpusmill.config import Recipe, parse_recipe
from corpusmill.kernels.duplicates.minhash import signatures
from corpusmill.kernels.duplicates.text_digest import text_digest
from corpusmill.plain_text import human_bytes, table
from corpusmill.processes import forget_peak, peak_bytes
from corpusmill.store import Receipt, Store, Unit, open_store
from tasks import dedup
from tasks.dedup.held_out import drawn
from tasks.dedup.outcome import FOUND, binary
from tasks.shards import Shard, fixed_binary

SIZES = {False: (100_000, 1_000_000), True: (10_000, 100_000)}
SHARD_DOCS = 25_000
WORDS, WORD_BYTES, VOCABULARY = 250, 8, 20_000
COPIES = 0.3
REPLACED = (0, 2, 10)
"""Words of a copy that are not the original's, a third of the copies each."""


def recipe() -> Recipe:
    """The default settings, each snapshot for itself."""
    source = {"made": {"kind": "jsonl", "root": "nowhere"}}
    return parse_recipe({"name": "held-out", "source": source, "deduplicate": {"policy": "within"}}, "held-out")


def words_of(docs: int, snapshot: int) -> NDArray[np.int32]:
    """int32[docs, WORDS], places in a vocabulary; the same in every run."""
    made = np.random.default_rng(17).integers(0, VOCABULARY, (docs, WORDS), dtype=np.int32)
    if not snapshot:
        return made
    rng = np.random.default_rng(18)
    copy = rng.random(docs) < COPIES
    kinds = rng.integers(0, len(REPLACED), docs)
    other = rng.integers(0, VOCABULARY, (docs, WORDS), dtype=np.int32)
    keep = np.zeros((docs, WORDS), np.bool_)
    for kind, replaced in enumerate(REPLACED):
        keep[copy & (kinds == kind)] = np.arange(WORDS) % (WORDS // max(1, replaced)) != 0 if replaced else True
    return np.where(keep, made, other)


def texts_of(words: NDArray[np.int32]) -> pa.LargeStringArray:
    """Each word as seven letters and a blank."""
    letters = np.arange(VOCABULARY)[:, None] // 26 ** np.arange(7) % 26 + 97
    vocabulary = np.concatenate([letters, np.full((VOCABULARY, 1), 32)], axis=1).astype(np.uint8)
    data = vocabulary[words].reshape(len(words), -1)
    offsets = np.arange(len(words) + 1, dtype=np.int64) * data.shape[1]
    return pa.Array.from_buffers(pa.large_string(), len(words), [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def write(folder: Path, docs: int) -> None:
    """Store the shards of a number of documents, and what stages before would have said of them."""
    store, made = open_store(folder, create=True), recipe()
    found, number = [], 0
    for snapshot in (0, 1):
        words = words_of(docs // 2, snapshot)
        for begin in range(0, len(words), SHARD_DOCS):
            text = texts_of(words[begin : begin + SHARD_DOCS])
            ids = binary(np.frombuffer(np.random.default_rng([19, number]).bytes(16 * len(text)), "V16"))
            _shard(store, number, ids, text, made)
            found.append(_kept(number, ids))
            number += 1
    store.commit(Unit("near", 1, {}, ()), {"found": store.draft_table(pa.concat_tables(found))})


def _shard(store: Store, number: int, ids: pa.Array, text: pa.LargeStringArray, made: Recipe) -> None:
    config = made.deduplicate
    signed = signatures(text, ngram=config.ngram, num_perm=config.num_perm, seed=made.seed)
    packed = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(4 * config.num_perm), len(text), [None, pa.py_buffer(signed.signature.astype("<u4").tobytes())]
    )
    digests = pa.table(
        [text_digest(text), pa.array(signed.shingles, pa.int32()), packed],
        schema=schema.signature_group(config.num_perm),
    )
    documents = pa.table({"doc_id": ids, "text": text})
    store.commit(Unit("extract", 1, {"number": number}, ()), {"documents": store.draft_table(documents)})
    store.commit(Unit("judge", 1, {"number": number}, ()), {"digests": store.draft_table(digests)})


def _kept(number: int, ids: pa.Array) -> pa.Table:
    count = len(ids)
    columns = {"shard": np.full(count, number), "row": np.arange(count), "doc_id": ids, "cluster": ids}
    columns |= {"cluster_size": np.ones(count, np.int64)}
    absent = {name: pa.nulls(count, FOUND.field(name).type) for name in FOUND.names if name not in columns}
    return pa.table({name: (columns | absent)[name] for name in FOUND.names}).cast(FOUND)


def shards_of(store: Store, docs: int) -> list[Shard]:
    """The shards that `write` stored."""
    shards: list[Shard] = []
    for snapshot in ("one", "two"):
        for _ in range(0, docs // 2, SHARD_DOCS):
            number = len(shards)
            documents, judged_ = (_stored(store, stage, {"number": number}) for stage in ("extract", "judge"))
            place = f"{number:04d}"
            shards.append(Shard("made", snapshot, place, documents, {"digests": judged_}, judged_, judged_, judged_))
    return shards


def _stored(store: Store, stage: str, config: dict[str, Any]) -> Receipt:
    receipt = store.receipt(Unit(stage, 1, config, ()))
    assert receipt, "written before"
    return receipt


def packs(store: Store, near: Receipt, held: Receipt) -> list[Receipt]:
    """A pack unit that put into partition `heldout` what is to be there."""
    ids = store.table(near.outputs["found"], columns=["doc_id"]).column("doc_id")
    copies = set(store.table(held.outputs["found"], columns=["doc_id"]).column("doc_id").to_pylist())
    each = ids.to_pylist()
    chosen = drawn(each, recipe().pack.heldout_one_in)
    mask = np.array([is_drawn or one in copies for one, is_drawn in zip(each, chosen, strict=True)])
    drafts = {}
    for name, here in (("heldout", mask), ("made", ~mask)):
        docs = pa.table({"doc_id": binary(fixed_binary(ids.filter(pa.array(here))))})
        drafts[f"{name}.docs"] = store.draft_table(docs)
    return [store.commit(Unit("pack", 1, {}, ()), drafts)]


def measured(folder: Path, docs: int) -> dict[str, Any]:
    """CPU and memory of both units over the documents that lie in `folder`."""
    store, made = open_store(folder), recipe()
    near, shards = _stored(store, "near", {}), shards_of(store, docs)
    row: dict[str, Any] = {"docs": docs}

    def unit(name: str, work: Any) -> Receipt:
        forget_peak()
        before, began = peak_bytes(), cpu_seconds()
        receipt: Receipt = work().receipt
        row[name] = {"cpu_s": cpu_seconds() - began, "before_bytes": before, "peak_bytes": peak_bytes()}
        row[name] |= dict(receipt.facts)
        return receipt

    held = unit("heldout", lambda: dedup.hold_out(shards, near, made, store, None))
    packed = packs(store, near, held)
    unit("leaks", lambda: dedup.find_leaks(shards, packed, made, store, None))
    return row


def grown(folder: Path, docs: int) -> dict[str, Any]:
    """Both units over a number of documents in a process of its own; the documents are removed after."""
    note(f"{docs:,} documents")
    for name, count in (("warm", 2000), ("store", docs)):
        write(folder / name, count)
    command = [sys.executable, "-m", "bench.dedup.held_out", "--measure", str(folder), str(docs)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    shutil.rmtree(folder)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def main(argv: Sequence[str]) -> int:
    """Measure, print, and say whether the floors hold."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--measure", nargs=2, metavar=("FOLDER", "DOCS"), help="what lies there, in this process")
    options = parser.parse_args(argv)
    if options.measure:
        folder, docs = Path(options.measure[0]), int(options.measure[1])
        measured(folder / "warm", 2000)
        print(json.dumps(measured(folder / "store", docs)))
        return 0
    with tempfile.TemporaryDirectory(prefix="bench-held-out-") as scratch:
        found = [grown(Path(scratch) / str(docs), docs) for docs in SIZES[options.quick]]
    ratios = {}
    for one in found:
        if one["docs"] == 1_000_000:
            both = [one["heldout"], one["leaks"]]
            ratios["million_under_60_s"] = 60 / sum(unit["cpu_s"] for unit in both)
            ratios["million_under_1_gib"] = 2**30 / max(unit["peak_bytes"] for unit in both)
    rows = [
        (one["docs"], unit, f"{m['cpu_s']:.2f}", m["comparisons"], m.get("copies"), human_bytes(m["peak_bytes"]))
        for one in found
        for unit in ("heldout", "leaks")
        for m in [one[unit]]
    ]
    shown = table(("documents", "unit", "CPU s", "pairs", "copies", "peak memory"), rows, numbers=(0, 2, 3, 4, 5))
    document = {"subject": "held_out", "quick": options.quick, "found": found}
    return report(document, shown, judged("held_out", ratios), options.json)


if __name__ == "__main__":
    run(main)
