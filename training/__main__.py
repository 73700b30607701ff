"""`python -m training JOB.json`: one training as a process of its own, as the flow `train` starts it.

The job has store, ref, config, overrides, resume, origin, moments and log_dir. The result is written beside it as
`JOB.json.result`: what `train_ref` returns, or {"error", "what", "why", "do"} of an error that a user can correct.
Lines of the log go to stdout.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from corpusmill.errors import MillError
from corpusmill.store import open_store
from training.launch import train_ref


def main(job: Path) -> int:
    """Run the job; its exit code."""
    wish = json.loads(job.read_text(encoding="utf-8"))
    code, answer = 0, dict[str, Any]()
    try:
        answer = train_ref(
            open_store(wish["store"]),
            wish["ref"],
            wish["config"],
            wish["overrides"],
            wish["resume"],
            origin=wish["origin"],
            moments=wish["moments"],
            log_dir=Path(wish["log_dir"]),
            on_line=lambda line: print(line, flush=True),
        )
    except MillError as err:
        code = err.exit_code
        answer = {"error": err.id, "what": err.what, "why": err.why, "do": err.do}
    job.with_name(f"{job.name}.result").write_text(json.dumps(answer), encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
