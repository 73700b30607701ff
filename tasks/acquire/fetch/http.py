"""Reading from web servers and buckets: retries, downloads resumed by range, redirects followed one by one.

Retried (retries.py): connection errors, truncated bodies, 408, 429 and 5xx. allowed_hosts.py decides where requests
may go, rate_limit.py how often. A URL `s3://bucket/key` is opened by s3.py; everything else is the same.
"""

from __future__ import annotations

import email.utils
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import BinaryIO, Protocol
from urllib.parse import urljoin, urlsplit

import urllib3

from corpusmill.errors import NotFound, Unavailable
from corpusmill.plain_text import human_bytes
from corpusmill.readers.numbers import whole_number
from tasks.acquire.fetch import allowed_hosts, rate_limit, s3, stamps
from tasks.acquire.fetch.checksums import Checksums
from tasks.acquire.fetch.retries import DEFAULT, Again, Retries, persist, undamaged

CHUNK_BYTES = 2**20
MOST_BYTES = 64 * 2**20
"""Of what is read whole: lists of files have up to 13 MB, in 1 MB."""
MAX_REDIRECTS = 5
MAX_DATE = 100  # characters of a header
RETRIED = frozenset((408, 429, 500, 502, 503, 504))
REDIRECTS = frozenset((301, 302, 303, 307, 308))
MISSING = frozenset((403, 404, 410))  # object stores say 403 of what is not there


class NoRanges(Unavailable):
    """The server has the resource, but sends it only as a whole."""


class Response(Protocol):
    """The part of a response that is used: of urllib3, or of s3.py."""

    status: int

    @property
    def headers(self) -> Mapping[str, str]: ...
    def read(self, amt: int | None = None) -> bytes: ...
    def stream(self, amt: int | None = None) -> Iterator[bytes]: ...


@dataclass(frozen=True)
class Downloaded:
    """How many bytes came, and the resource's stamp (stamps.py) if the server gives an ETag."""

    size: int
    stamp: str | None


def get(url: str, retries: Retries = DEFAULT, *, most: int = MOST_BYTES) -> bytes:
    """A small resource, whole.

    Args:
        most: bytes that are read of it.

    Raises:
        NotFound: the server has none.
        Unavailable: it does not answer, or with an error; or with more than `most` bytes.
    """

    def attempt() -> tuple[bytes, Checksums]:
        with _opened(url, {}, retries) as response:
            _judge(response, url)
            checksums = Checksums(response.headers)
            body = b"".join(_pieces(response, url, most, checksums))
            return body, checksums

    return undamaged(url, retries, lambda: persist(url, retries, attempt))


def _pieces(response: Response, url: str, most: int, checksums: Checksums) -> Iterator[bytes]:
    """The body of a response, piece by piece."""
    size, length = 0, _length(response)
    while length is None or (size < length <= most):
        data = response.read(CHUNK_BYTES)
        size += len(data)
        if not data or size > most:
            break
        _seen(checksums, data)
        yield data
    if max(size, length or 0) > most:
        raise too_large(url, most)
    if length is not None and size != length:  # read(n) does not complain of a cut
        raise Again(f"{size} bytes of {length}")


def too_large(what: str, most: int) -> Unavailable:
    """The error of something that is read whole and is too large for that."""
    return Unavailable(
        f"{what} is larger than {human_bytes(most)}",
        "expected a list or an index, which is read whole",
        "Check the root: something else may stand, or answer, in its place.",
    )


def get_range(url: str, begin: int, size: int, retries: Retries = DEFAULT, *, ends_anywhere: bool = False) -> bytes:
    """Some bytes of a resource; fewer where it ends.

    Args:
        ends_anywhere: the range may end within a gzip member; else a cut member is taken for damage at first.

    Raises:
        NotFound: the server has none.
        NoRanges: it sends only the whole.
        Unavailable: it does not answer.
    """

    def attempt() -> tuple[bytes, Checksums]:
        checksums = Checksums({}, ends_anywhere=ends_anywhere)  # what a response states is of the whole resource
        with _opened(url, {"Range": f"bytes={begin}-{begin + size - 1}"}, retries) as response:
            if response.status == 416:
                return b"", checksums
            _judge(response, url)
            if response.status != 206:
                raise NoRanges(f"{url} cannot be read in part", "the server does not answer ranges")
            if not _goes_on(response, begin):
                raise Again("another range than the one asked for")
            body = _beginning(response, size)
            _seen(checksums, body)
            return body, checksums

    return undamaged(url, retries, lambda: persist(url, retries, attempt))


