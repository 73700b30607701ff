"""The order of training data: bijections, exact mixtures, the same sequence for any number of ranks, a good shuffle."""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.errors import UsageError
from corpusmill.tokens.order import Permutation, Plan, Stage

TWO_STAGES = Plan(
    seed=17,
    global_batch=24,
    sizes={"books": 101, "code": 57, "crawl": 1000},
    stages=(
        Stage(1200, {"crawl": 7, "books": 1}),
        Stage(605, {"crawl": 2, "books": 1, "code": 1}, rope_base=50_000, lr=(1.0, 0.1)),
    ),
    block=128,
)


def everything(plan: Plan) -> list[tuple[int, int, int]]:
    rows = plan.at(np.arange(plan.total))
    return list(zip(rows.partition.tolist(), rows.row.tolist(), rows.epoch.tolist(), strict=True))


def plainly(x: int, size: int, text: str) -> int:
    """The permutation once more, in whole numbers of Python, from its definition."""
    keys = struct.unpack("<6Q", hashlib.blake2b(text.encode(), digest_size=48).digest())
    half = -(-(size - 1).bit_length() // 2)
    while True:
        left, right = x >> half, x & ((1 << half) - 1)
        for key in keys:
            h = (right + key) % 2**64
            h = (h ^ h >> 33) * 0xFF51AFD7ED558CCD % 2**64
            h = (h ^ h >> 33) * 0xC4CEB9FE1A85EC53 % 2**64
            left, right = right, left ^ ((h ^ h >> 33) & ((1 << half) - 1))
        x = left << half | right
        if x < size:
            return x


def test_permutation_is_the_one_defined() -> None:
    expected = [plainly(x, 1000, "prp1|17|src|crawl|0") for x in range(1000)]
    assert Permutation.of(1000, 17, "src", "crawl", 0)(np.arange(1000)).tolist() == expected


@given(size=st.integers(1, 70_000), seed=st.integers(0, 2**53))
@settings(max_examples=40, deadline=None)
def test_permutation_is_a_bijection_with_an_inverse(size: int, seed: int) -> None:
    permutation = Permutation.of(size, seed, "src", "crawl", 0)
    index = np.arange(size)
    image = permutation(index)
    assert np.array_equal(np.sort(image), index)
    assert np.array_equal(permutation.inverse(image), index)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 17, 255, 256, 257, 65535, 65536, 65537, 1_000_003])
def test_permutation_of_awkward_sizes(size: int) -> None:
    image = Permutation.of(size, 3, "blk", 0, 0)(np.arange(size))
    assert np.array_equal(np.sort(image), np.arange(size))


def test_permutation_reaches_a_million_million_without_memory() -> None:
    permutation = Permutation.of(10**12, 1, "src", "crawl", 3)
    index = np.array([0, 1, 999_999_999_999])
    assert permutation(index).tolist() == [plainly(x, 10**12, "prp1|1|src|crawl|3") for x in index.tolist()]
    assert np.array_equal(permutation.inverse(permutation(index)), index)


def test_golden_vectors_change_only_with_VERSION() -> None:
    assert Permutation.of(1000, 17, "src", "crawl", 0)(np.arange(8)).tolist() == [854, 979, 995, 124, 626, 879, 48, 345]
    border = [(2, 106, 0), (2, 141, 1), (0, 49, 1), (2, 159, 1), (2, 751, 1), (2, 842, 1)]
    assert everything(TWO_STAGES)[1198:1204] == border
    assert TWO_STAGES.digest == "6a514e5548b1362a1ab290b228276a6beb8bbe3c249211f93cb8f17bb8ce8db4"


def test_epochs_seeds_and_names_give_unrelated_orders() -> None:
    index = np.arange(5000)
    orders = [
        Permutation.of(5000, *key)(index)
        for key in [(1, "src", "a", 0), (1, "src", "a", 1), (2, "src", "a", 0), (1, "src", "b", 0)]
    ]
    for i, left in enumerate(orders):
        for right in orders[:i]:
            assert (left == right).sum() < 12  # expected 1, Poisson
            assert abs(np.corrcoef(left, right)[0, 1]) < 0.06  # 4 standard errors


