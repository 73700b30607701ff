"""Patient HTTP: retries with backoff and jitter, downloads resumed by range, redirects followed one by one.

Retried: connection faults, bodies that break off, 408, 429 and 5xx; Retry-After is honoured up to `max_wait_s`. An
attempt that brought bytes starts the count of attempts anew. A body that a checksum contradicts is fetched again
(witness.py). Where requests may go is decided by guard.py, how often by politeness.py.
"""

from __future__ import annotations

import email.utils
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import BinaryIO, TypeVar
from urllib.parse import urljoin, urlsplit

import urllib3

from corpusmill.errors import NotFound, Unavailable
from tasks.acquire import guard, politeness
from tasks.acquire.witness import Witness

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

    def attempt() -> tuple[bytes, Witness]:
        with _opened(address, {}, patience) as response:
            _judge(response, address)
            witness, body = Witness(response.headers), response.read()
            _seen(witness, body)
            return body, witness

    return _undamaged(address, patience, lambda: _persist(address, patience, attempt, lambda: 0))


def get_range(address: str, begin: int, size: int, patience: Patience = DEFAULT) -> bytes:
    """Some bytes of a resource; fewer where it ends.

    Raises:
        NotFound: the server has none.
        Unavailable: it does not answer, or not with ranges.
    """

    def attempt() -> tuple[bytes, Witness]:
        witness = Witness({})  # what a response states is of the whole resource
        with _opened(address, {"Range": f"bytes={begin}-{begin + size - 1}"}, patience) as response:
            if response.status == 416:
                return b"", witness
            _judge(response, address)
            if response.status != 206:
                raise Unavailable(f"{address} cannot be read in part", "the server does not answer ranges")
            if not _goes_on(response, begin):
                raise _Again("another range than the one asked for")
            body = response.read(size)
            length = response.headers.get("Content-Length", "")
            if length.isdigit() and len(body) != min(int(length), size):  # read(n) does not complain of a cut
                raise _Again(f"{len(body)} bytes of {length}")
            _seen(witness, body)
            return body, witness

    return _undamaged(address, patience, lambda: _persist(address, patience, attempt, lambda: 0))


def length(address: str, patience: Patience = DEFAULT) -> int | None:
    """Bytes of a resource, None where the server does not say; asks for one of them.

    Raises:
        NotFound: the server has none.
        Unavailable: it does not answer, or not with it.
    """

    def attempt() -> int | None:
        with _opened(address, {"Range": "bytes=0-0"}, patience) as response:
            if response.status == 416:
                return 0
            _judge(response, address)
            said = response.headers.get("Content-Length", "")
            if response.status == 206:
                said = response.headers.get("Content-Range", "").rpartition("/")[2]
                response.read()  # so that the connection can be used again
            return int(said) if said.isdigit() else None

    return _persist(address, patience, attempt, lambda: 0)


def download(address: str, out: BinaryIO, patience: Patience = DEFAULT) -> int:
    """A large resource into a file that is empty; returns its length, which is the one the server promised.

    Raises:
        NotFound: the server has none.
        Unavailable: it does not answer, or breaks off again and again.
    """
    transfer = _Transfer(address, out, patience)

    def whole() -> tuple[int, Witness]:
        transfer.restart()
        return _persist(address, patience, transfer.attempt, lambda: transfer.size)

    return _undamaged(address, patience, whole)


class _Transfer:
    """A download that goes on where it broke off, as long as the resource is still the same."""

    def __init__(self, address: str, out: BinaryIO, patience: Patience) -> None:
        self.address, self.out, self.patience = address, out, patience
        self.size = 0
        self._version: str | None = None
        self._witness: Witness | None = None

    def attempt(self) -> tuple[int, Witness]:
        headers = {}
        if self.size:
            headers["Range"] = f"bytes={self.size}-"
            if self._version:
                headers["If-Range"] = self._version
        with _opened(self.address, headers, self.patience) as response:
            if self.size and (response.status == 416 or not _goes_on(response, self.size)):
                self.restart()
                if response.status not in (200, *RETRIED):
                    raise _Again(f"status {response.status} to a range")
            _judge(response, self.address)
            etag = response.headers.get("ETag", "")
            self._version = etag if etag.startswith('"') else response.headers.get("Last-Modified")
            length = response.headers.get("Content-Length", "")
            expected = self.size + int(length) if length.isdigit() else None
            witness = self._witness = self._witness or Witness(response.headers)
            for chunk in response.stream(CHUNK_BYTES):
                self.out.write(chunk)
                self.size += len(chunk)
                _seen(witness, chunk)
        if expected is not None and self.size != expected:
            raise _Again(f"{self.size} bytes of {expected}")
        return self.size, witness

    def restart(self) -> None:
        """Forget what has come."""
        self.out.seek(0)
        self.out.truncate()
        self.size, self._version, self._witness = 0, None, None


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
            wait = min(max(wait, err.retry_after_s or 0.0), patience.max_wait_s)
            politeness.count(retries=1, waited_s=wait)
            patience.sleep(wait)


def _undamaged(address: str, patience: Patience, fetch: Callable[[], tuple[T, Witness]]) -> T:
    """What was fetched, if nothing contradicts it, or if it comes a second time with the same bytes."""
    before: set[tuple[int, int]] = set()
    while True:
        result, witness = fetch()
        if not witness.contradicts() or witness.same in before:
            return result
        if len(before) + 1 >= patience.attempts:
            raise Unavailable(
                f"{address} cannot be fetched",
                f"it came damaged {len(before) + 1} times, in different places",
                "Look at the network and at what stands between it and the server.",
            )
        before.add(witness.same)
        politeness.count(damaged=1)


def _seen(witness: Witness, data: bytes) -> None:
    witness.update(data)
    politeness.count(received_bytes=len(data))


@contextmanager
def _opened(address: str, headers: dict[str, str], patience: Patience) -> Iterator[urllib3.BaseHTTPResponse]:
    """The response at the end of the redirects; its connection is used again only if its body was read to the end."""
    root = guard.check_address(address)
    place, private = address, root
    for _ in range(MAX_REDIRECTS + 1):
        with politeness.turn(urlsplit(place).netloc, private, patience.sleep):
            response = _request(place, headers, private)
            try:
                if response.status not in REDIRECTS:
                    yield response
                    response.release_conn()
                    return
            except urllib3.exceptions.HTTPError as err:
                raise _Again(str(err)) from err
            finally:
                response.close()
        target = urljoin(place, response.headers.get("Location", ""))
        private = guard.check_redirect(address, target, root)
        place = target
    raise Unavailable(f"{address} redirects more than {MAX_REDIRECTS} times")


def _request(place: str, headers: dict[str, str], private: bool) -> urllib3.BaseHTTPResponse:
    """One response, its body not yet read."""
    try:
        return _pool(os.getpid(), private).request(
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


def _judge(response: urllib3.BaseHTTPResponse, address: str) -> None:
    if response.status in (200, 206):
        return
    if response.status in RETRIED:
        asked = _retry_after_s(response.headers.get("Retry-After"))
        if asked:
            politeness.bucket(urlsplit(address).netloc, private=True).close(min(asked, DEFAULT.max_wait_s))
        raise _Again(f"the server answers {response.status}", asked)
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


@lru_cache(maxsize=4)
def _pool(process: int, private: bool) -> urllib3.PoolManager:
    """Connections of this process."""
    return guard.pools(private, timeout=urllib3.Timeout(connect=10, read=60))
