"""Trying again: busy servers, broken connections, bodies cut short or damaged; what each attempt costs is counted.

Waits grow twofold from `backoff_s`, with jitter; Retry-After is honoured up to `max_wait_s`. An attempt that brought
bytes starts the count of attempts anew. A body that a checksum contradicts is fetched again (checksums.py).
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from corpusmill.errors import Unavailable
from tasks.acquire.fetch import rate_limit
from tasks.acquire.fetch.checksums import Checksums

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Retries:
    """How long to try."""

    attempts: int = 8
    """In a row without a single new byte."""
    backoff_s: float = 0.5
    """Wait after the first failure; doubled after each further one, with jitter."""
    max_wait_s: float = 60.0
    """Longest wait, also where Retry-After asks for more."""
    sleep: Callable[[float], None] = time.sleep
    """Tests count instead of waiting."""


DEFAULT = Retries()


class Again(Exception):
    """This attempt failed in a way that may pass."""

    def __init__(self, why: str, retry_after_s: float | None = None) -> None:
        super().__init__(why)
        self.retry_after_s = retry_after_s


def persist(url: str, retries: Retries, attempt: Callable[[], T], progress: Callable[[], int] = lambda: 0) -> T:
    """What an attempt gives, made again as long as it may pass.

    Args:
        url: for the message.
        attempt: raises Again where another may succeed.
        progress: bytes that have come in all.

    Raises:
        Unavailable: too many attempts in a row brought nothing.
    """
    failures, reached = 0, 0
    while True:
        try:
            return attempt()
        except Again as err:
            failures = 1 if progress() > reached else failures + 1
            reached = max(reached, progress())
            if failures >= retries.attempts:
                raise Unavailable(
                    f"{url} cannot be fetched",
                    f"{err}; tried {failures} times, {reached} bytes received",
                    "Check the URL, or try again later: finished work is kept.",
                ) from err
            wait = retries.backoff_s * 2 ** (failures - 1) * random.uniform(0.5, 1.5)
            wait = min(max(wait, err.retry_after_s or 0.0), retries.max_wait_s)
            rate_limit.count(retries=1, waited_s=wait)
            retries.sleep(wait)


def undamaged(url: str, retries: Retries, fetch: Callable[[], tuple[T, Checksums]]) -> T:
    """What was fetched, if nothing contradicts it, or if it comes a second time with the same bytes."""
    before: set[tuple[int, int]] = set()
    while True:
        result, checksums = fetch()
        if not checksums.contradicts() or checksums.same in before:
            return result
        if len(before) + 1 >= retries.attempts:
            raise Unavailable(
                f"{url} cannot be fetched",
                f"it arrived damaged {len(before) + 1} times, at different offsets",
                "Check the network and any proxy between here and the server.",
            )
        before.add(checksums.same)
        rate_limit.count(damaged=1)
