"""Lines of a training log on their way to the server."""

from __future__ import annotations

from flows.run.launch import BURST, Limited


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
