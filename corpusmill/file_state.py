"""Whether a file is still the one that was read, by what the file system says of it: one call, no byte read.

The time of the last change of the inode (ctime) is among it, which no program can set: a modification time that was
put back does not hide an edit. Times move in ticks, so a state younger than a tick says nothing about the next edit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, wraps
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

TICK_NS = 1_000_000_000
"""Longest step of a file system's clock that can hold a store (HFS+: 1 s; ext4, xfs, tmpfs: 1 to 10 ms)."""


@dataclass(frozen=True)
class FileState:
    """What names one content of one file."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, found: os.stat_result) -> FileState:
        """From a call of stat."""
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)

    @property
    def settled(self) -> bool:
        """Whether an edit from now on would show in the state."""
        return time.time_ns() - max(self.mtime_ns, self.ctime_ns) > TICK_NS


def while_unchanged(
    maxsize: int, beside: Callable[[Path], Path] | None = None
) -> Callable[[Callable[[Path], T]], Callable[[Path], T]]:
    """Decorate what reads a file: its result is remembered in this process as long as the file is the same one.

    Args:
        maxsize: results that are held.
        beside: a second file that decides the result, if it is there.
    """

    def decorate(read: Callable[[Path], T]) -> Callable[[Path], T]:
        @lru_cache(maxsize)
        def remembered(path: Path, states: tuple[FileState | None, ...]) -> T:
            return read(path)

        @wraps(read)
        def asked(path: Path) -> T:
            states = tuple(_state(one) for one in (path, *([beside(path)] if beside else ())))
            if states[0] is None or any(state and not state.settled for state in states):
                return read(path)
            return remembered(path, states)

        return asked

    return decorate


def _state(path: Path) -> FileState | None:
    try:
        return FileState.of(path.stat())
    except OSError:
        return None