def length(url: str, retries: Retries = DEFAULT) -> int | None:
    """Size of a resource in bytes, None if the server does not state it; requests one byte.

    Raises:
        NotFound: the server has none.
        Unavailable: it does not answer, or with an error.
    """

    return _probed(url, retries)[0]


def stamp(url: str, retries: Retries = DEFAULT) -> str | None:
    """The stamp of a resource (stamps.py), None if the server gives no ETag; requests one byte.

    Raises:
        NotFound: the server has none.
        Unavailable: it does not answer, or with an error.
    """

    return stamps.on_server(*_probed(url, retries))


def _probed(url: str, retries: Retries) -> tuple[int | None, str | None]:
    """Size and ETag of a resource, as far as the server states them."""

    def attempt() -> tuple[int | None, str | None]:
        with _opened(url, {"Range": "bytes=0-0"}, retries) as response:
            tag = response.headers.get("ETag")
            if response.status == 416:
                return 0, tag
            _judge(response, url)
            if response.status == 206:
                _beginning(response, 2)  # so that the connection can be used again
            return _whole_size(response), tag

    return persist(url, retries, attempt)


def download(
    url: str, out: BinaryIO, retries: Retries = DEFAULT, *, begin: int = 0, end: int | None = None
) -> Downloaded:
    """A large resource, or a range of it, into a file that is empty.

    Args:
        begin: its first byte.
        end: the byte after its last; None for the end of the resource.

    Raises:
        NotFound: the server has none.
        NoRanges: it sends only the whole.
        Unavailable: it does not answer, or breaks off repeatedly.
    """
    transfer = _Transfer(url, out, retries, begin, end)

    def whole() -> tuple[int, Checksums]:
        transfer.restart()
        return persist(url, retries, transfer.attempt, lambda: transfer.size)

    size = undamaged(url, retries, whole)
    return Downloaded(size, transfer.stamp)


class _Transfer:
    """A download that resumes where it broke off, as long as the resource has not changed."""

    def __init__(self, url: str, out: BinaryIO, retries: Retries, begin: int, end: int | None) -> None:
        self.url, self.out, self.retries = url, out, retries
        self.begin, self.end = begin, end
        self.in_part = begin > 0 or end is not None
        self.size = 0
        self.stamp: str | None = None
        self._version: str | None = None
        self._checksums: Checksums | None = None

    def attempt(self) -> tuple[int, Checksums]:
        headers, at = {}, self.begin + self.size
        if self.in_part or self.size:
            headers["Range"] = f"bytes={at}-{'' if self.end is None else self.end - 1}"
            if self.size and self._version:
                headers["If-Range"] = self._version
        with _opened(self.url, headers, self.retries) as response:
            if self.size and (response.status == 416 or not _goes_on(response, at)):
                self.restart()
                if response.status not in RETRIED and (self.in_part or response.status != 200):
                    raise Again(f"status {response.status} to a range")
            elif self.in_part and response.status == 416:
                return 0, Checksums({})  # it ends before the range begins
            _judge(response, self.url)
            if self.in_part and response.status != 206:
                raise NoRanges(f"{self.url} cannot be read in part", "the server does not answer ranges")
            if self.in_part and not _goes_on(response, self.begin + self.size):
                raise Again("another range than the one asked for")
            return self._receive(response)

    def _receive(self, response: Response) -> tuple[int, Checksums]:
        etag = response.headers.get("ETag", "")
        self._version = etag if etag.startswith('"') else response.headers.get("Last-Modified")
        self.stamp = stamps.on_server(_whole_size(response), etag)
        length = _length(response)
        expected = None if length is None else self.size + length
        # What a response states is of the whole resource.
        checksums = self._checksums = self._checksums or Checksums({} if self.in_part else response.headers)
        for chunk in response.stream(CHUNK_BYTES):
            self.out.write(chunk)
            self.size += len(chunk)
            _seen(checksums, chunk)
        if expected is not None and self.size != expected:
            raise Again(f"{self.size} bytes of {expected}")
        return self.size, checksums

    def restart(self) -> None:
        """Discard what was received."""
        self.out.seek(0)
        self.out.truncate()
        self.size, self._version, self._checksums = 0, None, None


