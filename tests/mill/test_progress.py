"""Progress of a build: lines that a log can bear where nobody watches, bars on a terminal, results untouched."""

from __future__ import annotations

import io

import pytest

from corpusmill.engine.local import Engine
from mill import progress


class Clock:
    """Seconds that pass by a fixed step at every look."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("step", "lines"), [(0.1, 0), (11.0, 4), (31.0, 9)])
def test_a_pipe_gets_a_line_per_30_seconds_and_a_last_one(step, lines):
    to = io.StringIO()
    with Engine(1) as engine:
        run = progress.Lines(engine, to, Clock(step))
        assert run("documents", str, range(9)) == [str(i) for i in range(9)]
    assert len(to.getvalue().splitlines()) == lines
    assert "\r" not in to.getvalue()
    assert "\x1b" not in to.getvalue()


def test_the_last_line_of_a_long_stage_says_that_it_is_done():
    to = io.StringIO()
    with Engine(1) as engine:
        progress.Lines(engine, to, Clock(16.0))("exact", str, range(4))
    assert to.getvalue().splitlines()[-1] == "stage=exact done=4 of=4 seconds=64"


def test_quick_builds_say_nothing_in_a_pipe():
    to = io.StringIO()
    with Engine(1) as engine, progress.shown(engine, to) as run:
        assert run("documents", len, ["a", "bb"]) == [1, 2]
    assert to.getvalue() == ""


def test_a_terminal_gets_a_bar_a_stage():
    to = Terminal()
    with Engine(1) as engine, progress.shown(engine, to) as run:
        assert run("documents", len, ["a", "bb"]) == [1, 2]
        assert run("exact", len, ["ccc"]) == [3]
    assert "documents" in to.getvalue()
    assert "2/2" in to.getvalue()
    assert "1/1" in to.getvalue()


def test_an_error_of_a_unit_comes_through():
    with Engine(1) as engine, progress.shown(engine, io.StringIO()) as run, pytest.raises(ZeroDivisionError):
        run("documents", lambda x: 1 // x, [1, 0])
