"""What is finished is found before a worker starts: a runner gets missing units only, and results keep their order."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpusmill.errors import CheckFailed
from corpusmill.store import Store, Unit, open_store
from tasks import finished
from tasks.dedup.memory import kept
from tasks.units import Done, Job, once, store_at
from tests.tasks.dedup.corpus import recipe


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "store", create=True)


def square(job: Job) -> Done:
    """A unit that writes its number's square; that of 13 is damaged."""
    if job.item == 13:
        raise CheckFailed("13 is damaged")
    store = store_at(job.uri)
    unit = Unit("square", 1, {"number": job.item}, ())
    return once(store, unit, lambda: store.commit(unit, {}, counters={"square": job.item**2}))


def jobs(store: Store, numbers: list[int]) -> list[Job]:
    return [Job(store.uri, recipe(), number) for number in numbers]


class Here:
    """A runner in this process that notes what it got."""

    def __init__(self) -> None:
        self.got: list[int] = []

    def __call__(self, stage, fn, units):
        self.got += [job.item for job in units]
        return [fn(job) for job in units]


def test_only_missing_units_are_run_and_results_keep_the_order_of_the_units(store):
    first, second = Here(), Here()
    finished.finished_first(first, store)("squares", square, jobs(store, [2, 4]))
    done = finished.finished_first(second, open_store(store.uri))("squares", square, jobs(store, [1, 2, 3, 4, 5]))
    assert (first.got, second.got) == ([2, 4], [1, 3, 5])
    assert [item.receipt.counters["square"] for item in done] == [1, 4, 9, 16, 25]
    assert [item.reused for item in done] == [False, True, False, True, False]


def test_where_nothing_is_missing_nothing_is_run(store):
    finished.finished_first(Here(), store)("squares", square, jobs(store, [1, 2]))
    assert store_at(store.uri) is not store

    def refuse(stage, fn, units):
        raise AssertionError(f"{len(units)} units of {stage} were run")

    done = finished.finished_first(refuse, open_store(store.uri))("squares", square, jobs(store, [2, 1]))
    assert [item.receipt.counters["square"] for item in done] == [4, 1]


def test_a_unit_that_fails_while_it_is_looked_up_is_left_to_the_runner(store):
    runner = Here()
    with pytest.raises(CheckFailed):
        finished.finished_first(runner, store)("squares", square, jobs(store, [1, 13, 2]))
    assert runner.got == [1, 13, 2]


def test_many_units_are_looked_up_by_the_workers(store, monkeypatch):
    monkeypatch.setattr(finished, "LOOKED_UP", 2)
    runner = Here()
    run = finished.finished_first(runner, store)
    run("squares", square, jobs(store, [1, 2]))
    done = run("squares", square, jobs(store, [1, 2, 3]))
    assert runner.got == [1, 2, 1, 2, 3]
    assert [item.reused for item in done] == [True, True, False]


def test_looking_up_is_not_measured_as_work(store):
    run = finished.finished_first(Here(), store)
    with kept(run, recipe(), store) as measured:
        measured("squares", square, jobs(store, [1]))
    (name,) = [name for name in store.list("runs/") if name.endswith("near_memory.json")]
    assert b'"units":1' in store.get(name)