def _seen(checksums: Checksums, data: bytes) -> None:
    checksums.update(data)
    rate_limit.count(received_bytes=len(data))


@contextmanager
def _opened(url: str, headers: dict[str, str], retries: Retries) -> Iterator[Response]:
    """The response at the end of the redirects; its connection is used again only if its body was read to the end."""
    if s3.is_bucket(url):
        with s3.opened(url, headers, retries) as found:
            yield found
        return
    root = allowed_hosts.check_source(url)
    place, private = url, root
    for _ in range(MAX_REDIRECTS + 1):
        with rate_limit.turn(host_of(place), private, retries.sleep):
            response = _request(place, headers, private)
            try:
                if response.status not in REDIRECTS:
                    yield response
                    response.release_conn()
                    return
            except urllib3.exceptions.HTTPError as err:
                raise Again(str(err)) from None  # what the library says has the address in it, with its secrets
            finally:
                response.close()
        try:
            target = urljoin(place, response.headers.get("Location", ""))
        except ValueError as err:
            raise Unavailable(f"{url} redirects to what is not a URL", str(err)) from None
        private = allowed_hosts.check_redirect(url, target, root)
        place = target
    raise Unavailable(f"{url} redirects more than {MAX_REDIRECTS} times")


def host_of(url: str) -> str:
    """Host and port of a URL, without what stands before them."""
    return urlsplit(url).netloc.rpartition("@")[2]


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
            enforce_content_length=False,  # the callers compare lengths; here "+5" would count as one
        )
    except (urllib3.exceptions.LocationValueError, UnicodeError) as err:
        raise Unavailable(f"{place} is not a URL", str(err)) from None
    except urllib3.exceptions.HTTPError as err:
        raise Again(str(err)) from None


def _judge(response: Response, url: str) -> None:
    if response.status in (200, 206):
        return
    if response.status in RETRIED:
        asked = _retry_after_s(response.headers.get("Retry-After"))
        if asked:
            host = s3.host(url) if s3.is_bucket(url) else host_of(url)
            rate_limit.bucket(host, private=True).close(min(asked, DEFAULT.max_wait_s))
        raise Again(f"the server answers {response.status}", asked)
    if response.status in MISSING:
        raise NotFound(f"no {url}", f"the server answers {response.status}", "Check the root and the crawl.")
    raise Unavailable(f"{url} cannot be read", f"the server answers {response.status}")


def _beginning(response: Response, size: int) -> bytes:
    """The first bytes of a body, all of them if it has no more."""
    body, length = response.read(size), _length(response)
    if length is not None and len(body) != min(length, size):  # read(n) does not complain of a cut
        raise Again(f"{len(body)} bytes of {length}")
    return body


def _goes_on(response: Response, begin: int) -> bool:
    """Whether a response continues at the requested byte."""
    if response.status in RETRIED:
        return True  # says nothing about the range
    return response.status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {begin}-")


def _length(response: Response) -> int | None:
    """What the server says of the length of a body; None where it says nothing that is a number."""
    return whole_number(response.headers.get("Content-Length", "").strip())


def _whole_size(response: Response) -> int | None:
    """What the server says of the size of the resource; None where it says nothing that is a number."""
    if response.status != 206:
        return _length(response)
    return whole_number(response.headers.get("Content-Range", "").rpartition("/")[2].strip())


def _retry_after_s(value: str | None) -> float | None:
    """Seconds of a Retry-After header, which is a number or a date; None where it is neither."""
    if not value:
        return None
    if (seconds := whole_number(value.strip())) is not None:
        return float(seconds)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value[:MAX_DATE]).timestamp() - time.time())
    except (ValueError, TypeError, LookupError, ArithmeticError, OSError):  # each for another odd date
        return None


@lru_cache(maxsize=4)
def _pool(process: int, private: bool) -> urllib3.PoolManager:
    """Connections of this process."""
    return allowed_hosts.pools(private, timeout=urllib3.Timeout(connect=10, read=60))
