"""What is shown of a flow run that somebody waits for: its log, and where it is when the log is silent."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

QUIET_S = 10.0
"""After so many seconds without a line, one says where the run is."""

_STAGE = re.compile(r"[a-z]+: [\d,]+ of [\d,]+ units")


class Following:
    """Shows the lines of a run's log and, at least every ten seconds, its stage, units done and seconds."""

    def __init__(self, show: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._show, self._clock = show, clock
        self._began = self._spoke = clock()
        self._state, self._stage = "", ""

    def line(self, text: str) -> None:
        """A line of the log."""
        if stage := _STAGE.match(text):
            self._stage = stage[0]
        self._say(text)

    def is_in(self, state: str) -> None:
        """The state of the run now: shown where it is another one, and again where nothing else was for a while."""
        now = self._clock()
        if state != self._state or now - self._spoke >= QUIET_S:
            self._state = state
            stage = f", {self._stage}" if self._stage and state == "Running" else ""
            self._say(f"{state}{stage}, {now - self._began:.0f} s")

    def _say(self, text: str) -> None:
        self._spoke = self._clock()
        self._show(text)
