"""Saves that training does not wait for: the step copies the state to host memory, a thread does all the rest.

The thread compares the copies of the model, writes files, uploads them, commits, and removes older checkpoints. All
that the ranks exchange for it goes through a gloo group of its own, so it never meets the collectives of training. One
save is in flight at a time: the next waits for it, since it uses the same host memory.

A save succeeds on all ranks or on none. What fails in a thread is kept until the training thread asks: each step the
ranks agree whether one `failed`, then all `wait`, which raises it. The end of a run waits too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import Any

import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

from corpusmill.errors import MillError
from corpusmill.store import Store
from training.checkpoints import checkpoint, commits, replicas
from training.checkpoints.retention import Retention, sweep
from training.checkpoints.staging import Buffers
from training.parallel import Ranks


@dataclass
class Saver:
    """Saves the checkpoints of one run; leaves as a context when the last of them is done.

    Args:
        scratch: a local folder that all ranks of this machine share.
        background: write in a thread; else each save returns when it is committed. The stored bytes are the same.
        say: gets a line of news, on rank 0 also from the thread.
    """

    store: Store
    run_id: str
    model: nn.Module
    optimizer: Optimizer
    ranks: Ranks
    scratch: Path
    keep: Retention = field(default_factory=Retention)
    background: bool = True
    say: Callable[[str], None] = lambda line: None
    buffers: Buffers = field(default_factory=Buffers)
    _flight: Future[None] | None = None
    _group: dist.ProcessGroup | None = None

    def save(
        self, facts: Mapping[str, Any], extra: Mapping[str, bytes] | None = None, damaged: Collection[str] = ()
    ) -> str:
        """Begin to store a checkpoint of all ranks, once the one before is done; its name.

        Args:
            facts: the content of COMMIT.json besides the files; `step` names the checkpoint.
            extra: name in the store -> content of what this rank stores besides; all of it is there before COMMIT.json.
            damaged: names of checkpoints that could not be loaded; their steps are stored under further names.

        Raises:
            what went wrong with the save before; without `background`, with this one.
        """
        began = time.perf_counter()
        self.wait()
        if self._group is None:  # by the training threads of all ranks, in the same order as other groups
            self._group = dist.new_group(backend="gloo")
        name = commits.free_name(self.run_id, facts["step"], damaged)
        state = checkpoint.state_of(self.model, self.optimizer)
        if self.background:
            state = self.buffers.copied(state)
        waited = time.perf_counter() - began
        work = partial(self._stored, name, dict(facts), dict(extra or {}), {*damaged}, state, began, waited)
        if self.background:
            self._flight = self._thread.submit(work)
        else:
            work()
        return name

    @property
    def failed(self) -> bool:
        """Whether the save in flight has ended by a fault, which `wait` raises."""
        return self._flight is not None and self._flight.done() and self._flight.exception() is not None

    def wait(self) -> None:
        """Until the save in flight, if there is one, is committed.

        Raises:
            what went wrong with it.
        """
        flight, self._flight = self._flight, None
        if flight is not None:
            flight.result()

    def __enter__(self) -> Saver:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        try:
            self.wait()
        except Exception as second:
            if fault is None:
                raise
            self.say(f"WARNING: besides, the save in flight has failed: {second}")
        finally:
            self._thread.shutdown()
        if fault is None and self._group is not None:
            dist.destroy_process_group(self._group)

    @cached_property
    def _thread(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(1, "save")

    def _stored(
        self,
        name: str,
        facts: dict[str, Any],
        extra: dict[str, bytes],
        damaged: set[str],
        state: Any,
        began: float,
        waited: float,
    ) -> None:
        if isinstance(self.model, DistributedDataParallel):
            replicas.check(state, facts["step"], self._group)
        checkpoint.write(self.store, name, facts, state, self.ranks, self.scratch, self._group, extra)
        if self.ranks.rank == 0:
            took = f"{time.perf_counter() - began:.2f} s" + (f", {waited:.2f} of it waited for" * self.background)
            self.say(f"saved {name} in {took}")
            self._forget(damaged)

    def _forget(self, damaged: set[str]) -> None:
        """Remove the checkpoints that need not stay; where that fails, training goes on."""
        try:
            for name in sweep(self.store, self.run_id, self.keep, damaged):
                self.say(f"removed {name}")
        except MillError as err:
            self.say(f"WARNING: older checkpoints stay: {err.what}")
