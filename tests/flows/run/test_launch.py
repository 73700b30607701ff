"""Lines of a training log on their way to the server."""

from __future__ import annotations

import pytest

from corpusmill.errors import Incomplete, MillError, Unavailable
from flows.run.launch import BURST, PREEMPTIONS, Limited, until_finished


def test_a_flood_of_lines_is_thinned_and_counted() -> None:
    now = [0.0]
    lines: list[str] = []
    limited = Limited(lines.append, clock=lambda: now[0])
    for number in range(1_000):
        limited(f"line {number}")
    assert lines == [f"line {number}" for number in range(BURST)]
    now[0] = 1.0
    limited("the last")
    assert lines[BURST:] == [f"… {1_000 - BURST} lines are only in the log of the run", "the last"]


def test_a_line_a_second_is_never_kept_back() -> None:
    now = [0.0]
    lines: list[str] = []
    limited = Limited(lines.append, clock=lambda: now[0])
    for second in range(10_000):
        now[0] = float(second)
        limited("step")
    assert len(lines) == 10_000


def test_a_stopped_run_is_resumed_a_few_times_and_then_fails() -> None:
    said: list[str] = []
    attempts: list[int] = []

    def stopped(times: int) -> dict[str, object]:
        attempts.append(times)
        if len(attempts) <= times:
            raise Incomplete(f"stopped {len(attempts)}")
        return {"outcome": "finished"}

    result = until_finished(lambda: stopped(PREEMPTIONS), lambda fault: said.append(fault.what))
    assert result == {"outcome": "finished"}
    assert said == [f"stopped {n + 1}" for n in range(PREEMPTIONS)]
    attempts.clear()
    with pytest.raises(Incomplete, match=f"stopped {PREEMPTIONS + 1}"):
        until_finished(lambda: stopped(99), lambda fault: None)


def test_other_faults_are_not_tried_again() -> None:
    attempts: list[MillError] = []

    def killed() -> dict[str, object]:
        attempts.append(Unavailable("a rank was killed"))
        raise attempts[-1]

    with pytest.raises(Unavailable):
        until_finished(killed, lambda fault: None)
    assert len(attempts) == 1