@pytest.mark.parametrize("size", [65_536, 100_000, 200_003])
def test_shuffle_is_as_good_as_numpys(size: int) -> None:
    """Pairs of neighbours fall evenly into 64 x 64 cells, and batch means spread as those of a random sample do."""
    for epoch in range(3):
        image = Permutation.of(size, 5, "src", "crawl", epoch)(np.arange(size))
        cells = image[:-1] * 64 // size * 64 + image[1:] * 64 // size
        count = np.bincount(cells, minlength=4096)
        expected = (size - 1) / 4096
        z = (((count - expected) ** 2).sum() / expected - 4095) / np.sqrt(2 * 4095)
        assert abs(z) < 5
        means = image[: size // 64 * 64].reshape(-1, 64).mean(axis=1)
        ratio = means.var() / ((size**2 - 1) / 12 / 64)
        assert 0.8 < ratio < 1.2


def test_every_row_is_drawn_once_an_epoch() -> None:
    drawn = Counter((k, epoch) for k, _, epoch in everything(TWO_STAGES))
    assert len(set(everything(TWO_STAGES))) == TWO_STAGES.total
    for k, name in enumerate(TWO_STAGES.partitions):
        last = max(epoch for kk, epoch in drawn if kk == k)
        assert all(drawn[k, epoch] == TWO_STAGES.sizes[name] for epoch in range(last))
    assert last >= 1  # the case is there: a partition that is drawn more than once, over both stages


@given(
    weights=st.lists(st.integers(1, 50), min_size=1, max_size=5),
    sequences=st.integers(1, 3000),
    block=st.integers(600, 1100),
)
@settings(max_examples=40, deadline=None)
def test_mixture_is_less_than_one_sequence_off_at_every_block(weights: list[int], sequences: int, block: int) -> None:
    names = [f"p{i}" for i in range(len(weights))]
    plan = Plan(
        seed=1,
        global_batch=4,
        sizes=dict.fromkeys(names, 1000),
        stages=(Stage(sequences, dict(zip(names, weights, strict=True))),),
        block=block,
    )
    partition = plan.at(np.arange(sequences)).partition
    for end in {*range(block, sequences - block + 1, block), sequences}:
        drawn = np.bincount(partition[:end], minlength=len(names))
        for k, weight in enumerate(weights):
            assert abs(int(drawn[k]) - Fraction(end * weight, sum(weights))) < 1


@pytest.mark.parametrize("world_size", [1, 2, 3, 4, 6, 8, 12, 24])
def test_any_number_of_ranks_sees_the_same_sequence(world_size: int) -> None:
    for step in (0, 3, TWO_STAGES.steps - 1):  # step 3 straddles blocks, the stage border falls into step 50
        shares = [TWO_STAGES.rows(step, rank, world_size) for rank in range(world_size)]
        whole = TWO_STAGES.at(np.arange(step * 24, (step + 1) * 24))
        assert np.concatenate([s.row for s in shares]).tolist() == whole.row.tolist()
        assert np.concatenate([s.partition for s in shares]).tolist() == whole.partition.tolist()


def test_random_access_is_sequential_access() -> None:
    order = everything(TWO_STAGES)
    index = np.random.default_rng(0).permutation(TWO_STAGES.total)
    rows = TWO_STAGES.at(index)
    assert [order[i] for i in index] == list(
        zip(rows.partition.tolist(), rows.row.tolist(), rows.epoch.tolist(), strict=True)
    )


def test_stage_and_progress_of_a_step() -> None:
    assert TWO_STAGES.stage_at(0) == (TWO_STAGES.stages[0], 0.0)
    assert TWO_STAGES.stage_at(25) == (TWO_STAGES.stages[0], 0.5)
    assert TWO_STAGES.stage_at(50) == (TWO_STAGES.stages[1], 0.0)


def test_digest_covers_what_decides_and_not_the_epoch_guard() -> None:
    base = {"seed": 1, "global_batch": 8, "sizes": {"a": 10}, "stages": (Stage(16, {"a": 1}),)}
    digest = Plan(**base).digest
    assert Plan(**base, max_epochs=9).digest == digest
    for change in (
        {"seed": 2},
        {"global_batch": 16},
        {"sizes": {"a": 11}},
        {"block": 512},
        {"stages": (Stage(16, {"a": 2}),)},
        {"stages": (Stage(16, {"a": 1}, rope_base=20_000),)},
        {"stages": (Stage(16, {"a": 1}, lr=(1.0, 0.0)),)},
    ):
        assert Plan(**(base | change)).digest != digest


def test_a_batch_that_ranks_cannot_share_is_refused() -> None:
    with pytest.raises(UsageError, match="24 sequences cannot be divided among 5 ranks"):
        TWO_STAGES.rows(0, 0, 5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sizes": {"a": 3}}, "drawn 5.3 times"),
        ({"stages": (Stage(16, {"b": 1}),)}, "no partition 'b'"),
        ({"stages": (Stage(16, {"a": 0}),)}, "at least 1"),
        ({"stages": (Stage(0, {"a": 1}),)}, "0 sequences"),
        ({"stages": ()}, "needs a stage"),
        ({"sizes": {"a": 10, "b": 10}, "stages": (Stage(16, {"a": 1000, "b": 1}),)}, "under 2 sequences in a block"),
        ({"sizes": {"a|b": 10}, "stages": (Stage(16, {"a|b": 1}),)}, "not a name"),
    ],
)
def test_mixtures_that_cannot_be_drawn_are_refused(change: dict[str, object], message: str) -> None:
    good = {"seed": 1, "global_batch": 8, "sizes": {"a": 10}, "stages": (Stage(16, {"a": 1}),)}
    with pytest.raises(UsageError, match=message):
        Plan(**(good | change))


