"""Retries: busy servers, broken connections, truncated or damaged bodies; the cost of each attempt is counted.

Waits double from `backoff_s` on, with jitter; Retry-After is honoured up to `max_wait_s`. An attempt that received
bytes resets the count of attempts. A body that a checksum contradicts is fetched again (checksums.py).
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from corpusmill.errors import Unavailable
from corpusmill.redact import redacted
from tasks.acquire.fetch import rate_limit
from tasks.acquire.fetch.checksums import Checksums

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Retries:
    """Limits of retrying."""

    attempts: int = 8
    """Attempts in a row without a single new byte."""
    backoff_s: float = 0.5
    """Wait after the first failure; doubled after each further one, with jitter."""
    max_wait_s: float = 60.0
    """Longest wait, even if Retry-After asks for more."""
    sleep: Callable[[float], None] = time.sleep
    """Tests count instead of waiting."""


DEFAULT = Retries()


class Again(Exception):
    """This attempt failed in a way that may be temporary."""

    def __init__(self, why: str, retry_after_s: float | None = None) -> None:
        super().__init__(redacted(why))
        self.retry_after_s = retry_after_s


def persist(url: str, retries: Retries, attempt: Callable[[], T], progress: Callable[[], int] = lambda: 0) -> T:
    """The result of an attempt, with retries as long as failures may be temporary.

    Args:
        url: for the message.
        attempt: raises Again if another attempt may succeed.
        progress: bytes received in total.

    Raises:
        Unavailable: too many attempts in a row without progress.
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
    """The body, if no checksum contradicts it, or if it arrives a second time with the same bytes."""
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
