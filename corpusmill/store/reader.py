"""Verified reads of objects: nothing is handed out before its sha256 was compared with its name.

A file is verified once per process as long as its state (inode, size, times) is the same; every read of a table
checks its pages besides.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pyarrow as pa

from corpusmill.errors import NotFound
from corpusmill.file_state import FileState
from corpusmill.store import keys
from corpusmill.store.backend import Absent, Backend, hash_stream
from corpusmill.store.folder import disk_fault
from corpusmill.store.parquet import damaged
from corpusmill.store.receipts import Output
from corpusmill.store.scratch import Scratch, process_scratch

_verified: dict[Path, FileState] = {}


class Reader:
    """Reads of one store. Copies of remote objects go to CORPUSMILL_CACHE, else to the scratch folder."""

    def __init__(self, backend: Backend, scratch: Scratch) -> None:
        self._backend, self._scratch = backend, scratch

    def bytes(self, output: Output) -> bytes:
        """The whole object, in memory."""
        _check_output(output)
        try:
            data = self._backend.read(output.name)
        except Absent:
            raise gone(output, self._backend.uri) from None
        if (found := hashlib.sha256(data).hexdigest()) != output.digest:
            raise damaged(output.name, f"expected sha256 {output.digest}, read {found} ({len(data)} bytes)")
        return data

    def source(self, output: Output) -> Path | pa.Buffer:
        """For reading a table: a verified file, or a verified buffer where a copy on disk would serve only once."""
        if self._backend.local(output.name) or "CORPUSMILL_CACHE" in os.environ:
            return self.local_path(output)
        return pa.py_buffer(self.bytes(output))

    def local_path(self, output: Output) -> Path:
        """A verified file with the object's bytes."""
        _check_output(output)
        own = self._backend.local(output.name)
        path = own or self._cache_folder() / output.name
        if (known := _verified.pop(path, None)) is not None and known == _state(path):
            _verified[path] = known
            return path
        digest, state = _digest(path)
        if own is None and digest != output.digest:  # not yet fetched, or the copy went bad
            try:
                self.fetch(output.name, path, process_scratch(self._cache_folder()))
            except Absent:
                raise gone(output, self._backend.uri) from None
            digest, state = _digest(path)
        if digest is None or state is None:
            raise gone(output, self._backend.uri)
        if digest != output.digest:
            raise damaged(output.name, f"expected sha256 {output.digest}, read {digest} from {path}")
        if state.settled:
            _verified[path] = state
        return path

    def local_parts(self, output: Output) -> Path:
        """A local file of the object's size; a copy was verified when it was made, and its reader verifies parts."""
        _check_output(output)
        path = self._backend.local(output.name)
        if path is None:
            path = self._cache_folder() / output.name  # whole or not at all: `local_path` put it there
        state = _state(path)
        if state is None or state.size != output.size:
            return self.local_path(output)
        return path

    def _cache_folder(self) -> Path:
        cache = os.environ.get("CORPUSMILL_CACHE")
        return Path(cache) if cache else self._scratch.folder

    def fetch(self, name: str, to: Path, by_way_of: Scratch) -> None:
        """Copy to a local file, which appears whole or not at all. Raises Absent.

        Args:
            by_way_of: on the same file system.
        """
        try:
            to.parent.mkdir(parents=True, exist_ok=True)
            part = by_way_of.path()
            try:
                with part.open("wb") as file:
                    self._backend.stream_to(name, file.write, lambda: (file.seek(0), file.truncate()))
                part.replace(to)
            finally:
                part.unlink(missing_ok=True)
        except OSError as err:
            raise disk_fault(err, to.parent) from err


def _check_output(output: Output) -> None:
    """A manifest may only name objects, and only those of the digest it gives."""
    if keys.object_digest(output.name) != output.digest:
        raise damaged(output.name, f"the reference to it says sha256 {output.digest}")


def _state(path: Path) -> FileState | None:
    """The state of a file now; None where it cannot be had."""
    try:
        return FileState.of(path.lstat())
    except OSError:
        return None


def _digest(path: Path) -> tuple[str | None, FileState | None]:
    """Hex sha256 of a file, which must not be a symbolic link, and the state that it had before; None: no file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as file:
            state = FileState.of(os.fstat(fd))
            return hash_stream(file)[0], state
    except FileNotFoundError:
        return None, None
    except OSError as err:
        raise disk_fault(err, path.parent) from err


def gone(output: Output, uri: str) -> NotFound:
    """The message for an object that is not there."""
    return NotFound(
        f"{output.name} is not in the store {uri}.", "It was stored once.", "Build again: the missing unit runs again."
    )
