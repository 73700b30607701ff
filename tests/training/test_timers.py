"""The verdict names the right one of input, straggler and communication, and the right rank."""

from __future__ import annotations

import time

import pytest

from training.timers import StepTimes, Stopwatch, verdict


def step(*, input: float = 0.001, ready: float = 0.1, exposed: float = 0.005, total: float = 0.13) -> StepTimes:
    return StepTimes(input, ready, exposed, 0.01, total)


@pytest.mark.parametrize(
    ("ranks", "bottleneck", "rank"),
    [
        ([step(), step()], "none", None),
        # The victim waits in the exchange; the straggler does not.
        ([step(exposed=0.085, total=0.21), step(ready=0.18, total=0.21)], "straggler", 1),
        # A naive timer of forward and backward would blame rank 0, which only waited.
        ([step(total=0.21), step(input=0.08, total=0.21)], "input", 1),
        ([step(exposed=0.06, total=0.19), step(exposed=0.07, total=0.19)], "communication", None),
    ],
)
def test_verdict(ranks: list[StepTimes], bottleneck: str, rank: int | None) -> None:
    said = verdict([ranks, ranks, [step(total=9.0), step(input=9.0, total=9.0)]])  # one odd step does not decide
    assert (said["bottleneck"], said["rank"]) == (bottleneck, rank)


def test_one_rank_never_waits_for_others() -> None:
    assert verdict([[step(exposed=0.05)]])["bottleneck"] == "none"
    assert verdict([])["bottleneck"] == "none"


def test_times_survive_the_wire() -> None:
    assert StepTimes.unpack(step().pack()) == step()


def test_stopwatch_parts_a_step() -> None:
    watch = Stopwatch()
    watch.hooked = True
    watch.start()
    time.sleep(0.02)
    watch.input_done()
    watch.work()
    time.sleep(0.03)
    watch.ready()
    watch.ready()
    time.sleep(0.01)
    watch.work_done()
    times = watch.done()
    assert 0.02 <= times.input < times.input + times.ready + times.exposed <= times.total
    assert times.ready >= 0.03
    assert times.exposed >= 0.01
