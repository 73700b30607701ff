"""The progress that `mill build` shows on stderr: one bar per stage on a terminal, else one line every 30 seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from mill.common import show

if TYPE_CHECKING:
    from corpusmill.engine.local import Engine
    from tasks.units import Runner

EVERY_S = 30.0
"""Seconds between lines when stderr is not a terminal: bars would make logs unreadable."""


@contextmanager
def shown(engine: Engine, to: TextIO) -> Iterator[Runner]:
    """A runner of the chain on this engine that shows the progress of each stage."""
    if to.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description:<12}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(file=to), refresh_per_second=4) as bars:

            def with_bar(stage: str, fn: Callable[[Any], Any], units: Sequence[Any]) -> list[Any]:
                bar = bars.add_task(stage, total=len(units))
                return engine.map(fn, units, on_done=lambda _: bars.advance(bar))

            yield with_bar
    else:
        yield Lines(engine, to)


class Lines:
    """One line when a stage has run for 30 s, one every 30 s after that, and one when such a stage ends."""

    def __init__(self, engine: Engine, to: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self.engine, self.to, self.clock = engine, to, clock
        self.last = clock()

    def __call__(self, stage: str, fn: Callable[[Any], Any], units: Sequence[Any]) -> list[Any]:
        done, began = 0, self.clock()

        def count(_: object) -> None:
            nonlocal done
            done += 1
            now = self.clock()
            if now - self.last >= EVERY_S or (done == len(units) and now - began >= EVERY_S):
                self.last = now
                show(f"stage={stage} done={done} of={len(units)} seconds={now - began:.0f}", to=self.to)

        return self.engine.map(fn, units, on_done=count)
