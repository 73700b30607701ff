"""Near duplicates over shards: one answer however the work is cut, and every removal verified."""

from __future__ import annotations

import random

import pytest

from tasks import dedup
from tests.dedup.corpus import Doc, doc_id, families, recipe, shards, store_at


def run(parts, made, store, earlier=None):
    held = shards(parts, made, store)
    exact = dedup.exact(held, made, store, earlier).receipt
    return held, exact, dedup.near(held, exact, made, store, earlier).receipt


def removals(receipt, store) -> dict[bytes, tuple]:
    rows = store.table(receipt.outputs["found"]).to_pylist()
    return {r["doc_id"]: (r["keeper"], r["similarity"], r["cluster"], r["cluster_size"]) for r in rows}


def test_copies_go_and_name_a_kept_one(tmp_path):
    store, made = store_at(tmp_path / "s"), recipe()
    docs = families(20, 4)
    _, exact, near = run([docs[:37], docs[37:]], made, store)
    rows = store.table(near.outputs["found"]).to_pylist()
    kept = {r["doc_id"] for r in rows if r["keeper"] is None}
    assert len(kept) < 45
    assert all(r["keeper"] in kept and r["similarity"] >= 0.8 for r in rows if r["keeper"])
    assert near.facts["proof"]["planted"]["recall"]["of"] > 0


@pytest.mark.parametrize("seed", [1, 2])
def test_shuffled_and_split_shards_give_the_same_removals(tmp_path, seed):
    store, made = store_at(tmp_path / "s"), recipe()
    docs = families(20, 4)
    _, _, one = run([docs], made, store)
    shuffled = list(docs)
    random.Random(seed).shuffle(shuffled)
    _, _, other = run([shuffled[:30], shuffled[30:31], shuffled[31:]], made, store)
    assert removals(one, store) == removals(other, store)
