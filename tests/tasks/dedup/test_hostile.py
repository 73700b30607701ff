"""Hostile files through the stages, as a build would run them."""

from __future__ import annotations

import gzip
import json
import time

from tasks import dedup
from tests.tasks.dedup.corpus import Doc, recipe, shards, store_at


def rows(path) -> list[dict]:
    data = path.read_bytes()
    data = gzip.decompress(data) if path.suffix == ".gz" else data
    return [json.loads(line) for line in data.split(b"\n") if line]


def deduplicated(path, folder):
    store, made = store_at(folder), recipe()
    docs = [Doc(f"{i}", row["text"]) for i, row in enumerate(rows(path))]
    held = shards([docs[::2], docs[1::2]], made, store)
    exact = dedup.exact(held, made, store).receipt
    near = dedup.near(held, exact, made, store).receipt
    return exact, near, store.table(near.outputs["found"]).to_pylist()


def test_clusters_leave_one_each(tmp_path, data_dir):
    exact, near, found = deduplicated(data_dir / "hostile" / "B39-clusters.jsonl", tmp_path / "s")
    assert near.counters["near.docs_out"] == 4
    assert exact.counters["exact.docs_in"] - near.counters["near.docs_out"] == 3
    kept = {row["doc_id"] for row in found if row["keeper"] is None}
    assert all(row["keeper"] in kept and row["similarity"] >= 0.8 for row in found if row["keeper"])


def test_a_bucket_of_boilerplate_costs_few_comparisons(tmp_path, data_dir):
    began = time.process_time()
    _, near, _ = deduplicated(data_dir / "hostile" / "B44-boilerplate-bucket.jsonl.gz", tmp_path / "s")
    assert time.process_time() - began < 60
    assert near.counters["near.docs_out"] == 1
    assert near.facts["comparisons"] <= 30_000
    assert near.facts["crowded_buckets"] > 0  # the facts say that not all its pairs are compared


def test_tiny_documents_are_no_near_duplicates_of_one_another(tmp_path, data_dir):
    exact, near, _ = deduplicated(data_dir / "hostile" / "B35-tiny-documents.jsonl", tmp_path / "s")
    assert near.facts["comparisons"] == 0
    assert near.counters["near.docs_out"] == near.counters["near.docs_in"]
    assert exact.counters["exact.docs_in"] == 21
