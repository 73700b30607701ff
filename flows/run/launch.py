"""Training as a process: start `python -m training`, pass on its log, read its result, and end it in every case."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from corpusmill import errors
from corpusmill.errors import Incomplete, MillError
from corpusmill.places import python_environment
from corpusmill.processes import supervise
from corpusmill.store.scratch import temporary_folder

GRACE_S = 25.0
"""The launcher gives its ranks 20 s to store a checkpoint; a Prefect worker kills a cancelled flow after 30."""
PREEMPTIONS = 3
"""Times that a stopped run is resumed within one flow run."""
LINES_PER_S = 1.0
BURST = 60


def train_in_process(
    store: str,
    ref: str,
    config: str,
    overrides: Sequence[str] = (),
    resume: str | None = None,
    *,
    origin: str | None = None,
    moments: bool = False,
    on_line: Callable[[str], None],
) -> dict[str, Any]:
    """Train on a dataset in processes of its own; any way out of here ends all of them.

    Args:
        store, ref, config, overrides, resume, origin, moments: as `training.launch.train_ref` takes them.
        on_line: gets the lines of the log, as they come.

    Returns:
        what `train_ref` returns.

    Raises:
        MillError: what it raises; an internal error if it ended without a result.
    """
    job = {
        "store": store,
        "ref": ref,
        "config": config,
        "overrides": list(overrides),
        "resume": resume,
        "origin": origin,
        "moments": moments,
        "log_dir": str(Path(".corpusmill/runs").resolve()),
    }
    env = {**python_environment(), "PYTHONUNBUFFERED": "1"}
    with temporary_folder() as folder:
        file = folder / "job.json"
        file.write_text(json.dumps(job), encoding="utf-8")
        log = folder / "log"
        code = supervise(
            [sys.executable, "-m", "training", str(file)], log=log, on_line=on_line, env=env, grace_s=GRACE_S
        )
        answer = file.with_name("job.json.result")
        if not answer.exists():
            raise MillError(f"training of {ref} ended with exit code {code} and no result", last_lines(log))
        result: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    if "error" in result:
        kinds = {
            kind.id: kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, MillError)
        }
        raise kinds[result["error"]](result["what"], result["why"], result["do"])
    return result


def until_finished(attempt: Callable[[], dict[str, Any]], say: Callable[[MillError], None]) -> dict[str, Any]:
    """Attempt a training run again as long as it is stopped from outside (a machine that is taken away), within limits.

    Raises:
        Incomplete: it was stopped more than PREEMPTIONS times. MillError: what an attempt raises.
    """
    for _ in range(PREEMPTIONS):
        try:
            return attempt()
        except Incomplete as stopped:
            say(stopped)
    return attempt()


def last_lines(log: Path, count: int = 5) -> str:
    """The end of a log, for a message."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(line for line in lines[-count:] if line.strip())


class Limited:
    """Passes on at most a burst of lines and then one per second; reports how many it dropped.

    A line costs a request and a row on the server, and a rank in trouble can print thousands.
    """

    def __init__(self, to: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self.to, self.clock = to, clock
        self.budget, self.at, self.kept_back = float(BURST), clock(), 0

    def __call__(self, line: str) -> None:
        """Take a line."""
        now = self.clock()
        self.budget = min(BURST, self.budget + (now - self.at) * LINES_PER_S)
        self.at = now
        if self.budget < 1:
            self.kept_back += 1
            return
        self.budget -= 1
        if self.kept_back:
            self.to(f"… {self.kept_back} lines are only in the log of the run")
            self.kept_back = 0
        self.to(line)
