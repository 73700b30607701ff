"""CPU seconds of a process and all it started, and where they went; used on both sides, standard library only.

Wall clock is of no use on a busy machine, and a chain that extracts in child processes spends most of its time there.
"""

from __future__ import annotations

import os
import resource
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def cpu_seconds() -> float:
    """User and system seconds of this process, its ended children and (on Linux) its living descendants."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages) + sum(map(_ticks, _children(os.getpid()))) * TICK_S


def _ticks(pid: int) -> int:
    """Ticks of a living process, of its ended children and of its living descendants."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(map(int, fields[11:15])) + sum(map(_ticks, _children(pid)))  # utime, stime, cutime, cstime: proc(5)


def _children(pid: int) -> list[int]:
    try:
        return [
            int(child)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
    except OSError:
        return []


class Stopwatch:
    """CPU seconds by step. Steps nest and may be generators: time is of the step that runs, not of those that wait."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = defaultdict(float)
        self._running: list[str] = []
        self._last = cpu_seconds()

    def within(self, name: str, work: Callable[[], T]) -> T:
        """The result of `work`, whose time counts as the step's."""
        self._switch()
        self._running.append(name)
        try:
            return work()
        finally:
            self._switch()
            self._running.pop()

    def function(self, name: str, fn: Callable[..., T]) -> Callable[..., T]:
        """The function, timed."""
        return lambda *args, **kwargs: self.within(name, lambda: fn(*args, **kwargs))

    def generator(self, name: str, fn: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
        """The generator function (or one that returns None), timed whenever it is asked for an item."""

        def timed(*args: Any, **kwargs: Any) -> Iterator[Any]:
            produced = iter(self.within(name, lambda: fn(*args, **kwargs)) or ())
            while True:
                try:
                    item = self.within(name, lambda: next(produced))
                except StopIteration:
                    return
                yield item

        return timed

    def _switch(self) -> None:
        now = cpu_seconds()
        if self._running:
            self.spent[self._running[-1]] += now - self._last
        self._last = now
