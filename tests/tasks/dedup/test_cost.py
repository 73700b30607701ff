"""What deduplication will take, and what it proved, in words."""

from __future__ import annotations

import pytest

from corpusmill.dataset.manifest import Proofs
from corpusmill.dataset.proofs import near_duplicates
from corpusmill.store import Unit
from tasks import dedup
from tasks.dedup.cost import cost
from tasks.dedup.parts.search import fits
from tests import manifests
from tests.tasks.dedup.corpus import families, recipe, shards, store_at
from tests.tasks.dedup.test_near import inline, over


def test_few_documents_take_a_unit_a_stage_and_no_exchange():
    small = cost(4e6, 3, recipe())
    assert (small.documents, small.units, small.exchange_bytes) == (1000, 4, 0)
    assert list(small.stages) == ["exact", "near", "heldout", "leaks"]
    assert small.memory_bytes < 2**20


def test_many_documents_stay_near_the_memory_they_are_granted():
    """A hundred million, in 10,000 shards: units and exchange grow, memory by a narrow row a document only."""
    large = cost(4e11, 10_000, recipe(memory_mb=4096))
    assert large.documents == 100_000_000
    assert 4 * 2**30 < large.memory_bytes <= 13_000_000_000
    assert large.ranges > 10
    assert large.exchange_bytes > 100_000_000 * 14 * 20
    assert large.core_hours == pytest.approx(sum(stage.core_hours for stage in large.stages.values()))
    assert large.stages["heldout"].core_hours + large.stages["leaks"].core_hours == pytest.approx(0.628, abs=0.001)
    more = cost(4e11, 10_000, recipe(memory_mb=4096, lines="line", substring_words=50))
    assert more.stages["substrings"].core_hours > more.stages["lines"].core_hours > 1
    tight = cost(4e11, 10_000, recipe(memory_mb=1024))
    assert tight.units > large.units
    assert tight.exchange_bytes == large.exchange_bytes


def test_the_estimate_and_the_search_cut_alike(tmp_path):
    made, store = recipe(memory_mb=1), store_at(tmp_path / "s")
    docs = families(440, 4, 60)
    held = shards([docs[:1100], docs[1100:]], made, store)
    assert not fits(held, made)
    assert cost(len(docs) * 4000, 2, made).ranges > 1
    done = over(held, dedup.exact(held, made, store).receipt, made, store, run=inline)
    buckets = [d for d in done if d.receipt.stage == "near.buckets"]
    assert len(buckets) == cost(len(docs) * 4000, 2, made).ranges * (done[-1].receipt.facts["rounds"] + 1)


def apart(store):
    """Receipts of a search for copies of held-out documents, and of a search for leaks, that found none."""
    facts = {"drawn": 0, "copies": 0, "rounds": 1, "trained": 0}
    return [store.commit(Unit(stage, 1, {}, ()), {}, facts=facts) for stage in ("heldout", "leaks")]


@pytest.mark.parametrize("tested", [True, False])
def test_proofs_are_told_in_words(tmp_path, tested):
    made, store = recipe(lines="line", lines_min_documents=2), store_at(tmp_path / "s")
    docs = families(6, 3) if tested else families(1, 0, 8)
    held = shards([docs], made, store)
    exact = dedup.exact(held, made, store).receipt
    near = over(held, exact, made, store)[-1].receipt
    found = dedup.repeats(inline, held, exact, near, made, store)
    said = dedup.searched(near, found, *apart(store))
    manifest = manifests.made(proofs=Proofs({}, near.facts["proof"]), deduplicate=said)
    told = near_duplicates(manifest)
    assert "on made-up pairs of known similarity" in told
    assert ("pairs of this corpus" in told) == tested
    assert ("on edited copies of" in told) == tested
    assert "pairs compared in" in told
