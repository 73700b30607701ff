"""Pack: token shards window by window.

A window is the set of files whose locators hash to it: dropping a document changes only its window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from corpusmill.config import Recipe
from corpusmill.dataset.buckets import parts
from corpusmill.dataset.manifest import HELDOUT
from corpusmill.errors import MillError
from corpusmill.kernels import packing
from corpusmill.kernels.words.table import word_table
from corpusmill.store import Draft, Receipt, Store, Unit
from corpusmill.store.scratch import temporary_folder
from corpusmill.tokens import encoders
from corpusmill.tokens.encoders import Differ, Encoder
from corpusmill.tokens.shards import write_token_shard
from corpusmill.tokens.tokenizer import Tokenizer
from tasks import stages, views
from tasks.dedup.held_out import REASON as COPY
from tasks.dedup.held_out import drawn
from tasks.funnel.tally import Tally
from tasks.shards import Shard
from tasks.units import Done, content_of, libraries, once

BATCH_ROWS = 512


@dataclass(frozen=True)
class Window:
    """Shards of one source that are shuffled and packed together."""

    source: str
    number: int
    count: int
    shards: tuple[Shard, ...]

    @property
    def name(self) -> str:
        """`source/number-of-count`."""
        return f"{self.source}/{self.number}-of-{self.count}"


def windows(shards: Sequence[Shard], recipe: Recipe) -> list[Window]:
    """The windows that hold a shard, by source and number.

    Their number (a power of two) follows from the extracted text, not from what the rules keep.
    """
    made = []
    for source in sorted({shard.source for shard in shards}):
        mine = [shard for shard in shards if shard.source == source]
        size = sum(shard.documents.counters["extract.bytes_out"] for shard in mine)
        count = 1
        while count * recipe.pack.window_bytes < size:
            count *= 2
        for number in range(count):
            inside = tuple(shard for shard in mine if packing.window_of(shard.locator, count) == number)
            if inside:
                made.append(Window(source, number, count, inside))
    return made


@dataclass
class _Partition:
    """What a window puts into one partition, document by document."""

    ids: list[bytes] = field(default_factory=list)
    urls: list[str | None] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    tokens: list[NDArray[np.uint32]] = field(default_factory=list)


def pack_window(window: Window, vocabulary: Receipt, recipe: Recipe, store: Store) -> Done:
    """Token shards of one window: outputs `<partition>.tokens`, `.rows`, `.pieces`, `.docs`; facts place the bytes."""
    config: dict[str, object] = {
        "seq_len": recipe.pack.seq_len,
        "heldout_one_in": recipe.pack.heldout_one_in,
        "seed": recipe.seed,
        "window": window.name,
        "eos": vocabulary.facts["eos"],
        "encoder": recipe.pack.encoder,
    }
    bucketed = {name: list(quality.buckets) for name, quality in recipe.judge.quality.items() if quality.buckets}
    if bucketed:
        config["buckets"] = bucketed
    inputs = tuple(
        content
        for shard in window.shards
        for content in (*shard.view_inputs("final"), content_of(shard.decided, "decisions"))
    )
    inputs += tuple(
        content_of(s.groups[f"quality:{name}"], f"quality:{name}") for s in window.shards for name in bucketed
    )
    models = {"tokenizer": vocabulary.outputs["tokenizer"].digest}
    versions = libraries(encoders.libraries(recipe.pack.encoder))
    unit = stages.PACK.unit(config, inputs, models, versions)
    return once(store, unit, lambda: _pack(unit, window, vocabulary, recipe, store))


def _pack(unit: Unit, window: Window, vocabulary: Receipt, recipe: Recipe, store: Store) -> Receipt:
    tokenizer = Tokenizer(store.bytes(vocabulary.outputs["tokenizer"]), str(vocabulary.facts["eos"]))
    encoder = encoders.encoder(recipe.pack.encoder, tokenizer)
    tally = Tally("pack")
    partitions: dict[str, _Partition] = {}
    for row in _kept(window, recipe, store, encoder):
        part = partitions.setdefault(row.partition, _Partition())
        tally.add_in(1, row.raw_size, row.raw_words)
        if (row.size, row.words) != (row.raw_size, row.raw_words):
            tally.add_reason("edited", 0, row.raw_size - row.size, row.raw_words - row.words)
        if len(row.tokens) == 0:
            tally.add_reason("empty_document", 1, row.size, row.words)
            continue
        if row.copy:
            tally.add_reason(COPY, 1, row.size, row.words)
        else:
            tally.add_out(1, row.size, row.words)
        part.ids.append(row.doc_id)
        part.urls.append(row.url)
        part.sizes.append(row.size)
        part.lengths.append(len(row.tokens))
        part.tokens.append(row.tokens)
    with temporary_folder() as scratch:
        outputs: dict[str, Draft] = {}
        facts: dict[str, object] = {}
        for name, part in sorted(partitions.items()):
            if not part.ids:
                continue
            packed = packing.pack_window(
                part.ids,
                np.concatenate(part.tokens).astype(tokenizer.dtype),
                np.concatenate([[0], np.cumsum(part.lengths)]).astype(np.int64),
                np.array(part.sizes, np.int64),
                part.urls,
                seq_len=recipe.pack.seq_len,
                seed=recipe.seed,
                pad_id=tokenizer.eos_id,
                window=f"{window.name}/{name}",
            )
            path = scratch / f"{name}.tokens"
            shard = write_token_shard(path, packed.tokens)
            outputs[f"{name}.tokens"] = store.draft_file(path, content=shard.content, rows=shard.rows)
            outputs[f"{name}.rows"] = store.draft_table(packed.rows)
            outputs[f"{name}.pieces"] = store.draft_bytes(packed.pieces.tobytes())
            outputs[f"{name}.docs"] = store.draft_table(packed.docs)
            payload = [group.to_json() for group in shard.payload]
            facts[name] = {**packed.stats, "token_bytes": tokenizer.dtype.itemsize, "payload": payload}
        return store.commit(
            unit,
            outputs,
            counters=tally.counters(),
            reasons=tally.reason_counts(),
            facts={"window": window.name, "partitions": facts},
            versions=dict(unit.libraries),
        )


@dataclass(frozen=True)
class _Row:
    doc_id: bytes
    url: str | None
    raw_size: int
    raw_words: int
    size: int
    words: int
    partition: str
    copy: bool
    """Whether it is held out only as a copy of what is."""
    tokens: NDArray[np.uint32]


def _kept(window: Window, recipe: Recipe, store: Store, encoder: Encoder) -> Iterator[_Row]:
    """The kept documents of a window and the copies of held-out ones, tokenised."""
    for shard in window.shards:
        decided = store.table(shard.decisions, columns=["stage", "reason", "cluster"])
        copy = pc.fill_null(pc.equal(decided.column("reason"), COPY), False)
        alive = np.flatnonzero(pc.or_(decided.column("stage").is_null(), copy).to_numpy())
        copies = copy.take(alive).to_pylist()
        held = drawn(decided.column("cluster").take(alive).to_pylist(), recipe.pack.heldout_one_in)
        measured = store.table(shard.attribute("measures"), columns=["text_bytes", "word_total"]).take(alive)
        sizes, words = (column.to_pylist() for column in measured.columns)
        buckets = _buckets(shard, alive, recipe, store)
        final = shard.layers("final")
        begin = at = 0
        columns = ["doc_id", "url", "text"]
        for batch in views.batches(shard.documents, final, store, columns=columns, batch_rows=BATCH_ROWS):
            here = alive[(alive >= begin) & (alive < begin + batch.num_rows)] - begin
            begin += batch.num_rows
            kept = batch.take(pa.array(here))
            texts = kept.column("text").to_pylist()
            left = word_table(kept.column("text")).word_counts().tolist() if final else words[at : at + len(texts)]
            try:
                encoded = encoder.encode(texts)
            except Differ as err:
                found = kept.column("doc_id")[err.number].as_py().hex()
                raise MillError(f"document {found} of {shard.locator}: {err.what}", err.why, err.do) from err
            for doc_id, url, text, count, ids in zip(
                kept.column("doc_id").to_pylist(), kept.column("url").to_pylist(), texts, left, encoded, strict=True
            ):
                partition = HELDOUT if held[at] or copies[at] else f"{shard.source}{buckets[at]}"
                size = len(text.encode("utf-8"))
                yield _Row(doc_id, url, sizes[at], words[at], size, count, partition, copies[at], ids)
                at += 1


def _buckets(shard: Shard, alive: NDArray[np.int64], recipe: Recipe, store: Store) -> list[str]:
    """Which part of its source each kept document goes to, by the classifier that has buckets: `-<name><number>`."""
    for name, quality in sorted(recipe.judge.quality.items()):
        if quality.buckets:
            table = store.table(shard.attribute(f"quality:{name}"), columns=[f"quality_{name}_e6"])
            return parts(name, quality.buckets, table.column(0).take(alive))
    return [""] * len(alive)
