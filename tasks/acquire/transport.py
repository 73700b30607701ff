"""Getting at files below a root: a folder, file:// or http(s)://.

A locator is a path below the root and cannot leave it. Downloads go to scratch and are removed after use.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import quote, unquote, urlsplit

from corpusmill.errors import NotFound, Unavailable, UsageError
from tasks.acquire import http

CHUNK_BYTES = 2**20


@dataclass(frozen=True)
class Fetched:
    """A local file or folder, with the sha256 and number of the bytes that were asked for."""

    path: Path
    sha256: str
    size: int


@contextmanager
def fetch(root: str, locator: str, begin: int = 0, end: int | None = None) -> Iterator[Fetched]:
    """A file below root as a local file; a downloaded one is removed at the end. A folder is one too (a tree).

    Args:
        root: folder, file:// or http(s):// address.
        locator: path below it.
        begin: first byte of the part whose digest is wanted.
        end: byte behind it; None for the end of the file.

    Raises:
        Unavailable: it is missing, cannot be read, or the server does not answer.
    """
    if is_http(root):
        with tempfile.TemporaryDirectory(prefix="corpusmill-fetch-") as scratch:
            path = Path(scratch) / "file"
            try:
                with path.open("wb") as out:
                    http.download(address_of(root, locator), out)
            except NotFound as err:  # a list names it, so it should be there
                raise Unavailable(
                    f"file {locator} is missing at {root}", err.why, "Bring it back, or take it off the list."
                ) from err
            except OSError as err:
                raise Unavailable(
                    f"file {locator} cannot be written to {scratch}",
                    str(err),
                    "Make room, or set TMPDIR to a larger disk.",
                ) from err
            yield _measured(path, begin, end)
    else:
        path = folder_of(root) / _safe(locator)
        try:
            file = _measured_tree(path) if path.is_dir() else _measured(path, begin, end)
        except OSError as err:
            raise Unavailable(
                f"file {locator} cannot be read", f"{path}: {err.strerror}", "Bring it back, or take it off the list."
            ) from err
        yield file


def read(root: str, locator: str) -> bytes:
    """A small file below root, whole.

    Raises:
        NotFound: there is no such file.
        Unavailable: the server does not answer.
    """
    if is_http(root):
        return http.get(address_of(root, locator))
    try:
        return (folder_of(root) / _safe(locator)).read_bytes()
    except FileNotFoundError as err:
        raise NotFound(f"no {locator} in {root}", "", "Check source.*.root and the crawl's id.") from err
    except OSError as err:
        raise Unavailable(f"{locator} in {root} cannot be read", str(err)) from err


def read_range(root: str, locator: str, begin: int, size: int) -> bytes:
    """Some bytes of a file below root; fewer where the file ends.

    Raises:
        Unavailable: it is missing, cannot be read, or the server does not answer.
    """
    try:
        if is_http(root):
            return http.get_range(address_of(root, locator), begin, size)
        with (folder_of(root) / _safe(locator)).open("rb") as file:
            file.seek(begin)
            return file.read(size)
    except (NotFound, OSError) as err:
        raise Unavailable(
            f"file {locator} cannot be read at {root}", str(err), "Bring it back: the index names it."
        ) from err


def is_http(root: str) -> bool:
    """Whether a root is a web address."""
    scheme = urlsplit(root).scheme if "://" in root else ""
    if scheme not in ("", "file", "http", "https"):
        raise UsageError(f"source root {root!r}", "known are a folder, file://, http:// and https://")
    return scheme in ("http", "https")


def folder_of(root: str) -> Path:
    """The folder that a root names.

    Raises:
        NotFound: there is none.
    """
    folder = Path(unquote(urlsplit(root).path) if root.startswith("file://") else root)
    if not folder.is_dir():
        raise NotFound(f"source root {root!r} is not a folder", f"looked in {Path.cwd()}", "Check source.*.root.")
    return folder


def _safe(locator: str) -> PurePosixPath:
    """A locator that stays below its root.

    Raises:
        UsageError: it does not.
    """
    path = PurePosixPath(locator)
    if path.is_absolute() or ".." in path.parts or "\\" in locator or "\0" in locator:
        raise UsageError(f"locator {locator!r}", "expected a path below the root, without ..")
    return path


def address_of(root: str, locator: str) -> str:
    """The address of a file below a web root."""
    return f"{root.rstrip('/')}/{quote(str(_safe(locator)))}"


def _measured(path: Path, begin: int, end: int | None) -> Fetched:
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        file.seek(begin)
        while chunk := file.read(CHUNK_BYTES if end is None else min(CHUNK_BYTES, end - begin - size)):
            digest.update(chunk)
            size += len(chunk)
    return Fetched(path, digest.hexdigest(), size)


def _measured_tree(path: Path) -> Fetched:
    digest, size = hashlib.sha256(), 0
    for name, file in tree_files(path):
        found = _measured(file, 0, None)
        digest.update(f"{name}\0{found.sha256}\n".encode("utf-8", "surrogateescape"))
        size += found.size
    return Fetched(path, digest.hexdigest(), size)


def tree_files(folder: Path) -> list[tuple[str, Path]]:
    """(path below the folder, file) of every regular file, in the order of paths; without links and `.git`."""
    found = []
    for here, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        for path in (Path(here) / name for name in names if name != ".git"):
            if path.is_file() and not path.is_symlink():
                found.append((path.relative_to(folder).as_posix(), path))
    return sorted(found)
