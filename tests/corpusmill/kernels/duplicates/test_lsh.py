"""Bands and buckets: equal rows meet, and as often as the S-curve says."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.kernels.duplicates import lsh


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 5), max_size=80))
def test_keys_are_sorted_stably(keys):
    order = lsh.sort_by_key(np.array(keys, np.uint64))
    assert order.tolist() == sorted(range(len(keys)), key=lambda i: (keys[i], i))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 6), max_size=40))
def test_buckets_are_the_groups_of_equal_keys(keys):
    found = lsh.buckets(np.array(keys, np.uint64))
    groups = [found.members[a:b].tolist() for a, b in zip(found.offsets[:-1], found.offsets[1:], strict=True)]
    expected = [[i for i, k in enumerate(keys) if k == key] for key in sorted(set(keys)) if keys.count(key) > 1]
    assert groups == expected


def test_band_keys_are_equal_where_the_rows_are_and_differ_between_bands():
    signatures = np.random.default_rng(0).integers(0, 2**32, (50, 12), dtype=np.uint32)
    signatures[1, :4] = signatures[0, :4]
    signatures[2] = np.tile(signatures[2, :4], 3)  # the same rows in each band
    keys = lsh.band_keys(signatures, bands=3, rows=4)
    assert keys[0, 0] == keys[1, 0]
    assert len(np.unique(keys)) == 50 * 3 - 1


def test_shape_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"shape \(5, 12\) do not hold 3 bands of 5 rows"):
        lsh.band_keys(np.zeros((5, 12), np.uint32), bands=3, rows=5)


@pytest.mark.parametrize("jaccard", [0.5, 0.7, 0.8, 0.9])
def test_share_of_pairs_that_meet_follows_the_s_curve(jaccard):
    rng = np.random.default_rng(7)
    pairs = 20_000
    left = rng.integers(0, 2**32, (pairs, 112), dtype=np.uint32)
    right = np.where(rng.random((pairs, 112)) < jaccard, left, rng.integers(0, 2**32, (pairs, 112), dtype=np.uint32))
    met = (lsh.band_keys(left, 14, 8) == lsh.band_keys(right, 14, 8)).any(axis=1).mean()
    expected = lsh.collision_probability(jaccard, 14, 8)
    assert met == pytest.approx(expected, abs=4 * (expected * (1 - expected) / pairs) ** 0.5 + 1e-4)


def test_collision_probability_of_the_default_bands():
    found = [round(lsh.collision_probability(j, 14, 8), 3) for j in (0.5, 0.7, 0.8, 0.85)]
    assert found == [0.053, 0.565, 0.924, 0.988]


def test_band_keys_are_frozen():
    """Moving them moves candidates: raise the VERSION of the dedup stage with it."""
    keys = lsh.band_keys(np.arange(8, dtype=np.uint32).reshape(1, 8), bands=2, rows=4)
    assert keys.tolist() == [FROZEN]


FROZEN = [12849346627404636413, 9430026708623865463]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 40)), max_size=60), st.integers(1, 4))
def test_buckets_of_entries_are_those_of_their_keys_in_whatever_partition(entries, partitions):
    """Entries in any order, cut by ranges of keys: the same buckets as of all together, members by rank."""
    keys = lsh.spread(np.array([k for k, _ in entries], np.uint64))
    ranks = np.array([r for _, r in entries], np.uint32)
    expected: dict[int, list[int]] = {}
    for key, rank in zip(keys.tolist(), ranks.tolist(), strict=True):
        expected.setdefault(key, []).append(rank)
    found: dict[int, list[int]] = {}
    where = lsh.partition_of(keys, partitions)
    assert not len(where) or (where.min() >= 0 and where.max() < partitions)
    before = -1
    for number in range(partitions):
        here = np.flatnonzero(where == number)
        order, offsets = lsh.bucket_entries(keys[here], ranks[here])
        for a, b in pairwise(offsets):
            key = int(keys[here][order[a]])
            assert key > before  # ranges ascend
            before = key
            found[key] = ranks[here][order[a:b]].tolist()
    assert found == {key: sorted(members) for key, members in expected.items() if len(members) > 1}
