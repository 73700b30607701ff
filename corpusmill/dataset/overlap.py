"""Held-out documents that share a word 13-gram with text that is trained on: found once a dataset, then read.

The texts are those of the packed pieces, decoded: exactly what a model reads in one context. It is no stage of the
build: so every dataset that was ever published has it, its manifest stays, and a dataset on which nothing is evaluated
does not pay. The result is a unit of the store like any other, so the second to ask finds its receipt.

Costs one pass of the benchmark screen (kernels/screen) over the text to train on, and memory for the n-grams of what is
held out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill import schema
from corpusmill.canonical import digest_of
from corpusmill.dataset.manifest import HELDOUT, Manifest, PackedShard, Partition
from corpusmill.kernels.screen.screen import Index, Source, build_index, documents
from corpusmill.store import Receipt, Store, Unit
from corpusmill.tokens.tokenizer import Tokenizer

VERSION = 1
NGRAM = 13
"""Words, as in the benchmark screen (Brown et al. 2020)."""
BATCH_ROWS = 512
REBUILD = 0.1
"""The index is made anew without what was found once that is this share of it: common text is not found for ever."""

SHARED = pa.schema([pa.field("doc_id", schema.DOC_ID, nullable=False)])
"""Held-out documents that share an n-gram with what is trained on, ascending."""


def shared(store: Store, held: Manifest, trained: Sequence[Manifest] = ()) -> set[bytes]:
    """The doc_ids of held-out documents that share a 13-gram with text to train on; made where nobody asked before.

    Args:
        held: the dataset that holds out.
        trained: those that are trained on; default: the same one.
    """
    receipt = found(store, held, trained) or _make(store, held, trained)
    return set(store.table(receipt.outputs["shared"]).column("doc_id").to_pylist())


def found(store: Store, held: Manifest, trained: Sequence[Manifest] = ()) -> Receipt | None:
    """The result of an earlier search; None if there was none."""
    return store.receipt(_unit(held, trained or (held,)))


def _unit(held: Manifest, trained: Sequence[Manifest]) -> Unit:
    both = (_identity(held, True), *sorted({_identity(one, False) for one in trained}))
    return Unit("heldout_overlap", VERSION, {"ngram": NGRAM}, both)


def _identity(manifest: Manifest, is_held: bool) -> str:
    shards = [
        [name, [(shard.tokens.identity, shard.rows.identity) for shard in part.shards]]
        for name, part in sorted(_partitions(manifest, is_held).items())
    ]
    return digest_of([shards, manifest.vocabulary.output.digest, manifest.vocabulary.eos])


def _partitions(manifest: Manifest, is_held: bool) -> dict[str, Partition]:
    return {name: part for name, part in manifest.partitions.items() if (name == HELDOUT) == is_held}


def _make(store: Store, held: Manifest, trained: Sequence[Manifest]) -> Receipt:
    owners, texts = list[bytes](), list[str]()
    for part in _partitions(held, True).values():
        for ids, pieces in _pieces(store, part, held):
            owners += ids
            texts += pieces
    left = set(range(len(texts)))
    hits, index, stale = set[int](), _index(texts, left), 0
    for manifest in trained or (held,):
        for part in _partitions(manifest, False).values():
            for _, pieces in _pieces(store, part, manifest):
                fresh = _found(pieces, index) - hits
                hits |= fresh
                stale += len(fresh)
                if stale > REBUILD * len(left):
                    left, stale = left - hits, 0
                    index = _index(texts, left)
    names = sorted({owners[i] for i in hits})
    table = pa.table([pa.array(names, SHARED.field("doc_id").type)], schema=SHARED)
    facts = {"documents": len(set(owners)), "shared": len(names)}
    return store.commit(_unit(held, trained or (held,)), {"shared": store.draft_table(table)}, facts=facts)


def _index(texts: Sequence[str], numbers: set[int]) -> Index:
    return build_index([Source(HELDOUT, [(str(i), texts[i]) for i in sorted(numbers)], NGRAM)])


def _found(texts: Sequence[str], index: Index) -> set[int]:
    if not index.ngrams:
        return set()
    matches = documents(pa.array(texts, pa.large_string()), index)
    return {int(part.items[match.item].id) for part, document in matches for match in document.matches}


def _pieces(store: Store, part: Partition, manifest: Manifest) -> Iterator[tuple[list[bytes], list[str]]]:
    """Owners and texts of the pieces of some rows at a time."""
    vocabulary = manifest.vocabulary
    tokenizer = Tokenizer(store.bytes(vocabulary.output), vocabulary.eos)
    for shard in part.shards:
        ids = store.table(shard.docs, ["doc_id"]).column("doc_id").to_pylist()
        table = store.table(shard.rows)
        begin = 0
        for rows in _rows(store, shard, part):
            owners, texts = list[bytes](), list[str]()
            side = table.slice(begin, len(rows)).to_pylist()
            for row, pieces in zip(rows, side, strict=True):
                ends: Any = np.cumsum(pieces["doc_lens"])
                for end, size, ref in zip(ends.tolist(), pieces["doc_lens"], pieces["doc_refs"], strict=True):
                    owners.append(ids[ref])
                    texts.append(tokenizer.decode(row[end - size : end].tolist()))
            begin += len(rows)
            yield owners, texts


def _rows(store: Store, shard: PackedShard, part: Partition) -> Iterator[NDArray[np.unsignedinteger]]:
    kind = np.dtype("<u2" if part.token_bytes == 2 else "<u4")
    for batch in store.batches(shard.tokens, [schema.TOKENS_COLUMN], BATCH_ROWS):
        data = b"".join(batch.column(0).to_pylist())
        yield np.frombuffer(data, kind).reshape(batch.num_rows, -1)
