"""Run units on this machine: a pool of spawned processes, results in the order of the items.

A unit's error does not stop the others: all finish, then the first error (in item order) is raised. A pool that lost a
worker (killed, out of memory) is rebuilt, and only the items without a result run again.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import TypeVar

from corpusmill.errors import Incomplete, MillError
from corpusmill.redact import guard_logs

T = TypeVar("T")
R = TypeVar("R")

REBUILDS = 2
"""How often a pool that lost a worker is made anew within one `map`."""


class Stopped(Incomplete):
    """The engine was closed while units ran, as when a flow run is cancelled."""


class Engine:
    """`with Engine(workers) as engine: engine.map(fn, items)`; `map` may be called from several threads.

    Args:
        workers: processes; 1 runs the units in this process.
        shared: threads share this engine, and every unit goes to the pool, also a single one: units in threads of this
            process would wait for each other and could not be ended.
    """

    def __init__(self, workers: int = 1, *, shared: bool = False) -> None:
        self.workers = max(1, workers)
        self.shared = shared
        self._closed = False
        self._pool: ProcessPoolExecutor | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._closed = True  # a thread whose units were killed here must not start them again
            pool, self._pool = self._pool, None
        if pool is None:
            return
        if kind is not None:
            for process in list((pool._processes or {}).values()):
                process.kill()
        # No cancel_futures: a thread in `map` would wait for ever for a future that is cancelled so. Those of a dead
        # pool get its error.
        pool.shutdown(wait=True)

    def map(self, fn: Callable[[T], R], items: Sequence[T], on_done: Callable[[R], None] | None = None) -> list[R]:
        """Results of `fn` over `items`, in their order.

        Args:
            on_done: called in this thread after each item, in the order they finish.

        Raises:
            the first item's error; Incomplete when workers keep dying.
        """
        if not self.shared and (self.workers == 1 or len(items) <= 1):
            return self._here(fn, items, on_done)
        results: dict[int, R] = {}
        errors: dict[int, Exception] = {}
        for _ in range(REBUILDS + 1):
            todo = [i for i in range(len(items)) if i not in results and i not in errors]
            if not todo:
                break
            pool = self._live_pool()
            try:
                futures = self._submit(pool, fn, items, todo)
                for future in as_completed(futures):
                    error = future.exception()
                    if isinstance(error, BrokenProcessPool):
                        raise error
                    if isinstance(error, Exception):
                        errors[futures[future]] = error
                        continue
                    results[futures[future]] = future.result()
                    if on_done:
                        on_done(future.result())
            except BrokenProcessPool:
                self._forget(pool)
        _raise_first(errors, len(items))
        if len(results) < len(items):
            raise Incomplete(
                f"{len(items) - len(results)} of {len(items)} units have no result",
                f"worker processes died {REBUILDS + 1} times (killed, or out of memory)",
                "Finished units are stored: run the same command again, with fewer --workers if memory was exhausted.",
            )
        return [results[i] for i in range(len(items))]

    def _here(self, fn: Callable[[T], R], items: Sequence[T], on_done: Callable[[R], None] | None) -> list[R]:
        results: list[R] = []
        errors: dict[int, Exception] = {}
        for i, item in enumerate(items):
            try:
                results.append(fn(item))
            except Exception as err:
                errors[i] = err
            else:
                if on_done:
                    on_done(results[-1])
        _raise_first(errors, len(items))
        return results

    def _live_pool(self) -> ProcessPoolExecutor:
        with self._lock:
            self._refuse_if_closed()
            if self._pool is None:
                context = multiprocessing.get_context("spawn")
                self._pool = ProcessPoolExecutor(self.workers, context, initializer=_start, initargs=(os.getpid(),))
            return self._pool

    def _submit(
        self, pool: ProcessPoolExecutor, fn: Callable[[T], R], items: Sequence[T], todo: Sequence[int]
    ) -> dict[Future[R], int]:
        with self._lock:
            self._refuse_if_closed()  # a worker that is started now would not be killed
            try:
                return {pool.submit(fn, items[i]): i for i in todo}
            except OSError as err:
                if err.errno is not None:
                    raise
                # "handle is closed": a worker died, and the pool ended while it started another one
                raise BrokenProcessPool(str(err)) from err

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise Stopped(
                "the work was stopped",
                "its process pool is closed",
                "Finished units are stored: run the same command again.",
            )

    def _forget(self, pool: ProcessPoolExecutor) -> None:
        with self._lock:
            if self._pool is pool:
                self._pool = None
        pool.shutdown(wait=False, cancel_futures=True)


def _raise_first(errors: dict[int, Exception], total: int) -> None:
    if not errors:
        return
    error = errors[min(errors)]
    if len(errors) > 1 and isinstance(error, MillError):
        others = f"{len(errors) - 1} more of {total} units failed too; all others are finished and stored."
        raise type(error)(error.what, error.why, f"{error.do}\n{others}".strip()) from error
    raise error


def _start(parent: int) -> None:
    """A worker leaves interrupts to its parent and ends with it, even when that is killed.

    The parent is watched by a thread: the kernel's parent-death signal would fire when the *thread* that made the
    worker ends, which may be one of a flow's short-lived task threads.
    """
    guard_logs()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["PYTHONSAFEPATH"] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the pool is the parallelism
    os.environ["RAYON_NUM_THREADS"] = "1"  # the same for tokie

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