def test_order_costs_no_memory_and_the_same_at_every_step() -> None:
    plan = Plan(seed=1, global_batch=64, sizes={"crawl": 10**9}, stages=(Stage(10**9, {"crawl": 1}),))
    far = plan.rows(15_000_000, 1, 2)
    assert len(far.row) == 32
    assert far.row.max() < 10**9


@pytest.mark.parametrize("seed", range(12))
def test_a_row_is_found_where_it_is_drawn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = {name: int(rng.integers(1, 400)) for name in ("a", "b", "c")[: 1 + seed % 3]}
    shares = {name: int(rng.integers(1, 9)) for name in sizes}
    stages = (Stage(int(rng.integers(64, 900)), shares), Stage(sum(sizes.values()), sizes), Stage(300, {"a": 1}))
    plan = Plan(seed, 1, sizes, stages, block=64, max_epochs=10_000)
    rows = plan.at(np.arange(plan.total))
    seen = {}
    for number, where in enumerate(zip(rows.partition.tolist(), rows.row.tolist(), strict=True)):
        seen.setdefault(where, []).append(number)
    for k, name in enumerate(plan.partitions):
        for row in range(sizes[name]):
            assert plan.numbers_of(name, row).tolist() == seen.get((k, row), [])


def test_a_row_among_a_thousand_million_is_found() -> None:
    sizes = {"large": 10**9, "small": 1_000}
    plan = Plan(1, 512, sizes, (Stage(3 * (10**9 + 1_000), sizes),))
    for name, row in (("large", 0), ("large", 10**9 - 1), ("small", 999)):
        numbers = plan.numbers_of(name, row)
        found = plan.at(numbers)
        assert len(numbers) == 3
        assert (found.row == row).all()
        assert {plan.partitions[k] for k in found.partition} == {name}
    with pytest.raises(IndexError):
        plan.numbers_of("small", 1_000)
