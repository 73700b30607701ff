"""Near-duplicates from text to keepers: signatures, bands, exact verification, on real pages and on hostile ones."""

from __future__ import annotations

import gzip
import json
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from corpusmill.kernels.duplicates import jaccard, lsh, minhash
from corpusmill.kernels.duplicates.keepers import Keepers, KeeperSearch, preference_rank

BANDS, ROWS, NGRAM, THRESHOLD = 14, 8, 5, 0.8


def read_lines(path: Path) -> list[dict]:
    data = path.read_bytes()
    lines = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


@dataclass(frozen=True)
class Found:
    keepers: Keepers
    sets: jaccard.Sets


def deduplicate(documents: list[str], *, order: np.ndarray | None = None, max_pivots: int = 4) -> Found:
    """Keepers of documents, searched in the given order and given in the original one."""
    order = np.arange(len(documents)) if order is None else order
    text = pa.array([documents[d] for d in order], pa.large_string())
    signed = minhash.signatures(text, ngram=NGRAM, num_perm=BANDS * ROWS, seed=17)
    sets = jaccard.Sets(*minhash.shingle_sets(text, NGRAM))
    assert np.diff(sets.offsets).tolist() == signed.shingles.tolist()
    ids = [int(d).to_bytes(16, "big") for d in order]
    rank = preference_rank(np.array([len(documents[d].encode()) for d in order]), [None] * len(ids), ids)
    keys = lsh.band_keys(signed.signature, BANDS, ROWS)
    search = KeeperSearch(keys, rank, signed.shingles, min_jaccard=THRESHOLD, max_pivots=max_pivots)
    while len(pairs := search.next_pairs()):
        search.settle(jaccard.jaccard(sets, sets, pairs))
    return Found(search.result(), sets)


@pytest.fixture(scope="module")
def revisions(data_dir) -> list[dict]:
    return read_lines(data_dir / "neardup" / "doc-revisions" / "docs.jsonl.gz")


@pytest.fixture(scope="module")
def found(revisions) -> Found:
    return deduplicate([d["text"] for d in revisions])


def test_real_revisions_leave_few_similar_pairs_among_the_kept(found):
    """All pairs are compared: of two similar documents that were both kept, none met in a bucket."""
    kept = np.flatnonzero(found.keepers.keeper < 0)
    left, right = np.triu_indices(len(found.sets), 1)
    exact = jaccard.jaccard(found.sets, found.sets, np.stack([left, right], axis=1))
    similar = exact >= THRESHOLD
    both_kept = np.isin(left, kept) & np.isin(right, kept) & similar
    expected = sum(1 - lsh.collision_probability(j, BANDS, ROWS) for j in exact[similar])
    assert similar.sum() > 500
    assert both_kept.sum() <= expected + 4 * expected**0.5
    assert found.keepers.complete


def test_real_removals_are_true_by_an_independent_count(revisions, found, data_dir):
    """The pairs of the data set were computed elsewhere, with a slightly other idea of a word."""
    pairs = read_lines(data_dir / "neardup" / "doc-revisions" / "pairs_j5_ge_0.2.jsonl.gz")
    listed = {frozenset((p["a"], p["b"])): p["jaccard"] for p in pairs}
    removed = np.flatnonzero(found.keepers.keeper >= 0)
    assert len(removed) > 200
    differences = []
    for d in removed.tolist():
        pair = frozenset((revisions[d]["id"], revisions[found.keepers.keeper[d]]["id"]))
        differences.append(abs(listed.get(pair, 0.0) - found.keepers.similarity[d]))
    assert max(differences) < 0.1
    assert np.mean(differences) < 0.01


def test_real_keepers_do_not_depend_on_the_order_of_the_input(revisions, found):
    order = np.random.default_rng(5).permutation(len(revisions))
    other = deduplicate([d["text"] for d in revisions], order=order).keepers
    back = np.where(other.keeper < 0, -1, order[other.keeper])
    assert np.array_equal(back, found.keepers.keeper[order])
    assert np.array_equal(other.similarity, found.keepers.similarity[order], equal_nan=True)


def test_hostile_clusters(data_dir):
    rows = read_lines(data_dir / "hostile" / "B39-clusters.jsonl")
    keepers = deduplicate([r["text"] for r in rows]).keepers
    names = [r["id"].rsplit("-", 1)[0] for r in rows]
    assert (keepers.keeper < 0).sum() == 4
    assert all(names[d] == names[keepers.cluster[d]] for d in range(len(rows)) if not names[d].endswith("single"))
    assert sorted(keepers.cluster_size.tolist()) == [1, 1, 2, 2, 3, 3, 3]


def test_hostile_boilerplate_bucket_is_bounded(data_dir):
    rows = read_lines(data_dir / "hostile" / "B44-boilerplate-bucket.jsonl.gz")
    began = time.process_time()
    keepers = deduplicate([r["text"] for r in rows]).keepers
    assert time.process_time() - began < 60
    assert len(rows) == 3000
    assert (keepers.keeper < 0).sum() == 1
    assert keepers.comparisons <= 30_000
    assert set(keepers.cluster_size.tolist()) == {3000}


def test_hostile_tiny_documents_are_no_duplicates_of_one_another(data_dir):
    rows = read_lines(data_dir / "hostile" / "B35-tiny-documents.jsonl")
    keepers = deduplicate([r["text"] for r in rows]).keepers
    assert (keepers.keeper < 0).all()
    assert keepers.comparisons == 0
