"""A temporary folder of one process that is removed with it, even if the process was killed.

The owner holds an flock on the folder; the next process that opens a scratch beside it removes unlocked siblings.
"""

from __future__ import annotations

import fcntl
import functools
import itertools
import os
import shutil
import tempfile
import threading
import weakref
from pathlib import Path

_PREFIX = "corpusmill-scratch-"


class Scratch:
    """Made at first use, so that a store on a read-only disk can still be read; gone with this object."""

    def __init__(self, parent: Path) -> None:
        self._parent, self._pid = parent, 0
        self._folder: Path | None = None
        self._names = itertools.count()
        self._lock = threading.Lock()

    @property
    def folder(self) -> Path:
        """The folder; in a forked child a new one of its own."""
        with self._lock:
            if self._folder is None or self._pid != os.getpid() or not self._folder.exists():
                self._parent.mkdir(parents=True, exist_ok=True)
                _clear_abandoned(self._parent)
                self._folder, lock = _make(self._parent)
                self._pid = os.getpid()
                weakref.finalize(self, _remove, self._folder, lock, self._pid)
            return self._folder

    def path(self) -> Path:
        """A fresh file name in it."""
        return self.folder / f"{next(self._names):08d}"

    def discard(self, path: Path) -> None:
        """Remove a file if it is in this folder; files of others are left alone."""
        if path.parent == self._folder:
            path.unlink(missing_ok=True)


@functools.cache
def process_scratch(parent: Path) -> Scratch:
    """The one scratch of this process for drafts and copies of remote objects; it lives as long as the process."""
    return Scratch(parent)


def _make(parent: Path) -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(dir=parent, prefix=_PREFIX))
        try:
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue  # cleared between mkdtemp and open
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.exists():  # else cleared between open and flock
            return folder, lock
        os.close(lock)


def _clear_abandoned(parent: Path) -> None:
    for folder in parent.glob(f"{_PREFIX}*"):
        try:
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            continue  # gone, or not ours to touch
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # its owner lives
        finally:
            os.close(fd)


def _remove(folder: Path, lock: int, pid: int) -> None:
    if os.getpid() == pid:  # a forked child inherits the finalizer, not the folder
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)
