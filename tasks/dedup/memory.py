"""Memory that the search for near-duplicates used, beside the recipe's limit: `runs/<id>/near_memory.json`.

Units write it to a folder on this machine, like requests (tasks/traffic.py). It differs from run to run, so it is
not part of any receipt, key or manifest.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from corpusmill.canonical import canonical_json
from corpusmill.config import Recipe
from corpusmill.errors import MillError
from corpusmill.processes import forget_peak, peak_bytes
from corpusmill.store import Store
from corpusmill.store.scratch import temporary_folder
from tasks.units import Done, Job, Missing, Runner


@dataclass(frozen=True)
class Measured:
    """A unit for a worker process: writes the memory of the process to `folder`, also if the unit fails."""

    fn: Callable[[Any], Done]
    stage: str
    folder: str

    def __call__(self, job: Job) -> Done:
        forget_peak()
        before, worked = peak_bytes(), True
        try:
            done = self.fn(job)
            worked = not done.reused
            return done
        except Missing:
            worked = False
            raise
        finally:
            if worked:
                peak = max(before, peak_bytes())  # the system counts pages by the dozen
                line = json.dumps({"stage": self.stage, "before_bytes": before, "peak_bytes": peak})
                with (Path(self.folder) / f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as file:
                    file.write(line + "\n")


@contextmanager
def kept(run: Runner, recipe: Recipe, store: Store) -> Iterator[Runner]:
    """The same runner, which measures its units; the figures are stored when the block ends or fails.

    If the store is unavailable then, the error of the block is still the one raised.
    """
    with temporary_folder() as folder:

        def measured(stage: str, fn: Callable[[Any], Any], units: Sequence[Any]) -> list[Any]:
            return run(stage, Measured(fn, stage, str(folder)), units)

        try:
            yield measured
        finally:
            if stages := _by_stage(folder):
                name = f"runs/{datetime.now(UTC):%Y%m%dt%H%M%S}-{secrets.token_hex(4)}/near_memory.json"
                granted = recipe.deduplicate.memory_mb * 2**20
                with suppress(MillError):
                    store.put(name, canonical_json({"granted_bytes": granted, "stages": stages}))


def _by_stage(folder: Path) -> dict[str, dict[str, int]]:
    """Units of each stage, and the most that a process held in one of them, the interpreter and libraries included."""
    stages: dict[str, dict[str, int]] = {}
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            stage = stages.setdefault(row["stage"], {"units": 0, "before_bytes": 0, "peak_bytes": 0})
            stage["units"] += 1
            if row["peak_bytes"] > stage["peak_bytes"]:
                stage |= {"before_bytes": row["before_bytes"], "peak_bytes": row["peak_bytes"]}
    return stages
