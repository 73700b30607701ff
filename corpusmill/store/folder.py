"""A store in a local folder.

Create: temporary file in the same file system, write, fsync, link() to the final name (fails if it exists), unlink,
fsync of the folder. Temporary files live in `tmp/`, in a locked folder per process; those of dead processes are
cleared by the next writer.

The root may be a link; inside it a link, or anything but folders and files, is refused: nothing outside the store is
read, written or deleted on its behalf.
"""
# The system calls are the protocol here, and the crash tests stop at each of them.
# ruff: noqa: PTH102, PTH108, PTH116

from __future__ import annotations

import builtins
import errno
import hashlib
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

from corpusmill.errors import CheckFailed, MillError, Refused, Unavailable
from corpusmill.store.backend import COPY_BYTES, Absent, Exists, Source, Stat
from corpusmill.store.scratch import Scratch

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


class FolderBackend:
    """Names are paths under a root folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.uri = str(root)
        self.retry_for_s = 0.0  # a local write has no unknown outcome
        self._scratch = Scratch(root / "tmp")

    def attempt(self, name: str, source: Source) -> None:
        final = self._path(name)
        self._path("tmp")
        temporary: str | None = None
        try:
            fd, temporary = tempfile.mkstemp(dir=self._scratch.folder)
            try:
                _write(fd, source, name)
                os.fchmod(fd, 0o644)  # mkstemp gives 0600
                os.fsync(fd)
            finally:
                os.close(fd)
            _make_folders(final.parent, self.root)
            try:
                os.link(temporary, final, follow_symlinks=False)
            except FileExistsError as err:
                raise Exists(name) from err
            finally:
                # Also where it exists: its writer may have died before this line, and we are about to rely on the name.
                _fsync_folder(final.parent)
        except OSError as err:
            raise disk_fault(err, self.root) from err
        finally:
            if temporary is not None:
                os.unlink(temporary)

    def read(self, name: str) -> bytes:
        pieces: list[bytes] = []
        self.stream_to(name, pieces.append, pieces.clear)
        return b"".join(pieces)

    def _path(self, name: str) -> Path:
        """Where a name is.

        Raises:
            Refused: a link is on the way there, or in its place.
        """
        path = self.root
        for part in name.split("/"):
            path /= part
            try:
                mode = os.lstat(path).st_mode
            except (FileNotFoundError, NotADirectoryError):
                break
            except OSError as err:
                raise disk_fault(err, self.root) from err
            if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
                raise odd_entry(path)
        return self.root / name

    def refuse_links(self) -> None:
        """Look through the whole store, and at `tmp`.

        Raises:
            Refused: there is a link, or something else that is neither folder nor file.
        """
        self.list("")
        self._path("tmp")

    def stream_to(self, name: str, write: Callable[[bytes], object], restart: Callable[[], object]) -> None:
        path = self._path(name)
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError as err:
            raise Absent(name) from err
        except OSError as err:
            raise disk_fault(err, self.root) from err
        with os.fdopen(fd, "rb") as file:
            while True:
                try:
                    chunk = file.read(COPY_BYTES)
                except OSError as err:
                    raise disk_fault(err, self.root) from err
                if not chunk:
                    return
                write(chunk)

    def stat(self, name: str) -> Stat | None:
        try:
            return Stat(os.stat(self._path(name), follow_symlinks=False).st_size, None)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as err:
            raise disk_fault(err, self.root) from err

    def list(self, prefix: str) -> builtins.list[tuple[str, int]]:
        folder = prefix.rpartition("/")[0]
        top = self._path(folder) if folder else self.root
        found: list[tuple[str, int]] = []
        try:
            self._walk(top, prefix, found)
        except OSError as err:
            raise disk_fault(err, self.root) from err
        return sorted(found)

    def _walk(self, folder: Path, prefix: str, found: builtins.list[tuple[str, int]]) -> None:
        try:
            entries = [*os.scandir(folder)]
        except (FileNotFoundError, NotADirectoryError):
            return
        for entry in entries:
            name = os.path.relpath(entry.path, self.root)
            ours = f"{name}/".startswith(prefix) or prefix.startswith(f"{name}/")
            if entry.is_dir(follow_symlinks=False):
                if name != "tmp" and ours:
                    self._walk(Path(entry.path), prefix, found)
            elif not entry.is_file(follow_symlinks=False):
                if ours or name.startswith(prefix):
                    raise odd_entry(Path(entry.path))
            elif name.startswith(prefix):
                try:
                    found.append((name, entry.stat(follow_symlinks=False).st_size))
                except FileNotFoundError:
                    continue  # deleted while we listed

    def delete(self, name: str) -> None:
        try:
            os.unlink(self._path(name))
        except FileNotFoundError:
            return
        except OSError as err:
            raise disk_fault(err, self.root) from err

    def server_date(self) -> str | None:
        return None

    def local(self, name: str) -> Path | None:
        return self._path(name)


def odd_entry(path: Path) -> Refused:
    """The message for what is neither folder nor file."""
    where = f"It leads to {path.readlink()}." if path.is_symlink() else "It is a device, a pipe or a socket."
    what = "a link" if path.is_symlink() else "neither a folder nor a file"
    return Refused(
        f"{path} is {what}: a store holds none.", where, "Remove it, or put what it stands for into its place."
    )


def _write(fd: int, source: Source, name: str) -> None:
    sha = hashlib.sha256()
    for chunk in source.chunks():
        sha.update(chunk)
        view = memoryview(chunk)
        while view:
            view = view[os.write(fd, view) :]
    if sha.hexdigest() != source.digest:
        raise CheckFailed(
            f"The local file for {name} changed after it was hashed.",
            f"expected sha256 {source.digest}, read {sha.hexdigest()} from {source.path}",
            "The file was changed or damaged on the scratch disk; run the command again.",
        )


def _make_folders(folder: Path, root: Path) -> None:
    """mkdir -p below root, each new folder made durable in its parent."""
    if folder == root or folder.is_dir():
        return
    _make_folders(folder.parent, root)
    try:
        os.mkdir(folder)
    except FileExistsError:
        pass  # another writer was faster
    _fsync_folder(folder.parent)


def _fsync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def disk_fault(err: OSError, where: Path | str) -> MillError:
    """The message for a fault of the local disk."""
    said = os.strerror(err.errno) if err.errno else str(err)
    if err.errno in (errno.ENOSPC, errno.EDQUOT):
        return Unavailable(
            f"No space left on the disk of {where}.", said, "Free some space and run again: finished work is kept."
        )
    if err.errno in _NO_LINKS:
        return Unavailable(
            f"The file system of {where} cannot hold a store.",
            f"A store needs hard links and fsync; error of the system: {said}",
            "Put the store on a local file system, or on S3.",
        )
    if err.errno in (errno.EACCES, errno.EROFS):
        return Unavailable(f"No permission in {where}.", said, "Check the owner and mode of the store's folder.")
    return Unavailable(
        f"The disk of {where} fails: {said}.", str(err), "Check the disk and run again: finished work is kept."
    )
