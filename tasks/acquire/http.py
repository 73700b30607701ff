"""Patient HTTP: retries with backoff and jitter, downloads resumed by range, redirects followed one by one.

Retried: connection faults, bodies that break off, 408, 429 and 5xx; Retry-After is honoured up to `max_wait_s`. An
attempt that brought bytes starts the count of attempts anew. The first address is the user's own setting and may be a
private host; a redirect may not lead from a public host to a private one, nor away from http and https.
"""

from __future__ import annotations

import email.utils
import ipaddress
import os
import random
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import BinaryIO, TypeVar
from urllib.parse import urljoin, urlsplit

import urllib3

from corpusmill.errors import NotFound, Unavailable

T = TypeVar("T")

CHUNK_BYTES = 2**20
MAX_REDIRECTS = 5
RETRIED = frozenset((408, 429, 500, 502, 503, 504))
REDIRECTS = frozenset((301, 302, 303, 307, 308))
MISSING = frozenset((403, 404, 410))  # object stores say 403 of what is not there


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long to try."""

    attempts: int = 8
    """In a row without a single new byte."""
    backoff_s: float = 0.5
    """Wait after the first failure; doubled after each further one, with jitter."""
    max_wait_s: float = 60.0
    """Longest wait, also where Retry-After asks for more."""
    sleep: Callable[[float], None] = time.sleep
    """Tests count instead of waiting."""


DEFAULT = Patience()


class _Again(Exception):
    """This attempt failed in a way that may pass."""

    def __init__(self, why: str, retry_after_s: float | None = None) -> None:
        super().__init__(why)
        self.retry_after_s = retry_after_s


def get(address: str, patience: Patience = DEFAULT) -> bytes:
    """A small resource, whole.

    Raises:
        NotFound: the server has none.
        Unavailable: it does not answer, or not with it.
    """

    def attempt() -> bytes:
        with _opened(address, {}) as response:
            _judge(response, address)
            return response.read()

    return _persist(address, patience, attempt, lambda: 0)


def get_range(address: str, begin: int, size: int, patience: Patience = DEFAULT) -> bytes:
    """Some bytes of a resource; fewer where it ends.

    Raises:
        NotFound: the server has none.
        Unavailable: it does not answer, or not with ranges.
    """

    def attempt() -> bytes:
        with _opened(address, {"Range": f"bytes={begin}-{begin + size - 1}"}) as response:
            if response.status == 416:
                return b""
            _judge(response, address)
            if response.status != 206:
                raise Unavailable(f"{address} cannot be read in part", "the server does not answer ranges")
            if not _goes_on(response, begin):
                raise _Again("another range than the one asked for")
            return response.read(size)

    return _persist(address, patience, attempt, lambda: 0)


def download(address: str, out: BinaryIO, patience: Patience = DEFAULT) -> int:
    """A large resource into a file that is empty; returns its length, which is the one the server promised.

    Raises:
        NotFound: the server has none.
        Unavailable: it does not answer, or breaks off again and again.
    """
    transfer = _Transfer(address, out)
    return _persist(address, patience, transfer.attempt, lambda: transfer.size)


class _Transfer:
    """A download that goes on where it broke off, as long as the resource is still the same."""

    def __init__(self, address: str, out: BinaryIO) -> None:
        self.address, self.out = address, out
        self.size = 0
        self._version: str | None = None

    def attempt(self) -> int:
        headers = {}
        if self.size:
            headers["Range"] = f"bytes={self.size}-"
            if self._version:
                headers["If-Range"] = self._version
        with _opened(self.address, headers) as response:
            if self.size and (response.status == 416 or not _goes_on(response, self.size)):
                self._restart()
                if response.status not in (200, *RETRIED):
                    raise _Again(f"status {response.status} to a range")
            _judge(response, self.address)
            etag = response.headers.get("ETag", "")
            self._version = etag if etag.startswith('"') else response.headers.get("Last-Modified")
            length = response.headers.get("Content-Length", "")
            expected = self.size + int(length) if length.isdigit() else None
            for chunk in response.stream(CHUNK_BYTES):
                self.out.write(chunk)
                self.size += len(chunk)
        if expected is not None and self.size != expected:
            raise _Again(f"{self.size} bytes of {expected}")
        return self.size

    def _restart(self) -> None:
        self.out.seek(0)
        self.out.truncate()
        self.size, self._version = 0, None


def _persist(address: str, patience: Patience, attempt: Callable[[], T], progress: Callable[[], int]) -> T:
    failures, reached = 0, 0
    while True:
        try:
            return attempt()
        except _Again as err:
            failures = 1 if progress() > reached else failures + 1
            reached = max(reached, progress())
            if failures >= patience.attempts:
                raise Unavailable(
                    f"{address} cannot be fetched",
                    f"{err}; tried {failures} times, {reached} bytes had come",
                    "Check the address, or try again later: what is finished stays.",
                ) from err
            wait = patience.backoff_s * 2 ** (failures - 1) * random.uniform(0.5, 1.5)
            patience.sleep(min(max(wait, err.retry_after_s or 0.0), patience.max_wait_s))


@contextmanager
def _opened(address: str, headers: dict[str, str]) -> Iterator[urllib3.BaseHTTPResponse]:
    """A response whose connection is used again only if its body was read to the end."""
    response = _open(address, headers)
    try:
        yield response
        response.release_conn()
    except urllib3.exceptions.HTTPError as err:
        raise _Again(str(err)) from err
    finally:
        response.close()


def _open(address: str, headers: dict[str, str]) -> urllib3.BaseHTTPResponse:
    """The response at the end of the redirects, its body not yet read."""
    place = address
    for _ in range(MAX_REDIRECTS + 1):
        try:
            response = _pool(os.getpid()).request(
                "GET",
                place,
                headers={"User-Agent": "corpusmill", "Accept-Encoding": "identity", **headers},
                preload_content=False,
                decode_content=False,
                redirect=False,
                retries=False,
            )
        except urllib3.exceptions.LocationValueError as err:
            raise Unavailable(f"{place} is no address", str(err)) from err
        except urllib3.exceptions.HTTPError as err:
            raise _Again(str(err)) from err
        if response.status not in REDIRECTS:
            return response
        target = urljoin(place, response.headers.get("Location", ""))
        response.close()
        _may_follow(address, target)
        place = target
    raise Unavailable(f"{address} redirects more than {MAX_REDIRECTS} times")


def _may_follow(address: str, target: str) -> None:
    begin, end = urlsplit(address), urlsplit(target)
    if end.scheme not in ("http", "https") or not end.hostname:
        raise Unavailable(f"{address} redirects to {target}", "only http and https are followed")
    if end.hostname != begin.hostname and _is_private(end.hostname) and not _is_private(begin.hostname or ""):
        raise Unavailable(f"{address} redirects to {target}", "a public host may not lead to a private one")


def _is_private(host: str) -> bool:
    try:
        found = socket.getaddrinfo(host, None)
    except (OSError, UnicodeError):
        return False  # it will not answer either
    return any(not ipaddress.ip_address(str(entry[4][0]).partition("%")[0]).is_global for entry in found)


def _judge(response: urllib3.BaseHTTPResponse, address: str) -> None:
    if response.status in (200, 206):
        return
    if response.status in RETRIED:
        raise _Again(f"the server answers {response.status}", _retry_after_s(response.headers.get("Retry-After")))
    if response.status in MISSING:
        raise NotFound(f"no {address}", f"the server answers {response.status}", "Check the root and the crawl.")
    raise Unavailable(f"{address} cannot be read", f"the server answers {response.status}")


def _goes_on(response: urllib3.BaseHTTPResponse, begin: int) -> bool:
    """Whether a response continues at the byte asked for."""
    if response.status in RETRIED:
        return True  # says nothing about the range
    return response.status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {begin}-")


def _retry_after_s(value: str | None) -> float | None:
    """Seconds that a Retry-After header asks for, as a number or a date."""
    if not value:
        return None
    if value.strip().isdigit():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


@lru_cache(maxsize=1)
def _pool(process: int) -> urllib3.PoolManager:
    """Connections of this process."""
    return urllib3.PoolManager(timeout=urllib3.Timeout(connect=10, read=60))
