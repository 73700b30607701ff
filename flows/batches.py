"""One Prefect task run per batch of units: the one place where task runs are made.

A task run costs the server 24 to 36 ms and 20 KB, and bursts of thousands lose records; a unit costs our own engine a
few milliseconds. So a stage's units are cut into few batches, each batch is one task run, and all batches of a flow run
share one process pool. Nothing is cached by Prefect and nothing is stored by it: a batch that is run again finds its
receipts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.futures import wait
from prefect.tasks import exponential_backoff

from corpusmill.engine import Engine
from corpusmill.errors import Unavailable

if TYPE_CHECKING:
    from tasks.chain import Runner

TASK_RUNS = 300
"""Most task runs of one flow run, whatever the number of units."""
WIDEST = 128
"""Most batches of one stage."""
RESERVE = 40
"""Task runs kept for late stages of one unit."""


class Batches:
    """How many batches each stage gets, so that a flow run stays under `TASK_RUNS`.

    A stage takes at most `WIDEST` and at most half of what is left above the reserve, then one. With nothing left it
    runs inside the flow itself.
    """

    def __init__(self) -> None:
        self.left = TASK_RUNS

    def cut(self, units: Sequence[Any]) -> list[Sequence[Any]]:
        """Consecutive runs of units, as even as can be; an empty list: run them in the flow, no task run is left."""
        if not units or not self.left:
            return []
        allowed = max(1, min(WIDEST, (self.left - RESERVE) // 2))
        count = min(allowed, len(units))
        self.left -= count
        bounds = [len(units) * i // count for i in range(count + 1)]
        return [units[a:b] for a, b in pairwise(bounds)]


def is_transient(task: object, run: TaskRun, state: State[Any]) -> bool:
    """Whether trying again may help: something outside was away. (The engine itself replaces workers that die.)"""
    error = state.result(raise_on_failure=False)
    return isinstance(error, (Unavailable, ConnectionError, TimeoutError))


@task(
    task_run_name="{stage}/{number}",
    cache_policy=NO_CACHE,
    persist_result=False,
    retries=2,
    retry_delay_seconds=exponential_backoff(backoff_factor=2),
    retry_jitter_factor=0.3,
    retry_condition_fn=is_transient,
)
def run_batch(stage: str, number: int, of: int, units: int, work: Callable[[], None]) -> dict[str, int]:
    """One batch. The results go to the flow through `work`: Prefect sees counts only."""
    began = time.monotonic()
    work()
    get_run_logger().info("%s: batch %d of %d, %d units in %.1f s", stage, number, of, units, time.monotonic() - began)
    return {"units": units}


@contextmanager
def in_batches(workers: int) -> Iterator[Runner]:
    """The driver of a chain inside a flow run: stages in batches, batches as task runs, units on one process pool.

    Args:
        workers: processes of the pool.
    """
    batches = Batches()
    with Engine(workers, shared=True) as engine:

        def run(stage: str, fn: Callable[[Any], Any], units: Sequence[Any]) -> list[Any]:
            cut = batches.cut(units)
            if not cut:
                return engine.map(fn, units)
            results: dict[int, list[Any]] = {}

            def work(number: int) -> Callable[[], None]:
                return lambda: results.__setitem__(number, engine.map(fn, cut[number]))

            futures = [
                run_batch.submit(stage, number + 1, len(cut), len(part), work(number))
                for number, part in enumerate(cut)
            ]
            wait(
                futures
            )  # all finish before the first failure is raised: what is done is stored and need not run again
            for future in futures:
                future.result()
            return [result for number in range(len(cut)) for result in results[number]]

        yield run
