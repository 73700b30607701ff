"""Grain and torchtitan see the batches of our own loader, at any number of ranks, and go on at another."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from corpusmill.adapters.grain import Steps
from corpusmill.adapters.shares import Shares
from corpusmill.adapters.torchtitan import PackedBatches
from corpusmill.dataset.manifest import open_manifest
from corpusmill.errors import MillError, NotFound, Refused, UsageError
from corpusmill.kernels.gather import IGNORED
from corpusmill.store import open_store
from corpusmill.tokens.order import Plan, Stage
from tests.corpusmill.adapters.conftest import Served
from tests.training.packed import publish_dataset
from training.data import Loader


def shares(served: Served, rank: int = 0, world_size: int = 1, **changed: Any) -> Shares:
    return replace(Shares(served.store, served.dataset, served.plan, rank, world_size), **changed)


def packed(served: Served, rank: int, world_size: int, micro: int, **changed: Any) -> PackedBatches:
    given = {"dataset": served.dataset, "dataset_path": served.store, "plan": served.plan, **changed}
    return PackedBatches(
        SimpleNamespace(**given),
        dp_world_size=world_size,
        dp_rank=rank,
        tokenizer=None,
        seq_len=served.seq_len,
        local_batch_size=micro,
        snapshot_every_n_steps=1,
    )


def of_a_step(iterators: list[Any], micro: int, global_batch: int) -> tuple[np.ndarray, np.ndarray]:
    """Tokens and labels of the next global batch of these ranks."""
    count = global_batch // len(iterators) // micro
    parts = [next(it) for it in iterators for _ in range(count)]
    return np.concatenate([p[0]["input"] for p in parts]), np.concatenate([p[1] for p in parts])


@pytest.mark.parametrize("world_size", [1, 3, 4, 48])
def test_the_shares_of_all_ranks_are_the_batches_of_our_loader(served: Served, world_size: int) -> None:
    ranks = [shares(served, rank, world_size) for rank in range(world_size)]
    assert len(ranks[0]) == len(served.batches) == 12
    for step, batch in enumerate(served.batches):
        found = [rank.share(step) for rank in ranks]
        assert np.array_equal(np.concatenate([share.rows for share in found]), batch.rows)
        assert np.array_equal(np.concatenate([share.labels for share in found]), batch.labels)


def test_positions_begin_anew_in_each_document_and_pieces_are_counted(served: Served) -> None:
    batch, share = served.batches[3], shares(served).share(3)
    assert max(map(len, batch.lengths)) > 3
    for lengths, positions, pieces in zip(batch.lengths, share.positions, share.pieces, strict=True):
        assert positions.tolist() == [i for length in lengths for i in range(length)]
        assert pieces.tolist() == [k for k, length in enumerate(lengths, 1) for _ in range(length)]


def test_a_state_of_four_ranks_goes_on_at_three(served: Served) -> None:
    four = [packed(served, rank, 4, 6) for rank in range(4)]
    iterators = [iter(loader) for loader in four]
    found = [of_a_step(iterators, 6, 48) for _ in range(5)]
    states = [loader.state_dict() for loader in four]
    assert states[0] == states[3]
    assert states[0]["step"] == 5
    three = [packed(served, rank, 3, 8) for rank in range(3)]
    for loader in three:
        loader.load_state_dict(states[0])
    iterators = [iter(loader) for loader in three]
    found += [of_a_step(iterators, 8, 48) for _ in range(7)]
    assert all(next(it, None) is None for it in iterators)
    for (tokens, labels), batch in zip(found, served.batches, strict=True):
        assert np.array_equal(tokens, batch.tokens)
        assert np.array_equal(labels, batch.labels)


def test_a_state_within_a_step_goes_on_at_the_same_ranks_only(served: Served) -> None:
    first = packed(served, 1, 4, 4)
    seen = [labels for _, (_, labels) in zip(range(5), first, strict=False)]  # a step of 3 micro-batches, and 2
    state = first.state_dict()
    assert (state["step"], state["given"]) == (1, 8)
    again = packed(served, 1, 4, 4)
    again.load_state_dict(state)
    assert again.state_dict() == state
    seen += [labels for _, (_, labels) in zip(range(4), again, strict=False)]
    expected = np.concatenate([batch.labels[12:24] for batch in served.batches[:3]])
    assert np.array_equal(np.concatenate(seen), expected)
    for other in (packed(served, 1, 3, 4), packed(served, 1, 4, 3)):
        with pytest.raises(Refused, match="within step 2"):
            other.load_state_dict(state)
    first.load_state_dict({})  # no state: as it stands
    assert first.state_dict() == state


def test_a_state_of_other_rows_is_refused(served: Served) -> None:
    state = packed(served, 0, 2, 24).state_dict()
    other = packed(served, 0, 2, 24, plan=replace(served.plan, seed=5))
    with pytest.raises(Refused, match="is of plan"):
        other.load_state_dict(state)
    with pytest.raises(Refused, match="is of dataset None"):
        other.load_state_dict({"dp_rank_0": b"", "world_size": 2})  # of torchtitan's own loader


def test_grains_source_has_the_tokens_and_says_which_targets_count(served: Served) -> None:
    for step in (0, 6, 11):
        batch = served.batches[step]
        items = [Steps(shares(served, rank, 3))[np.int64(step)] for rank in range(3)]
        whole = {key: np.concatenate([item[key] for item in items]) for key in items[0]}
        assert {value.dtype for value in whole.values()} == {np.dtype(np.int32)}
        assert np.array_equal(whole["inputs"], batch.tokens)
        counts = whole["targets_segmentation"] > 0
        assert np.array_equal(np.where(counts, whole["targets"], IGNORED), batch.labels)
        assert np.array_equal(whole["targets_segmentation"][counts], whole["inputs_segmentation"][counts])
    one, other = Steps(shares(served, 0, 4)), Steps(shares(served, 2, 3))
    assert len(one) == 12
    assert repr(one) == repr(other) != repr(Steps(shares(served, plan=replace(served.plan, seed=5))))


def test_threads_and_copies_in_other_processes_get_the_same(served: Served) -> None:
    whole = shares(served)
    steps = np.random.default_rng(0).permutation(np.tile(np.arange(12), 8)).tolist()
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(whole.share, steps))
    assert all(np.array_equal(share.rows, served.batches[step].rows) for step, share in zip(steps, found, strict=True))
    copy = pickle.loads(pickle.dumps(Steps(whole)))
    assert np.array_equal(copy[4]["inputs"], served.batches[4].tokens)


def test_a_plan_may_draw_from_another_dataset_too(tmp_path: Path) -> None:
    own, other = (publish_dataset(tmp_path / "store", tmp_path / n, n, seed=s) for n, s in (("own", 0), ("other", 50)))
    store = open_store(tmp_path / "store")
    books = {"books": open_manifest(store, own).partitions["books"]}
    books[f"{other}:books"] = open_manifest(store, other).partitions["books"]
    plan = Plan(1, 8, {n: part.sequences for n, part in books.items()}, (Stage(32, dict.fromkeys(books, 1)),))
    loader = Loader(store, replace(open_manifest(store, own), partitions=books), plan)
    for step in range(4):
        share = Shares(str(tmp_path / "store"), "own", plan).share(step)
        assert np.array_equal(share.rows, loader.batch(step).rows)
    loader.close()


@pytest.mark.parametrize(
    ("changed", "error", "said"),
    [
        ({"world_size": 5}, UsageError, "cannot be divided among 5 ranks"),
        ({"rank": 3, "world_size": 3}, UsageError, "rank 3 of 3"),
        ({"dataset": "nothing"}, NotFound, "nothing"),
        ({"store": "/nowhere/at-all"}, MillError, "/nowhere/at-all"),
        ({"plan": Plan(1, 48, {"crawl": 7}, (Stage(48, {"crawl": 1}),), max_epochs=99)}, UsageError, "7"),
        ({"plan": Plan(1, 48, {"news": 7}, (Stage(48, {"news": 1}),), max_epochs=99)}, UsageError, "news"),
        ({"plan": Plan(1, 48, {"crawl": 7}, (Stage(47, {"crawl": 1}),), max_epochs=99)}, UsageError, "no step"),
    ],
)
def test_what_cannot_be_served_is_an_error_at_once(
    served: Served, changed: dict[str, Any], error: type[MillError], said: str
) -> None:
    with pytest.raises(error, match=said):
        shares(served, **changed)


def test_torchtitans_lengths_must_be_those_of_the_plan(served: Served) -> None:
    with pytest.raises(UsageError, match="seq_len = 100"):
        packed(replace(served, seq_len=100), 0, 4, 4)
    with pytest.raises(UsageError, match="local_batch_size = 5 does not divide 12"):
        packed(served, 0, 4, 5)
