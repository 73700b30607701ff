"""Where the time of a step goes, on every rank, and which of three things holds the ranks up.

The time of forward and backward passes shows no cause: a rank that waits for a slower one in a collective
looks as slow. So each rank notes when its first gradients are *ready*, before any are sent (DDP: a communication hook),
and how long it stays after its last ones are. All of it is gathered: the straggler is the rank that is ready last;
communication is what even the rank that waits for nobody has to wait for. FSDP2 communicates in the forward pass too
and has no such hook: there, on CPUs, a rank's own work is the CPU time of its thread, and the rest counts as waiting.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

WORTH_NAMING = 0.1
"""Share of the step below which nothing is called a bottleneck."""


@dataclass(frozen=True)
class StepTimes:
    """Seconds of one rank in one step.

    Args:
        input: until the batch was there.
        ready: own work until the first gradients were ready.
        exposed: waiting for the exchange of gradients after the last of them were ready.
        optimizer: gradient bound and update.
        total: the whole step.
    """

    input: float
    ready: float
    exposed: float
    optimizer: float
    total: float

    def pack(self) -> bytes:
        """Forty bytes for the wire."""
        return struct.pack("<5d", *asdict(self).values())

    @staticmethod
    def unpack(data: bytes) -> StepTimes:
        """What `pack` made."""
        return StepTimes(*struct.unpack("<5d", data))


class Stopwatch:
    """Times the steps of this rank. `ready()` is called for each bucket of gradients where `hooked`."""

    def __init__(self) -> None:
        self.hooked = False
        self._start = self._input = self._work = self._first = self._last = self._end = 0.0
        self._cpu = self._own = 0.0

    def start(self) -> None:
        """A step begins."""
        self._start = time.perf_counter()

    def input_done(self) -> None:
        """The batch is there; what follows until `work()` is agreement between the ranks."""
        self._input = time.perf_counter() - self._start

    def work(self) -> None:
        """Forward and backward passes begin, on all ranks at about the same time."""
        self._work, self._cpu, self._first = time.perf_counter(), time.thread_time(), 0.0

    def ready(self) -> None:
        """Some gradients are ready to be sent."""
        self._last = time.perf_counter()
        self._first = self._first or self._last

    def work_done(self) -> None:
        """All gradients are exchanged."""
        self._end, self._own = time.perf_counter(), time.thread_time() - self._cpu

    def done(self) -> StepTimes:
        """The step is over."""
        now = time.perf_counter()
        whole = self._end - self._work
        ready = self._first - self._work if self.hooked else min(self._own, whole)
        exposed = self._end - self._last if self.hooked else whole - ready
        return StepTimes(self._input, ready, exposed, now - self._end, now - self._start)


def verdict(steps: Sequence[Sequence[StepTimes]]) -> dict[str, object]:
    """What holds the ranks up, from the times of every rank in some steps (medians over the steps).

    Returns:
        `bottleneck` (input, straggler, communication, or none when each is under a tenth of the step), the shares of
        the three in the step, the `rank` to look at for input and straggler, and `step_s`.
    """
    if not steps:
        return {"bottleneck": "none", "shares": {}, "rank": None, "step_s": 0.0}
    table = np.median([[list(asdict(t).values()) for t in ranks] for ranks in steps], axis=0)  # [ranks, 5]
    read, ready, exposed, _, total = table.T
    step = float(total.max())
    shares = {
        "input": float(read.max()) / step,
        "straggler": float(ready.max() - ready.min()) / step,
        "communication": float(exposed.min()) / step if len(table) > 1 else 0.0,
    }
    worst = max(shares, key=lambda name: shares[name])
    bottleneck = worst if shares[worst] >= WORTH_NAMING else "none"
    rank = {"input": int(read.argmax()), "straggler": int(ready.argmax())}.get(bottleneck)
    return {
        "bottleneck": bottleneck,
        "shares": {name: round(share, 4) for name, share in shares.items()},
        "rank": rank,
        "step_s": round(step, 4),
    }
