"""The number of batches of a stage's units: arithmetic of task runs, without Prefect.

`flows/run/batches.py` runs one Prefect task per batch; `mill plan` counts them before anything starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

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
