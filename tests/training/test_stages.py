"""Stages of other lengths and rates: what they draw, and that a run resumed at any step is the unbroken one."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpusmill.errors import UsageError
from tests.training.attempts import attempt
from tests.training.packed import publish_dataset
from tests.training.toy import Toy, config
from training.config import Optim, plan_of
from training.data import Loader
from training.mixture import check
from training.parallel import Ranks
from training.rates import rate, schedule

STAGES = (
    "mixture.stage=[{steps=3, weights={crawl=0.75, books=0.25}}, {epochs=1.5, seq_len=96, rope_base=50000}, "
    "{steps=2, weights={books=1}, lr=[1.0, 0.1]}]"
)
WISH = (STAGES, "mixture.global_batch=8", "heldout_sequences=2", 'optim.schedule="cosine"', "optim.final=0.1")


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    """A dataset with a partition `long` of 96 tokens a sequence beside those of 48."""
    folder = tmp_path_factory.mktemp("mixed")
    return Toy(str(folder / "store"), publish_dataset(folder / "store", folder / "made", more={"long": 96}), "")


def test_a_run_stopped_at_every_step_is_the_unbroken_one(mixed: Toy, ranks: Ranks, tmp_path: Path) -> None:
    """Over stage edges, an epoch's end within a stage, and two changes of length."""
    spec = mixed.spec(*WISH)
    steps = spec.plan.steps
    assert spec.plan.epochs()["long"] > 1.3
    whole, lines = attempt(spec, tmp_path / "whole", ranks)
    again = mixed.spec(*WISH, 'name="again"')
    seen: dict[int, Any] = {}
    for until in (*range(1, steps), None):
        result, found = attempt(again, tmp_path / f"again{until}", ranks, until)
        assert not set(found) & set(seen), "no step twice"
        seen |= found
    assert list(seen) == list(lines) == list(range(1, steps + 1))
    for step, line in lines.items():
        for column in ("batch", "loss", "grad_norm", "lr", "tokens"):
            assert seen[step][column] == line[column], (step, column)
    for same in ("batch_chain", "tokens", "loss_last", "heldout_after"):
        assert result[same] == whole[same]


def test_each_stage_has_sequences_of_its_length(mixed: Toy) -> None:
    spec = mixed.spec(*WISH)
    loader = Loader(mixed.open(), spec.facts, spec.plan)
    lengths = [loader.seq_len(step) for step in range(spec.plan.steps)]
    long = spec.plan.steps - 5
    assert lengths == [48] * 3 + [96] * long + [48] * 2
    for step, length in enumerate(lengths):
        whole = loader.batch(step)
        assert whole.labels.shape == (8, length)
        parts = [loader.batch(step, rank, 2).rows for rank in (0, 1)]
        assert np.array_equal(np.concatenate(parts), whole.rows)
    loader.close()
    report = check(spec.config, spec.facts)
    assert (report.faults, report.stages[1].shares) == ((), {"long": 1.0})
    assert report.stages[1].tokens == long * 8 * 96


@pytest.mark.parametrize(
    ("stage", "said"),
    [
        ("steps=1", "different sequence lengths cannot share a batch"),
        ("steps=1, weights={crawl=1, long=1}", "books 48|crawl 48, long 96"),
        ("steps=1, seq_len=48, weights={long=1}", "seq_len = 48 cannot draw"),
        ("tokens=9999, seq_len=50", "seq_len = 50 cannot draw"),
    ],
)
def test_lengths_that_do_not_fit_are_refused_and_reported(mixed: Toy, stage: str, said: str) -> None:
    wish, data = config(f"mixture.stage=[{{{stage}}}]"), mixed.spec().facts
    with pytest.raises(UsageError, match=said):
        plan_of(wish, data)
    assert "seq_len" in "\n".join(check(wish, data).faults)


def test_schedules_start_at_one_and_end_at_their_final_factor() -> None:
    steps = 1000
    for name, middle in (("linear", 0.55), ("cosine", 0.55), ("wsd", 1.0)):
        optim = Optim(schedule=name, final=0.1, decay=0.25)
        course = [schedule(optim, step, steps) for step in range(steps)]
        assert course == sorted(course, reverse=True)
        assert course[-1] == pytest.approx(0.1)
        assert course[0] == pytest.approx(1, abs=0.002)
        assert course[499] == pytest.approx(middle)
    assert course[749] == 1.0
    assert course[874] == pytest.approx(0.55), "half of the last quarter"
    quarter = schedule(Optim(schedule="cosine"), 249, steps)
    assert quarter == pytest.approx((1 + math.cos(math.pi / 4)) / 2)
    assert {schedule(Optim(), step, steps) for step in range(steps)} == {1.0}
    assert schedule(Optim(schedule="wsd", decay=0.001), 2, 3) == 0.0


def test_warmup_schedule_and_stage_multiply(mixed: Toy) -> None:
    spec = mixed.spec("mixture.stage=[{steps=4, weights={crawl=1}}, {steps=4, weights={crawl=1}, lr=[0.5, 0.5]}]")
    optim = Optim(lr=8.0, warmup_steps=2, schedule="linear")
    assert [rate(optim, spec.plan, step) for step in range(8)] == pytest.approx(
        [4, 8, 8 * 5 / 6, 8 * 4 / 6, 4 * 3 / 6, 4 * 2 / 6, 4 * 1 / 6, 0]
    )


def test_a_schedule_is_part_of_the_run_and_no_schedule_leaves_its_id(mixed: Toy) -> None:
    plain = mixed.spec(*WISH[:1])
    assert mixed.spec(*WISH[:1], "optim.final=0.5").run_id == plain.run_id, "which is not read"
    assert "schedule" not in plain.config.what()["optim"]
    ids = {mixed.spec(*WISH[:1], f'optim.schedule="{name}"').run_id for name in ("linear", "cosine", "wsd")}
    assert len({plain.run_id, *ids}) == 4
