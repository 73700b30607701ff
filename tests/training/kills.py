"""Ranks that kill themselves at a point inside a save, and what a run has left in its store.

A point is a function of ours (or of DCP) before or after whose n-th call the process gets SIGKILL. The functions
themselves are the real ones.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpusmill.store import Store
from tests.training.forked import joined, started
from training import loop
from training.checkpoints import commits
from training.run import RunSpec

SAVER, CHECKPOINT = "training.checkpoints.saver:", "training.checkpoints.checkpoint:"


@dataclass(frozen=True)
class Point:
    """Where a rank is killed.

    Args:
        function: `module:name` or `module:Class.name`, as it is looked up when it is called.
        when: before or after the call; or `later`: before it, once training has done a step more.
        first_rank: only rank 0 comes there.
    """

    function: str
    when: str = "before"
    first_rank: bool = False


POINTS = {
    "before the copy": Point("training.checkpoints.staging:Buffers.copied"),
    "between copy and thread": Point("training.checkpoints.staging:Buffers.copied", "after"),
    "before the copies are compared": Point("training.checkpoints.replicas:digest"),
    "before the files": Point(CHECKPOINT + "dcp_save"),
    "files without .metadata": Point("torch.distributed.checkpoint.filesystem:FileSystemWriter.finish", "before", True),
    "nothing uploaded": Point(CHECKPOINT + "_upload"),
    "nothing uploaded while the next step runs": Point(CHECKPOINT + "_upload", "later"),
    "a file uploaded": Point(CHECKPOINT + "_upload", "after"),
    "all uploaded but the metrics": Point("corpusmill.store.store:Store.put", "before", True),
    "metrics stored, not committed": Point("training.checkpoints.commits:write", "before", True),
    "not committed while the next step runs": Point("training.checkpoints.commits:write", "later", True),
    "committed": Point("training.checkpoints.commits:write", "after", True),
    "older ones removed in part": Point("corpusmill.store.store:Store.remove", "after", True),
}


def attempt(spec: RunSpec, claim: int, logs: Path, world: int, kill: tuple[int, str, int] | None = None) -> list[Any]:
    """Train without a launcher; the exit codes of the ranks.

    Args:
        kill: rank, name of a point, and in which save (from 1) it dies there; None: nobody dies.
    """
    folder = logs / f"{spec.run_id}.{claim}"
    folder.mkdir(parents=True)
    scratch = folder / "scratch"
    scratch.mkdir()
    spec.write(folder / "run.json", claim, scratch)
    return joined(started(world, _train, folder, kill))


def _train(rank: int, folder: Path, kill: tuple[int, str, int] | None) -> None:
    log = os.open(folder / f"log.{rank}", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    if kill and kill[0] == rank:
        _arm(POINTS[kill[1]], kill[2], folder / f"heartbeat.{rank}")
    os._exit(loop.main(folder / "run.json"))


def _arm(point: Point, save: int, heartbeat: Path) -> None:
    """Have this process killed at a point of its n-th save; the step of each is known from its copy."""
    began: list[int] = []

    def step() -> int:
        return int(json.loads(heartbeat.read_text())["step"])

    def copies(real: Callable[..., Any], *args: Any) -> Any:
        began.append(step())
        return real(*args)

    def dies(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if len(began) < save:
            return real(*args, **kwargs)
        if point.when == "after":
            real(*args, **kwargs)
        deadline = time.monotonic() + 20
        while point.when == "later" and step() == began[-1]:
            assert time.monotonic() < deadline, "training does not go on while a save is written"
            time.sleep(0.002)
        os.kill(os.getpid(), signal.SIGKILL)

    _wrap(point.function, dies)
    _wrap("training.checkpoints.staging:Buffers.copied", copies)


def _wrap(function: str, wrapper: Callable[..., Any]) -> None:
    module, _, path = function.partition(":")
    *owners, name = path.split(".")
    owner: Any = importlib.import_module(module)
    for part in owners:
        owner = getattr(owner, part)
    real = getattr(owner, name)
    setattr(owner, name, lambda *args, **kwargs: wrapper(real, *args, **kwargs))


def stored(store: Store, run_id: str) -> dict[int, dict[str, Any]]:
    """Metrics in the store by step, without times; a step that two attempts stored must be the same in both."""
    found: dict[int, dict[str, Any]] = {}
    for name in store.list(f"runs/{run_id}/metrics."):
        for line in map(json.loads, store.get(name).splitlines()):
            del line["ranks"]
            assert found.setdefault(line["step"], line) == line
    return found


def last(store: Store, run_id: str) -> tuple[Mapping[str, Any], dict[str, str]]:
    """The newest checkpoint: what decides, and the sha256 of its files."""
    commit = commits.latest(store, run_id)
    assert commit is not None
    same = ("step", "batch_chain", "tokens", "loss_first", "loss_last", "heldout_before", "next_sample")
    files = {file["file"]: file["sha256"] for file in commit.facts["files"]}
    return {name: commit.facts[name] for name in same}, files
