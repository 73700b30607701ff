"""Near duplicates over shards: one answer however the work is cut, and every removal verified."""

from __future__ import annotations

import json
import random
from collections import Counter

import pyarrow.compute as pc
import pytest

from corpusmill.engine.local import Engine
from corpusmill.processes import forget_peak, peak_bytes
from tasks import dedup
from tests.tasks.dedup.corpus import Doc, families, recipe, shards, store_at


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
    _, _, near = run([docs[:37], docs[37:]], made, store)
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


def inline(stage, unit, jobs):
    return [unit(job) for job in jobs]


def whole(job):
    held, exact, earlier = job.item
    return dedup.near(held, exact, job.recipe, store_at(job.uri), earlier)


def over(held, exact, made, store, run=inline, earlier=None):
    return dedup.near_over(run, whole, held, exact, made, store, earlier)


@pytest.mark.parametrize("ranges", [1, 5, 23])
def test_parts_through_the_store_give_the_same_receipt(tmp_path, ranges, monkeypatch):
    """Contents, counts and facts, proof included; the units in between are of no account."""
    docs = [*families(440, 4), *(Doc(f"tiny {i}", "too short", None) for i in range(5)), *crowd(40)]
    random.Random(3).shuffle(docs)
    parts = [docs[:900], docs[900:901], docs[901:1100], docs[1100:]]
    monkeypatch.setattr("tasks.dedup.parts.ranges.ENTRY_BYTES", ranges * 2**20 // (2 * len(docs) * 14))
    one, two = store_at(tmp_path / "one"), store_at(tmp_path / "two")
    made = recipe(memory_mb=2048, min_jaccard=0.93)
    held = shards(parts, made, one)
    local = over(held, dedup.exact(held, made, one).receipt, made, one)
    assert [done.receipt.stage for done in local] == ["near"]
    small = recipe(memory_mb=1, min_jaccard=0.93)
    held = shards(parts, small, two)
    cut = over(held, dedup.exact(held, small, two).receipt, small, two)
    rounds = local[-1].receipt.facts["rounds"]
    assert len([done for done in cut if done.receipt.stage == "near.buckets"]) == ranges * (rounds + 1)
    assert cut[-1].receipt.key == local[-1].receipt.key
    assert cut[-1].receipt.agrees(local[-1].receipt)
    assert rounds > 1
    assert removals(cut[-1].receipt, two) == removals(local[-1].receipt, one)


@pytest.mark.parametrize("memory_mb", [1, 2048])
def test_the_memory_that_units_took_is_kept_beside_what_was_granted(tmp_path, memory_mb):
    store, made = store_at(tmp_path / "s"), recipe(memory_mb=memory_mb)
    docs = families(440, 4)
    held = shards([docs[:900], docs[900:]], made, store)
    exact = dedup.exact(held, made, store).receipt
    done = over(held, exact, made, store)
    (name,) = store.list("runs/")
    kept = json.loads(store.get(name))
    assert kept["granted_bytes"] == memory_mb * 2**20
    stages = Counter(one.receipt.stage for one in done if one.receipt.stage != "near") or Counter(["near"])
    assert {stage: told["units"] for stage, told in kept["stages"].items() if stage != "near.finish"} == stages
    assert all(2**26 < told["before_bytes"] <= told["peak_bytes"] < 2**32 for told in kept["stages"].values())
    assert over(held, exact, made, store)[-1].reused
    assert store.list("runs/") == [name]  # nothing ran, nothing to tell


def test_what_a_unit_held_is_seen_and_forgotten():
    forget_peak()
    before = peak_bytes()
    assert len(bytearray(2**27)) == 2**27
    assert peak_bytes() > before + 2**26
    forget_peak()
    assert peak_bytes() < before + 2**26


def crowd(count):
    """Documents of one bucket of which most are no copies of the first: more rounds than one."""
    docs = []
    for i in range(count):
        base = families(1, 0)[0].text.split()
        for k in range(8 * (i % 9)):
            base[(k * 23 + 3) % len(base)] = f"other{i % 9}x{k}"
        base[i] = f"own{i}"
        docs.append(Doc(f"crowd {i}", " ".join(base)))
    return docs


@pytest.mark.long
def test_one_two_and_four_workers_give_the_same_receipts(tmp_path):
    """Through the store in parts, and repeated passages too: by processes that share nothing but the store."""
    docs = [*families(440, 4, 60), *crowd(20)]
    made = recipe(memory_mb=1, lines="line", lines_min_documents=2, substring_words=50)
    results = []
    for workers in (1, 2, 4):
        store = store_at(tmp_path / str(workers))
        held = shards([docs[:900], docs[900:1300], docs[1300:]], made, store)
        with Engine(workers) as engine:

            def run(stage, unit, jobs, engine=engine):
                return engine.map(unit, jobs)

            exact = dedup.exact(held, made, store).receipt
            done = over(held, exact, made, store, run=run)
            repeated = dedup.repeats(run, held, exact, done[-1].receipt, made, store)
        assert len({one.receipt.key for one in done if one.receipt.stage == "near.buckets"}) > 1
        results.append([*(one.receipt for one in done), *(receipt for _, receipt in repeated.receipts)])
    for other in results[1:]:
        assert len(other) == len(results[0])
        assert all(a.key == b.key and a.agrees(b) for a, b in zip(results[0], other, strict=True))


def test_rows_of_one_shard_are_read_from_few_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr("tasks.dedup.outcome.GROUP_BYTES", 800)
    store, made = store_at(tmp_path / "s"), recipe()
    docs = families(20, 4)
    _, _, near = run([docs[:40], docs[40:41], docs[41:]], made, store)
    found = near.outputs["found"]
    whole_table = store.table(found)
    for number in range(4):
        rows = dedup.of_shard(found, number, store)
        assert rows.equals(whole_table.filter(pc.equal(whole_table.column("shard"), number)))
