"""`mill evaluate`: a checkpoint on held-out documents and on benchmarks; the result is kept under its run.

runs/<run id>/evaluation.<step, 8 digits>.<manifest, 16>[.<digest of the benchmarks, 8>].json     all figures
runs/<run id>/evaluation.<step, 8 digits>.<manifest, 16>.parquet                                 one row a document
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from corpusmill import benchmarks, schema
from corpusmill.canonical import sha256
from corpusmill.dataset import overlap
from corpusmill.dataset.ancestry import datasets_of
from corpusmill.dataset.buckets import parts_of
from corpusmill.dataset.manifest import HELDOUT, Manifest
from corpusmill.errors import NotFound, Refused
from corpusmill.store import Store
from corpusmill.store.receipts import seal
from training.data import Batch, Partition
from training.evaluate import Documents, Scores, scores
from training.model import Layout
from training.use.choices import answers
from training.use.seen import trained_on
from training.use.trained import Trained

ROW_TOKENS = 8192
"""Held-out rows are computed together up to this many tokens."""

DOCUMENTS = pa.schema(
    [
        pa.field("doc_id", schema.DOC_ID, nullable=False),
        pa.field("url", pa.string()),
        pa.field("partition", pa.string(), nullable=False),
        pa.field("labels", pa.int64(), nullable=False),
        pa.field("text_bytes", pa.int64(), nullable=False),
        pa.field("nll", pa.float64(), nullable=False),
        pa.field("bits_per_byte", pa.float64()),  # null for a document without text
        pa.field("shares_ngram", pa.bool_(), nullable=False),
    ]
)
"""Every held-out document, in the order of the shards."""


def evaluate(
    store: Store, trained: Trained, digest: str, manifest: Manifest, names: Sequence[str] = (), items: int | None = None
) -> dict[str, Any]:
    """Bits per byte of a dataset's held-out documents, and accuracies on benchmarks of multiple choice.

    Args:
        names: registered benchmarks. items: only the first so many of each.

    Returns:
        plain JSON: checkpoint, manifest, all, partitions, benchmarks, stored.

    Raises:
        NotFound: the dataset holds nothing out. Refused: it has another tokenizer.
    """
    asked = [(name, benchmarks.questions(name)[:items]) for name in names]  # faults before work
    document: dict[str, Any] = {
        "checkpoint": trained.commit.name,
        "manifest": digest,
        "trained_on": trained.commit.facts["manifest_sha256"],
        **_heldout(store, trained, digest, manifest),
        "benchmarks": {name: _accuracy(trained, questions) for name, questions in asked},
    }
    data = seal(document)
    return document | {"stored": _keep(store, trained, digest, data, "json")}


def _keep(store: Store, trained: Trained, digest: str, data: bytes, suffix: str) -> str:
    """Store a result under the run; its name."""
    place = f"runs/{trained.run_id}/evaluation.{trained.commit.step:08d}.{digest[:16]}"
    name = f"{place}.{sha256(data)[:8]}.{suffix}"
    store.put(name, data)
    return name


def _heldout(store: Store, trained: Trained, digest: str, manifest: Manifest) -> dict[str, Any]:
    part = manifest.partitions.get(HELDOUT)
    if part is None or not part.sequences:
        raise NotFound(
            f"dataset {manifest.name} keeps nothing held out",
            f"its partitions are {', '.join(manifest.partitions) or 'none'}",
            "Build it with pack.heldout_one_in, or evaluate on another: --on REF.",
        )
    if manifest.vocabulary.output.digest != trained.manifest.vocabulary.output.digest:
        theirs, ours = (m.vocabulary.output.digest for m in (manifest, trained.manifest))
        raise Refused(
            f"dataset {manifest.name} has another tokenizer than {trained.commit.name}",
            f"{theirs} is not {ours}",
            "Build that dataset with the model's tokenizer (pack.tokenizer), or evaluate on another.",
        )
    facts = trained.commit.facts
    shared = overlap.shared(store, manifest, trained_on(store, datasets_of(facts), facts))
    documents, partition = Documents.of(store, manifest), Partition(store, part)
    rows = np.arange(part.sequences)
    found = scores(documents, partition, rows, lambda b: _losses(trained, b), max(1, ROW_TOKENS // part.seq_len))
    sources, buckets = _sources(store, manifest), parts_of(store, manifest, documents.ids)
    places = zip(documents.shard.tolist(), buckets, strict=True)
    names = np.array([f"{sources[number]}{bucket}" for number, bucket in places], object)
    dirty = np.array([one in shared for one in documents.ids], bool)
    stored = _keep(store, trained, digest, _table(documents, found, names, dirty), "parquet")
    every = np.ones(len(names), bool)
    return {
        "all": _figures(found, every, dirty),
        "partitions": {name: _figures(found, names == name, dirty) for name in sorted(set(names.tolist()))},
        "documents": stored,
    }


def _losses(trained: Trained, batch: Batch) -> torch.Tensor:
    head_dim = trained.config.dim // trained.config.heads
    layout = Layout.of(batch.piece_length, batch.labels.shape[1], head_dim, trained.rope_base, trained.device)
    tokens, labels = (torch.from_numpy(a).to(trained.device) for a in (batch.tokens, batch.labels))
    lost: torch.Tensor = trained.model(tokens, labels, layout, "none")
    return lost


def _sources(store: Store, manifest: Manifest) -> list[str]:
    """Where the documents of each held-out shard would be trained on: the source of its window; else `heldout`."""
    windows: dict[str, str] = {}
    if "lineage" in manifest.tables:
        table = store.table(manifest.table("lineage"), ["stage", "locator", "kind", "name"])
        windows = {
            row["name"]: row["locator"].rpartition("/")[0]
            for row in table.to_pylist()
            if row["stage"] == "pack" and row["kind"].startswith(f"{HELDOUT}.tokens")
        }
    return [windows.get(shard.tokens.name) or HELDOUT for shard in manifest.partitions[HELDOUT].shards]


def _figures(found: Scores, among: Any, dirty: Any) -> dict[str, Any]:
    clean = among & ~dirty
    return {
        "documents": int(among.sum()),
        "text_bytes": int(found.text_bytes[among].sum()),
        "bits_per_byte": found.bits_per_byte(among),
        "clean_documents": int(clean.sum()),
        "clean_text_bytes": int(found.text_bytes[clean].sum()),
        "clean_bits_per_byte": found.bits_per_byte(clean),
    }


def _table(documents: Documents, found: Scores, names: Any, dirty: Any) -> bytes:
    sizes = documents.text_bytes
    bits = [loss / math.log(2) / size if size else None for loss, size in zip(found.nll, sizes.tolist(), strict=True)]
    columns = [documents.ids, documents.urls, names.tolist(), found.labels, sizes, found.nll, bits, dirty]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, DOCUMENTS, strict=True)]
    file = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(arrays, schema=DOCUMENTS), file)
    return file.getvalue()


def _accuracy(trained: Trained, questions: Sequence[benchmarks.Question]) -> Mapping[str, Any]:
    done = answers(trained, questions)
    chance = sum(1 / len(question.choices) for question in questions)
    number = len(done)
    return {
        "items": number,
        "accuracy": sum(one.raw == one.question.answer for one in done) / number if number else None,
        "normalised_accuracy": sum(one.normalised == one.question.answer for one in done) / number if number else None,
        "chance": chance / number if number else None,
    }
