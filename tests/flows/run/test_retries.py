"""Batches that fail, on a real server."""

from __future__ import annotations

from typing import Any

import pytest
from prefect import flow
from prefect.task_runners import ThreadPoolTaskRunner

from corpusmill.errors import CheckFailed, Unavailable
from flows.platform.supervisor import Platform
from flows.run.batches import run_batch


@pytest.mark.parametrize(
    ("error", "attempts"), [(Unavailable("the store is away"), 2), (CheckFailed("a digest differs"), 1)]
)
def test_a_batch_is_tried_again_only_when_that_may_help(platform: Platform, error: Exception, attempts: int) -> None:
    calls: list[int] = []

    def work() -> None:
        calls.append(len(calls))
        if len(calls) == 1:
            raise error

    @flow(name="retries", task_runner=ThreadPoolTaskRunner(max_workers=1))  # type: ignore[arg-type]
    def build() -> Any:
        future = run_batch.submit("documents", 1, 1, 1, work)
        future.wait()
        return future.state.name

    assert build() == ("Completed" if attempts == 2 else "Failed")
    assert len(calls) == attempts
