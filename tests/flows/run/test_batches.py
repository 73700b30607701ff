"""Units in batches: few task runs whatever the size of the crawl, and every unit in exactly one batch."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prefect.states import Failed

from corpusmill.engine.local import Engine
from corpusmill.errors import CheckFailed, MillError, Unavailable
from corpusmill.processes import identify
from flows.run.batches import is_transient
from tasks.batches import TASK_RUNS, WIDEST, Batches

CHAIN_AT_90_000_FILES = [
    ("documents", 90_000),
    ("exact", 1),
    ("near", 1),
    ("decide", 90_000),
    ("tokenizer", 1),
    ("pack", 8_192),
]
"""What `tasks.chain.build` asks to be run for a whole crawl."""


def test_a_whole_crawl_takes_at_most_300_task_runs() -> None:
    batches = Batches()
    runs = {stage: len(batches.cut(range(units))) for stage, units in CHAIN_AT_90_000_FILES}
    assert runs["documents"] == WIDEST
    assert all(count >= 1 for count in runs.values())
    assert sum(runs.values()) <= TASK_RUNS


def test_a_small_build_has_a_task_run_for_every_file() -> None:
    assert Batches().cut(["a", "b", "c"]) == [["a"], ["b"], ["c"]]


@given(st.lists(st.integers(0, 5_000), max_size=60))
def test_no_sequence_of_stages_exceeds_the_limit_or_loses_a_unit(stages: list[int]) -> None:
    batches, used = Batches(), 0
    for units in stages:
        cut = batches.cut(range(units))
        used += len(cut)
        assert [unit for part in cut for unit in part] == (list(range(units)) if cut else [])
        assert all(len(part) for part in cut)
        assert max(map(len, cut), default=0) - min(map(len, cut), default=0) <= 1
    assert used <= TASK_RUNS


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (Unavailable("store is away"), True),
        (ConnectionResetError(), True),
        (TimeoutError(), True),
        (CheckFailed("a digest"), False),
        (MillError("ours"), False),
        (ValueError(), False),
    ],
)
def test_only_what_may_pass_is_tried_again(error: Exception, again: bool) -> None:
    state: Any = Failed(data=error)
    run: Any = None
    assert is_transient(None, run, state) is again


def test_a_single_unit_leaves_the_flow_process_alone() -> None:
    with Engine(1, shared=True) as engine:
        assert engine.map(own_pid, [0]) != [os.getpid()]


def own_pid(_: int) -> int:
    return os.getpid()


def test_a_cancelled_flow_ends_the_units_of_its_batches_at_once(tmp_path: Path) -> None:
    """The pool dies under the threads that wait for it, and none of them makes a new one."""
    ended: list[BaseException] = []
    began = time.monotonic()

    def batch() -> None:
        try:
            engine.map(endless, [tmp_path])
        except BaseException as err:
            ended.append(err)

    threads = [threading.Thread(target=batch) for _ in range(7)]
    engine = Engine(2, shared=True)
    for thread in threads:
        thread.start()
    while len(list(tmp_path.iterdir())) < 2:
        time.sleep(0.05)
        assert time.monotonic() - began < 60
    engine.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    for thread in threads:
        thread.join(timeout=20)
    assert [str(err).splitlines()[0] for err in ended] == ["the work was stopped"] * 7
    pids = [int(file.name) for file in tmp_path.iterdir()]
    assert not any(identify(pid) for pid in pids)


def endless(folder: Path) -> None:
    (folder / str(os.getpid())).touch()
    time.sleep(600)
