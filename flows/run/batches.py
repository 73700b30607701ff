"""One Prefect task run per batch of units: the one place where task runs are made.

A task run costs the server 24 to 36 ms and 20 KB, and bursts of thousands lose records; a unit costs our own engine a
few milliseconds. So a stage's units are cut into few batches (tasks/batches.py), each batch is one task run, and all
batches of a flow run share one process pool. Nothing is cached by Prefect and nothing is stored by it: a batch that is
run again finds its receipts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.futures import wait
from prefect.states import Cancelled
from prefect.tasks import exponential_backoff

from corpusmill.engine.local import Engine, Stopped
from corpusmill.errors import Unavailable
from flows.run.faults import without_secrets
from flows.run.progress import Stage
from tasks.batches import Batches

if TYPE_CHECKING:
    from tasks.units import Runner


def is_transient(task: object, run: TaskRun, state: State[Any]) -> bool:
    """Whether a retry may help: something outside was unavailable. (The engine itself replaces workers that die.)"""
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
def run_batch(
    stage: str, number: int, of: int, units: int, work: Callable[[], None]
) -> dict[str, int] | State[dict[str, int]]:
    """One batch. The results go to the flow through `work`: Prefect sees counts only."""
    began = time.monotonic()
    try:
        with without_secrets():
            work()
    except Stopped:
        return Cancelled(message="The flow run was cancelled. Finished units are stored: run it again to go on.")
    get_run_logger().info("%s: batch %d of %d, %d units in %.1f s", stage, number, of, units, time.monotonic() - began)
    return {"units": units}


@contextmanager
def in_batches(workers: int) -> Iterator[Runner]:
    """The driver of a chain inside a flow run: stages in batches, batches as task runs, units on one process pool.

    Args:
        workers: processes of the pool.
    """
    batches, log = Batches(), get_run_logger()
    with Engine(workers, shared=True) as engine:

        def run(stage: str, fn: Callable[[Any], Any], units: Sequence[Any]) -> list[Any]:
            cut, progress = batches.cut(units), Stage(stage, len(units), log.info)
            if not cut:
                return engine.map(fn, units, progress.done)
            results: dict[int, list[Any]] = {}

            def work(number: int) -> Callable[[], None]:
                return lambda: results.__setitem__(number, engine.map(fn, cut[number], progress.done))

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
