"""Buckets as sources: `s3://bucket/prefix`, or `s3://anonymous@bucket/prefix` without a signature.

Server, region and credentials are those of the environment, as the SDK reads them; only the store's package knows the
SDK. A bucket is asked under the same rate limit as a web server, and its answers look like those of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from corpusmill.errors import NotFound
from corpusmill.store.backend import Absent, Transient
from tasks.acquire.fetch import allowed_hosts, rate_limit
from tasks.acquire.fetch.retries import DEFAULT, Again, Retries, persist

if TYPE_CHECKING:
    from corpusmill.store.objects import Answer, Page

# The SDK takes 0.3 s to import; who reads from no bucket does without: so it is imported where it is used.


def is_bucket(url: str) -> bool:
    """Whether a root or URL is in a bucket."""
    return url.startswith("s3://")


def host(url: str) -> str:
    """The server that is asked, for its token bucket."""
    from corpusmill.store import objects

    return urlsplit(objects.endpoint(url)).netloc.rpartition("@")[2]


@contextmanager
def opened(url: str, headers: dict[str, str], retries: Retries) -> Iterator[Answer]:
    """The answer to one GET; see http.py."""
    from corpusmill.store import objects

    with _turn(url, retries):
        try:
            answer = objects.get(url, headers)
            try:
                yield answer
            finally:
                answer.close()
        except Transient as err:
            raise Again(str(err)) from err


def listing(root: str, retries: Retries = DEFAULT) -> Iterator[tuple[str, int, str]]:
    """(name below the root, bytes, ETag) of every object, in the order of names; a thousand a request.

    Raises:
        NotFound: there is no such bucket, or it may not be listed.
        Unavailable: the server does not answer.
    """
    from corpusmill.store import objects

    token: str | None = None

    def page() -> Page:
        with _turn(root, retries):
            try:
                return objects.page(root, token)
            except Transient as err:
                raise Again(str(err)) from err

    while True:
        try:
            found = persist(root, retries, page)
        except Absent as err:
            raise NotFound(
                f"{root} cannot be listed", str(err), "Check source.*.root and the permissions of the key."
            ) from err
        yield from found.entries
        if (token := found.next_token) is None:
            return


@contextmanager
def _turn(url: str, retries: Retries) -> Iterator[None]:
    from corpusmill.store import objects

    endpoint = objects.endpoint(url)
    with rate_limit.turn(
        urlsplit(endpoint).netloc.rpartition("@")[2], allowed_hosts.check_source(endpoint), retries.sleep
    ):
        yield
