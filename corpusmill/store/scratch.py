"""Temporary folders that are removed with their process, and by the next run where the process was killed.

All that is temporary lies in one folder of each process and place, `corpusmill-scratch-*`, private to its user. A file
`owner` in it says which machine it belongs to, and its owner holds a lock on that file as long as it lives. Who makes a
scratch beside it removes those whose owner is dead:

* on this machine (the same start of the same kernel): the lock is free;
* of another machine, or of an earlier start: the lock is free and nothing in it changed for a day, since not every
  shared file system knows the locks of others.

What has no such file, or belongs to another user, is nobody's to remove.
"""

from __future__ import annotations

import fcntl
import functools
import itertools
import json
import os
import shutil
import socket
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

PREFIX = "corpusmill-scratch-"
OWNER = "owner"
ELSEWHERE_S = 86_400.0
"""How long nothing changed in a scratch of another machine before it is taken for abandoned."""
_MOST_OWNER_BYTES = 4096


class Scratch:
    """Made at first use, so that a store on a read-only disk can be read; gone with this object, or its `with`."""

    def __init__(self, parent: Path) -> None:
        self._parent, self._pid = parent, 0
        self._folder: Path | None = None
        self._names = itertools.count()
        self._lock = threading.Lock()

    def __enter__(self) -> Scratch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the folder, if this process has made it."""
        if self._folder is not None and self._pid == os.getpid():
            self._remove()
            self._folder = None

    @property
    def folder(self) -> Path:
        """The folder; in a forked child a new one of its own."""
        with self._lock:
            if self._folder is None or self._pid != os.getpid() or not self._folder.exists():
                self._parent.mkdir(parents=True, exist_ok=True)
                clear_abandoned(self._parent)
                self._folder, locks = _make(self._parent)
                self._pid = os.getpid()
                self._remove = weakref.finalize(self, _remove, self._folder, locks, self._pid)
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


@contextmanager
def temporary_folder(parent: Path | None = None) -> Iterator[Path]:
    """An empty folder for the length of the block.

    Args:
        parent: on whose file system; None: the system's folder for temporary files.
    """
    if parent is not None:
        with Scratch(parent) as own:
            folder = own.path()
            folder.mkdir()
            yield folder
        return
    folder = process_scratch(Path(tempfile.gettempdir())).path()
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def clear_abandoned(parent: Path) -> None:
    """Remove the scratch folders in a folder whose owners are dead; never follows a link."""
    for found in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):  # gone, not ours to touch, or its owner lives
            _clear(found)


def _clear(folder: Path) -> None:
    state = folder.lstat()
    if folder.is_symlink() or state.st_uid != os.geteuid():
        return
    try:
        fd = os.open(folder / OWNER, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        if time.time() - state.st_mtime > ELSEWHERE_S:
            folder.rmdir()  # killed before it had the file: empty, else this fails
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        said = os.read(fd, _MOST_OWNER_BYTES)
        machine, old = _machine_in(said), time.time() - _newest(folder) > ELSEWHERE_S
        unsaid = not said and [path.name for path in folder.iterdir()] == [OWNER]  # killed before it said so
        if machine == _machine() or (old and (machine or unsaid)):
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(fd)


def _machine_in(data: bytes) -> str | None:
    """The machine that an `owner` file names; None where it is none of ours, or not yet written."""
    try:
        said = json.loads(data)
        return str(said["machine"]) if said["format"] == "corpusmill-scratch" else None
    except (ValueError, KeyError, TypeError):
        return None


@functools.cache
def _machine() -> str:
    """One start of one kernel, of which containers are a part; elsewhere than on Linux, the host."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return socket.gethostname()


def _newest(folder: Path) -> float:
    """When something in a folder was last changed."""
    found = [folder.lstat().st_mtime]
    for here, folders, files in os.walk(folder):
        for name in (*folders, *files):
            with suppress(OSError):
                found.append(Path(here, name).lstat().st_mtime)
    return max(found)


def _make(parent: Path) -> tuple[Path, tuple[int, int]]:
    while True:
        folder = Path(tempfile.mkdtemp(dir=parent, prefix=PREFIX))
        try:
            return folder, _owned(folder)
        except FileNotFoundError:
            continue  # an earlier version cleared it before it was locked
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise


def _owned(folder: Path) -> tuple[int, int]:
    """Locks on the folder, at which earlier versions look, and on its owner file."""
    locks = (
        os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC),
        os.open(folder / OWNER, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600),
    )
    for lock in locks:
        with suppress(OSError):  # a file system without locks: nobody can take it, so nobody removes it
            fcntl.flock(lock, fcntl.LOCK_EX)
    os.write(locks[1], json.dumps({"format": "corpusmill-scratch", "machine": _machine()}).encode())
    return locks


def _remove(folder: Path, locks: tuple[int, int], pid: int) -> None:
    if os.getpid() == pid:  # a forked child inherits the finalizer, not the folder
        shutil.rmtree(folder, ignore_errors=True)
        for lock in locks:
            os.close(lock)
