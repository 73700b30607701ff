"""Units in batches: few task runs whatever the size of the crawl, and every unit in exactly one batch."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prefect.states import Failed

from corpusmill.errors import CheckFailed, MillError, Unavailable
from flows.batches import TASK_RUNS, WIDEST, Batches, is_transient

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
