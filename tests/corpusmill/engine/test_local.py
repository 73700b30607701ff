"""The local engine: order, errors, lost workers."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from corpusmill.engine.local import Engine
from corpusmill.errors import Incomplete, Unavailable


def double(x: int) -> int:
    return 2 * x


def fail_on_odd(x: int) -> int:
    if x % 2:
        raise Unavailable(f"item {x} is away", "why", "do this")
    return x


def die_once(marker: Path) -> str:
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"


def die(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module")
def engine():
    with Engine(2) as engine:
        yield engine


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_the_order_of_the_items(workers):
    with Engine(workers) as engine:
        seen: list[int] = []
        assert engine.map(double, list(range(20)), on_done=seen.append) == [2 * x for x in range(20)]
        assert sorted(seen) == [2 * x for x in range(20)]


@pytest.mark.parametrize("workers", [1, 2])
def test_all_others_finish_before_the_first_error_is_raised(workers):
    done: list[int] = []
    with Engine(workers) as engine, pytest.raises(Unavailable, match="item 1 is away") as caught:
        engine.map(fail_on_odd, [0, 1, 2, 3, 4], on_done=done.append)
    assert sorted(done) == [0, 2, 4]
    assert "1 more of 5 units failed too" in str(caught.value)


def test_a_killed_worker_costs_no_result(engine, tmp_path):
    assert engine.map(die_once, [tmp_path / "a", tmp_path / "b"]) == ["done", "done"]


def test_workers_that_keep_dying_end_as_incomplete(engine):
    with pytest.raises(Incomplete, match="2 of 2 units have no result"):
        engine.map(die, [1, 2])
    assert engine.map(double, [1, 2]) == [2, 4]


def test_a_pool_that_ends_while_it_starts_a_worker_is_replaced(engine, monkeypatch):
    submit, seen = ProcessPoolExecutor.submit, []

    def closed_at_first(pool, fn, *args):
        seen.append(pool)
        if len(seen) == 2:
            raise OSError("handle is closed")
        return submit(pool, fn, *args)

    monkeypatch.setattr(ProcessPoolExecutor, "submit", closed_at_first)
    assert engine.map(double, [1, 2]) == [2, 4]
    assert seen[0] is seen[1] is not seen[2]


def test_several_threads_share_one_pool(engine):
    results: dict[int, list[int]] = {}
    threads = [
        threading.Thread(target=lambda k=k: results.update({k: engine.map(double, list(range(k, k + 8)))}))
        for k in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {k: [2 * x for x in range(k, k + 8)] for k in range(4)}
