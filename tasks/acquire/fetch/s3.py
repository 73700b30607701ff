"""Buckets as sources: `s3://bucket/prefix`, or `s3://anonymous@bucket/prefix` without a signature.

Server, region and credentials are those of the environment, as the SDK reads them; only the store's package knows the
SDK. A bucket is asked as politely as a web server, and its answers look like those of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from corpusmill.errors import NotFound
from corpusmill.store.backend import Absent, Transient
from tasks.acquire.fetch import allowed_hosts, rate_limit
from tasks.acquire.fetch.retries import DEFAULT, Again, Patience, persist

if TYPE_CHECKING:
    from corpusmill.store.objects import Answer, Page

# The SDK takes 0.3 s to import; who reads from no bucket does without: so it is imported where it is used.


def is_bucket(address: str) -> bool:
    """Whether a root or address is in a bucket."""
    return address.startswith("s3://")


def host(address: str) -> str:
    """The server that is asked, for its token bucket."""
    from corpusmill.store import objects

    return urlsplit(objects.endpoint(address)).netloc


@contextmanager
def opened(address: str, headers: dict[str, str], patience: Patience) -> Iterator[Answer]:
    """The answer to one GET; see http.py."""
    from corpusmill.store import objects

    with _turn(address, patience):
        try:
            answer = objects.get(address, headers)
            try:
                yield answer
            finally:
                answer.close()
        except Transient as err:
            raise Again(str(err)) from err


def listing(root: str, patience: Patience = DEFAULT) -> Iterator[tuple[str, int]]:
    """(name below the root, bytes) of every object, in the order of names; a thousand a request.

    Raises:
        NotFound: there is no such bucket, or it may not be listed.
        Unavailable: the server does not answer.
    """
    from corpusmill.store import objects

    token: str | None = None

    def page() -> Page:
        with _turn(root, patience):
            try:
                return objects.page(root, token)
            except Transient as err:
                raise Again(str(err)) from err

    while True:
        try:
            found = persist(root, patience, page)
        except Absent as err:
            raise NotFound(
                f"{root} cannot be listed", str(err), "Check source.*.root and what the key may do."
            ) from err
        yield from found.entries
        if (token := found.next_token) is None:
            return


@contextmanager
def _turn(address: str, patience: Patience) -> Iterator[None]:
    from corpusmill.store import objects

    endpoint = objects.endpoint(address)
    with rate_limit.turn(urlsplit(endpoint).netloc, allowed_hosts.check_address(endpoint), patience.sleep):
        yield
