"""Exact similarities, with sets that lie in many shards and do not fit at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.kernels.duplicates.jaccard import Sets, jaccard, join, verify

SETS = st.lists(st.sets(st.integers(0, 25), max_size=12), min_size=1, max_size=12)


def sets_of(documents: list[set[int]]) -> Sets:
    offsets = np.cumsum([0, *(len(d) for d in documents)]).astype(np.int64)
    return Sets(offsets, np.array([v for d in documents for v in sorted(d)], np.uint64))


def all_pairs(n: int) -> np.ndarray:
    return np.array([(i, j) for i in range(n) for j in range(i)], np.int64).reshape(-1, 2)


def plain(documents: list[set[int]], pairs: np.ndarray) -> list[float]:
    return [len(documents[i] & documents[j]) / max(len(documents[i] | documents[j]), 1) for i, j in pairs.tolist()]


@settings(max_examples=80, deadline=None)
@given(SETS)
def test_jaccard_is_exact(documents):
    sets, pairs = sets_of(documents), all_pairs(len(documents))
    assert jaccard(sets, sets, pairs).tolist() == plain(documents, pairs)


@settings(max_examples=80, deadline=None)
@given(
    SETS, st.lists(st.integers(0, 3), min_size=12, max_size=12), st.integers(1, 60), st.randoms(use_true_random=False)
)
def test_verification_by_shards_gives_the_same_within_its_memory(documents, shards, max_values, random):
    pairs = [p for p in all_pairs(len(documents)).tolist() if random.random() < 0.6]
    pairs = np.array(pairs, np.int64).reshape(-1, 2)
    shard = np.array(shards[: len(documents)], np.int64)
    sizes = np.array([len(d) for d in documents], np.int64)
    loads: list[int] = []

    def load(number: int, wanted: np.ndarray) -> Sets:
        assert (shard[wanted] == number).all()
        assert (np.diff(wanted) > 0).all()
        loads.append(number)
        return sets_of([documents[d] for d in wanted])

    assert verify(pairs, shard, sizes, load, max_values=max_values).tolist() == plain(documents, pairs)
    if sizes.sum() <= max_values:
        assert len(loads) == len(set(loads))


def test_joined_sets_are_rebased():
    whole = sets_of([{1}, {2, 3}, set(), {4}])
    part = Sets(whole.offsets[1:], whole.values)
    both = join([part, whole])
    assert np.diff(both.offsets).tolist() == [2, 0, 1, 1, 2, 0, 1]
    assert both.values.tolist() == [2, 3, 4, 1, 2, 3, 4]
    assert len(join([])) == 0


def test_similarity_at_the_threshold_is_not_lost_to_rounding():
    sets = sets_of([set(range(5)), set(range(4))])
    assert jaccard(sets, sets, np.array([[0, 1]]))[0] == pytest.approx(0.8, abs=0)
