"""Keepers: every removal is verified, whatever the order of the input; crowded buckets cost little."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.kernels.duplicates.jaccard import Sets, jaccard
from corpusmill.kernels.duplicates.keepers import Keepers, KeeperSearch, KeptBefore, preference_rank

THRESHOLD = 0.6


def sets_of(documents: list[set[int]]) -> Sets:
    offsets = np.cumsum([0, *(len(d) for d in documents)]).astype(np.int64)
    return Sets(offsets, np.array([v for d in documents for v in sorted(d)], np.uint64))


def search(documents: list[set[int]], keys: np.ndarray, rank: np.ndarray, **options: int) -> Keepers:
    sets = sets_of(documents)
    found = KeeperSearch(keys, rank, np.diff(sets.offsets), min_jaccard=THRESHOLD, **options)
    while len(pairs := found.next_pairs()):
        found.settle(jaccard(sets, sets, pairs))
    return found.result()


def plain_keepers(documents, keys, rank, max_pivots, max_rounds):
    """The algorithm on Python sets, bucket by bucket: (keeper, comparisons, rounds)."""
    n, bands = keys.shape
    names = sorted(range(n), key=lambda d: rank[d])  # everything below speaks of documents by preference
    content = {d: documents[d] for d in names}
    place = {d: i for i, d in enumerate(names)}
    similarity: dict[tuple[int, int], float] = {}
    pivots: dict[tuple[int, int], list[int]] = {}
    kept = {d for d in names if content[d]}
    rounds = 0
    for _ in range(max_rounds):
        wanted, fresh = set(), False
        for band in range(bands):
            buckets: dict[int, list[int]] = {}
            for d in names:
                if d in kept and content[d]:
                    buckets.setdefault(int(keys[d, band]), []).append(d)
            for key, members in buckets.items():
                if len(members) < 2:
                    continue
                known = pivots.setdefault((band, key), [])
                new = [d for d in members if d not in known][:max_pivots]
                known += new
                fresh = fresh or bool(new)
                wanted |= {
                    tuple(sorted((d, p), key=place.__getitem__))
                    for p in known
                    if p in members
                    for d in members
                    if d != p
                }
        wanted = {
            (a, b)
            for a, b in wanted
            if (a, b) not in similarity
            and min(len(content[a]), len(content[b])) / max(len(content[a]), len(content[b])) >= THRESHOLD
        }
        if not wanted and not fresh:
            break
        rounds += 1
        for a, b in wanted:
            similarity[a, b] = len(content[a] & content[b]) / len(content[a] | content[b])
        neighbours: dict[int, dict[int, float]] = {d: {} for d in names}
        for (a, b), value in similarity.items():
            if value >= THRESHOLD:
                neighbours[a][b] = neighbours[b][a] = value
        kept = set()
        for d in names:
            if content[d] and not any(other in kept for other in neighbours[d]):
                kept.add(d)
    keeper = {
        d: min((e for e in neighbours[d] if e in kept), key=lambda e: (-neighbours[d][e], place[e]))
        for d in names
        if rounds and content[d] and d not in kept
    }
    return [keeper.get(d, -1) for d in range(n)], len(similarity), rounds


@st.composite
def corpora(draw):
    """Sets around a few centres, with colliding band keys and a random preference."""
    centres = draw(st.lists(st.sets(st.integers(0, 30), min_size=4, max_size=10), min_size=1, max_size=3))
    n = draw(st.integers(1, 24))
    documents = []
    for _ in range(n):
        centre = draw(st.sampled_from(centres))
        documents.append(centre ^ draw(st.sets(st.integers(0, 30), max_size=3)))
    if draw(st.booleans()):
        documents[draw(st.integers(0, n - 1))] = set()
    keys = draw(st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=2), min_size=n, max_size=n))
    rank = draw(st.permutations(range(n)))
    return documents, np.array(keys, np.uint64), np.array(rank, np.int64)


@settings(max_examples=120, deadline=None)
@given(corpora(), st.integers(1, 3), st.integers(1, 8))
def test_search_equals_the_plain_algorithm(corpus, max_pivots, max_rounds):
    documents, keys, rank = corpus
    found = search(documents, keys, rank, max_pivots=max_pivots, max_rounds=max_rounds)
    keeper, comparisons, rounds = plain_keepers(documents, keys, rank, max_pivots, max_rounds)
    assert found.keeper.tolist() == keeper
    assert (found.comparisons, found.rounds) == (comparisons, rounds)


@settings(max_examples=80, deadline=None)
@given(corpora(), st.integers(1, 3), st.randoms(use_true_random=False))
def test_answer_does_not_depend_on_the_order_of_the_input(corpus, max_pivots, random):
    documents, keys, rank = corpus
    order = list(range(len(documents)))
    random.shuffle(order)
    one = search(documents, keys, rank, max_pivots=max_pivots)
    other = search([documents[d] for d in order], keys[order], rank[order], max_pivots=max_pivots)
    for here, there in enumerate(order):
        expected = -1 if one.keeper[there] < 0 else order.index(one.keeper[there])
        assert other.keeper[here] == expected
        assert other.similarity[here] == pytest.approx(one.similarity[there], abs=0, nan_ok=True)
        assert other.cluster_size[here] == one.cluster_size[there]
    assert other.comparisons == one.comparisons


@settings(max_examples=80, deadline=None)
@given(corpora(), st.integers(1, 3))
def test_every_removed_document_names_a_kept_one_that_is_similar(corpus, max_pivots):
    documents, keys, rank = corpus
    found = search(documents, keys, rank, max_pivots=max_pivots)
    for d, keeper in enumerate(found.keeper.tolist()):
        if keeper < 0:
            assert math.isnan(found.similarity[d])
            assert found.cluster[d] == d
            continue
        assert found.keeper[keeper] == -1
        exact = len(documents[d] & documents[keeper]) / len(documents[d] | documents[keeper])
        assert found.similarity[d] == exact >= THRESHOLD
        assert found.cluster[d] == keeper
    sizes = np.bincount(found.cluster, minlength=len(documents))
    assert found.cluster_size.tolist() == sizes[found.cluster].tolist()


@settings(max_examples=50, deadline=None)
@given(corpora())
def test_no_two_kept_documents_of_a_bucket_are_similar_when_the_search_is_complete(corpus):
    documents, keys, rank = corpus
    found = search(documents, keys, rank, max_pivots=3)
    assert found.complete
    kept = [d for d in range(len(documents)) if found.keeper[d] < 0 and documents[d]]
    for i, d in enumerate(kept):
        for e in kept[:i]:
            if (keys[d] == keys[e]).any():
                assert len(documents[d] & documents[e]) / len(documents[d] | documents[e]) < THRESHOLD


def test_a_chain_does_not_drift():
    """a-b and b-c are similar, a-c are not: a and c stay, b goes to the nearer of the two."""
    a, b, c = set(range(0, 10)), set(range(2, 12)), set(range(3, 13))
    keys = np.zeros((3, 1), np.uint64)
    found = search([a, b, c], keys, np.array([0, 1, 2]))
    assert found.keeper.tolist() == [-1, 2, -1]  # 9 of 11 with c, 8 of 12 with a
    assert found.similarity[1] == 9 / 11
    assert found.cluster_size.tolist() == [1, 2, 2]


def test_documents_without_shingles_take_no_part():
    found = search([set(), set(), {1}, {1}], np.zeros((4, 3), np.uint64), np.arange(4))
    assert found.keeper.tolist() == [-1, -1, -1, 2]
    assert found.comparisons == 1


def test_a_later_round_can_remove_a_keeper_and_its_copies_find_another():
    """Round 1 of a crowded bucket misses that `middle` is a copy; its own copy must not keep pointing to it."""
    first, middle, copy = set(range(10)), set(range(1, 11)), set(range(2, 12))
    fillers = [set(range(100 * i, 100 * i + 10)) for i in range(1, 3)]
    documents = [*fillers, first, middle, copy]
    keys = np.array(
        [[0, 1], [0, 2], [0, 3], [0, 4], [9, 4]], np.uint64
    )  # first and middle share the crowded bucket only
    found = search(documents, keys, np.arange(5), max_pivots=2)
    assert found.keeper.tolist() == [-1, -1, -1, 2, -1]
    assert found.rounds == 2


def test_search_that_runs_out_of_rounds_says_so():
    documents = [set(range(20 * i, 20 * i + 10)) for i in range(12)]
    keys = np.zeros((12, 1), np.uint64)
    assert not search(documents, keys, np.arange(12), max_pivots=1, max_rounds=3).complete
    done = search(documents, keys, np.arange(12), max_pivots=2, max_rounds=8)
    assert done.complete
    assert done.comparisons == 12 * 11 // 2


def test_crowded_bucket_of_unequal_sizes_is_searched_to_its_end():
    """The longest are preferred; that they are too long to be similar to the rest must not end the search."""
    long = [set(range(1000 * i, 1000 * i + 50)) for i in range(1, 4)]
    short = [set(range(10)), set(range(1, 11))]
    found = search([*long, *short], np.zeros((5, 1), np.uint64), np.arange(5), max_pivots=1)
    assert found.keeper.tolist() == [-1, -1, -1, -1, 3]


def test_comparisons_of_one_crowded_bucket_are_bounded():
    copies = [set(range(30)) | {1000 + i} for i in range(2000)]
    found = search(copies, np.zeros((2000, 14), np.uint64), np.arange(2000), max_pivots=4)
    assert (found.keeper < 0).sum() == 1
    assert found.comparisons < 4 * 2000


def test_preference_is_length_then_date_then_id():
    rank = preference_rank(
        np.array([5, 9, 9, 9, 9]),
        ["2020", None, "2024", "2021", "2021"],
        [bytes([7]) * 16, bytes([1]) * 16, bytes([2]) * 16, bytes([255]) * 16, bytes([3]) * 16],
    )
    assert np.argsort(rank).tolist() == [4, 3, 2, 1, 0]


@settings(max_examples=80, deadline=None)
@given(corpora(), corpora())
def test_documents_kept_before_stay_and_are_preferred_to_all_others(old, new):
    """The same as searching the old and the new together, the old ones first, as if they had nothing in common."""
    old_documents, old_keys, _ = old
    documents, keys, rank = new
    apart = [d or {1000 * (i + 1)} for i, d in enumerate(old_documents)]
    kept = [i for i, d in enumerate(apart) if all(_similarity(d, e) < THRESHOLD for e in apart[:i])]
    apart, old_keys = [apart[i] for i in kept], old_keys[kept]
    met = [(i, b) for i in range(len(apart)) for b in range(2) if old_keys[i, b] in keys[:, b]]
    chosen = sorted({i for i, _ in met})
    before = KeptBefore(
        np.array([len(apart[i]) for i in chosen], np.int32),
        np.array([old_keys[i, b] for i, b in met], np.uint64),
        np.array([b for _, b in met], np.int64),
        np.array([chosen.index(i) for i, _ in met], np.int64),
    )
    sets = sets_of([*documents, *(apart[i] for i in chosen)])
    found = KeeperSearch(
        keys, rank, np.diff(sets.offsets)[: len(documents)], min_jaccard=THRESHOLD, max_pivots=64, kept=before
    )
    while len(pairs := found.next_pairs()):
        assert (pairs < len(documents)).any(axis=1).all()  # old ones are not compared with one another
        found.settle(jaccard(sets, sets, pairs))
    result = found.result()
    both = search(
        [*apart, *documents],
        np.concatenate([old_keys, keys]),
        np.concatenate([np.arange(len(apart)), len(apart) + rank]),
        max_pivots=64,
    )
    assert result.complete
    assert len(result.keeper) == len(documents)
    names = [*range(len(apart), len(apart) + len(documents)), *chosen]
    for d, keeper in enumerate(result.keeper.tolist()):
        there = both.keeper[len(apart) + d]
        assert there == (-1 if keeper < 0 else names[keeper])
        assert result.similarity[d] == pytest.approx(both.similarity[len(apart) + d], abs=0, nan_ok=True)


def _similarity(a: set[int], b: set[int]) -> float:
    return len(a & b) / len(a | b) if a | b else 0.0
