"""Getting at files below a root: a folder, file:// or http(s)://.

A locator is a path below the root and cannot leave it. Downloads go to scratch and are removed after use.
"""

from __future__ import annotations

import hashlib
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
    """A local file with the sha256 of its bytes."""

    path: Path
    sha256: str
    size: int


@contextmanager
def fetch(root: str, locator: str) -> Iterator[Fetched]:
    """A file below root as a local file; a downloaded one is removed at the end.

    Raises:
        Unavailable: it is missing, cannot be read, or the server does not answer.
    """
    if is_http(root):
        with tempfile.TemporaryDirectory(prefix="corpusmill-fetch-") as scratch:
            path = Path(scratch) / "file"
            try:
                with path.open("wb") as out:
                    http.download(_address(root, locator), out)
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
            yield _measured(path)
    else:
        path = folder_of(root) / _safe(locator)
        try:
            file = _measured(path)
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
        return http.get(_address(root, locator))
    try:
        return (folder_of(root) / _safe(locator)).read_bytes()
    except FileNotFoundError as err:
        raise NotFound(f"no {locator} in {root}", "", "Check source.*.root and the crawl's id.") from err
    except OSError as err:
        raise Unavailable(f"{locator} in {root} cannot be read", str(err)) from err


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


def _address(root: str, locator: str) -> str:
    return f"{root.rstrip('/')}/{quote(str(_safe(locator)))}"


def _measured(path: Path) -> Fetched:
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
    return Fetched(path, digest.hexdigest(), size)
