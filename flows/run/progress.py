"""What a flow run says while a stage runs: the stage, units done and seconds, in its log."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

EVERY_S = 10.0
"""Seconds between lines of a stage; a short stage has one when it begins."""


class Stage:
    """Counts the units of one stage over all its batches, in any thread."""

    def __init__(
        self, name: str, units: int, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._name, self._units, self._say, self._clock = name, units, say, clock
        self._lock, self._done = threading.Lock(), 0
        self._began = self._last = clock()
        if units:
            say(f"{name}: 0 of {units:,} units")

    def done(self, _: object = None) -> None:
        """One unit is done."""
        with self._lock:
            self._done += 1
            now = self._clock()
            if now - self._last < EVERY_S:
                return
            self._last = now
            self._say(f"{self._name}: {self._done:,} of {self._units:,} units, {now - self._began:.0f} s")
