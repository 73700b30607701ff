"""Few to many: what is as similar as asked meets one of the few, whoever passes and in what batches."""

from __future__ import annotations

import numpy as np
import pytest

from corpusmill.kernels.duplicates import few_to_many
from corpusmill.kernels.duplicates.few_to_many import Few, fine_rows, least_agreement
from corpusmill.kernels.duplicates.lsh import collision_probability

K = 112


def signatures(count: int, seed: int, copies_of: np.ndarray | None = None, kept: float = 0.0) -> np.ndarray:
    """Made-up signatures; each place is that of `copies_of` with a chance of `kept`, the similarity of the pair."""
    rng = np.random.default_rng(seed)
    made = rng.integers(0, 2**32, (count, K), dtype=np.uint32)
    return made if copies_of is None else np.where(rng.random((count, K)) < kept, copies_of, made)


def pairs(few: Few, many: np.ndarray) -> set[tuple[int, int]]:
    found = [tuple(pair) for part in few.near(many) for pair in part.tolist()]
    assert len(found) == len(set(found)), "each pair is given once"
    return set(found)


@pytest.mark.parametrize("similarity", [0.5, 0.8, 0.95, 1.0])
def test_pairs_of_the_wanted_similarity_all_meet(similarity):
    few = signatures(2000, 1)
    found = pairs(Few(few, similarity), signatures(2000, 2, few, similarity))
    assert found == {(i, i) for i in range(2000)}


def test_what_is_less_alike_is_left_out_before_a_text_is_read():
    few = signatures(2000, 1)
    assert len(pairs(Few(few, 0.8), signatures(2000, 2, few, 0.4))) < 10
    assert not pairs(Few(few, 0.8), signatures(2000, 3))


@pytest.mark.parametrize("most", [1, 7, 1 << 20])
def test_batches_of_pairs_change_nothing(most, monkeypatch):
    monkeypatch.setattr(few_to_many, "MOST_PAIRS", most)
    one = signatures(1, 1)
    few, many = signatures(60, 2, one, 0.97), signatures(80, 3, one, 0.97)
    assert pairs(Few(few, 0.8), many) == {(i, j) for i in range(80) for j in range(60)}


def test_none_of_either_side_is_no_pair():
    assert not pairs(Few(signatures(0, 1), 0.8), signatures(5, 2))
    assert not pairs(Few(signatures(5, 1), 0.8), signatures(0, 2))


@pytest.mark.parametrize("num_perm", [16, 97, 112, 256])
@pytest.mark.parametrize("similarity", [0.1, 0.5, 0.8, 1.0])
def test_bands_miss_one_in_a_million_where_any_bands_can(num_perm, similarity):
    rows = fine_rows(num_perm, similarity)
    assert num_perm % rows == 0
    missed = 1 - collision_probability(similarity, num_perm // rows, rows)
    assert missed <= few_to_many.MISSED or rows == 1
    assert 1 <= least_agreement(num_perm, similarity) <= num_perm * similarity + 1
