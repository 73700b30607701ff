"""Getting at files below a root: a folder, file:// or http(s)://.

Downloads are resumed by range after a cut, retried with backoff and jitter on 429 and 5xx, and measured against the
length that the server gave. The root is the user's own setting and may be a private host; redirects stay within http
and https.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import BinaryIO
from urllib.parse import quote, unquote, urlsplit

import urllib3

from corpusmill.errors import NotFound, Unavailable, UsageError

CHUNK_BYTES = 2**20
CUTS = 8
"""How often one download may break off and be resumed."""


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
            with path.open("wb") as out:
                _download(_address(root, locator), out)
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
        address = _address(root, locator)
        response = _request(address, 0)
        if response.status in (403, 404):
            raise NotFound(
                f"no {locator} at {root}", f"the server answers {response.status}", "Check the root and the crawl."
            )
        _must_be_ok(response, address)
        return response.data
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


@lru_cache(maxsize=1)
def _pool(process: int) -> urllib3.PoolManager:
    """Connections of this process."""
    retries = urllib3.Retry(
        total=8,
        redirect=5,
        status_forcelist=(429, 500, 502, 503, 504),
        backoff_factor=0.5,
        backoff_max=30,
        backoff_jitter=0.5,
        respect_retry_after_header=True,
        raise_on_status=False,
    )
    return urllib3.PoolManager(retries=retries, timeout=urllib3.Timeout(connect=10, read=60))


def _request(address: str, begin: int, *, stream: bool = False) -> urllib3.BaseHTTPResponse:
    headers = {"User-Agent": "corpusmill", "Accept-Encoding": "identity"}
    if begin:
        headers["Range"] = f"bytes={begin}-"
    try:
        return _pool(os.getpid()).request("GET", address, headers=headers, preload_content=not stream)
    except urllib3.exceptions.HTTPError as err:
        raise Unavailable(f"{address} does not answer", str(err), "Check the address and try again.") from err


def _must_be_ok(response: urllib3.BaseHTTPResponse, address: str) -> None:
    if response.status not in (200, 206):
        raise Unavailable(
            f"{address} cannot be read",
            f"the server answers {response.status}",
            "Bring it back, or take it off the list.",
        )


def _download(address: str, out: BinaryIO) -> None:
    size = 0
    for _ in range(CUTS + 1):
        response = _request(address, size, stream=True)
        _must_be_ok(response, address)
        if size and response.status == 200:  # a server without ranges starts again
            out.seek(0)
            out.truncate()
            size = 0
        length = response.headers.get("Content-Length")
        expected = size + int(length) if length is not None else None
        try:
            for chunk in response.stream(CHUNK_BYTES):
                out.write(chunk)
                size += len(chunk)
        except urllib3.exceptions.HTTPError:
            continue
        finally:
            response.release_conn()
        if expected is None or size == expected:
            return
    raise Unavailable(f"{address} breaks off", f"after {size} bytes, {CUTS + 1} times", "Try again later.")
