"""A local file that is made once for a dataset and answered from later: sealed, so that another one is noticed.

Beside `FILE` lies `FILE.seal`: whose it is, its sha256, and the state of the file (file_state.py) when it was last
hashed. An equal state costs no read; else the file is hashed. A file that is damaged, replaced or of another dataset is
made anew, and a note says so.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path

from corpusmill.errors import CheckFailed
from corpusmill.file_state import FileState
from corpusmill.store.backend import hash_stream
from corpusmill.store.receipts import seal, unseal
from corpusmill.store.scratch import Scratch
from tasks.acquire import notices

MOST_SEAL_BYTES = 1 << 16
"""A seal has some 400."""


def sealed(file: Path, owner: str, make: Callable[[Path], None]) -> Path:
    """The file, made if it is not there or not what was sealed.

    Args:
        owner: what it was made from; in the seal.
        make: writes it to the path given, which does not exist.
    """
    if holds(file, owner):
        return file
    file.parent.mkdir(parents=True, exist_ok=True)
    with _alone(file.parent):
        if holds(file, owner):  # another process was faster
            return file
        if os.path.lexists(file):
            notices.say(f"{file} is damaged or not of this dataset: made anew")
        discard(file)
        scratch = Scratch(file.parent)
        partial = scratch.path()
        make(partial)
        with partial.open("rb") as made:
            digest = hash_stream(made)[0]
        _write_seal(scratch, file, owner, digest, None)
        partial.replace(file)
    return file


def holds(file: Path, owner: str) -> bool:
    """Whether the file is the one that was sealed for this owner, and nothing that is read with it lies beside it."""
    if _log_of(file).exists():
        return False
    try:
        said = unseal(_bytes_of(_seal_of(file)), str(_seal_of(file)))
        fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (OSError, CheckFailed):
        return False
    with os.fdopen(fd, "rb") as opened:
        state = FileState.of(os.fstat(fd))
        if said.get("owner") != owner:
            return False
        if said.get("state") == _written(state):
            return True
        if hash_stream(opened)[0] != said.get("sha256"):
            return False
    if state.settled:
        _renew(file, owner, str(said["sha256"]), state)
    return True


def discard(file: Path) -> None:
    """Remove it, its seal, and a log that DuckDB would replay."""
    for path in (file, _seal_of(file), _log_of(file)):
        path.unlink(missing_ok=True)


def _seal_of(file: Path) -> Path:
    return file.with_name(f"{file.name}.seal")


def _log_of(file: Path) -> Path:
    return file.with_name(f"{file.name}.wal")


def _bytes_of(path: Path) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        return file.read(MOST_SEAL_BYTES)


def _written(state: FileState) -> list[str]:
    return [str(number) for number in astuple(state)]  # as text: nanoseconds are beyond what JSON numbers hold


def _write_seal(scratch: Scratch, file: Path, owner: str, digest: str, state: list[str] | None) -> None:
    path = scratch.path()
    path.write_bytes(seal({"owner": owner, "sha256": digest, "state": state}))
    path.replace(_seal_of(file))


def _renew(file: Path, owner: str, digest: str, state: FileState) -> None:
    """Keep the state in which the file was hashed just now; where nothing can be written it is hashed each time."""
    scratch = Scratch(file.parent)
    with contextlib.suppress(OSError):
        _write_seal(scratch, file, owner, digest, _written(state))


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time makes files in a folder."""
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
