"""Rate limit of this process, request limit of a cluster, and counts of requests and waits.

A token bucket for each public host (the user's own hosts have no limit); while a host says that it is busy, no thread
sends it requests. `CORPUSMILL_REQUESTS_PER_S` sets the rate for every host.
`CORPUSMILL_HTTP_REQUEST_LIMIT=module:function` names the limit for all machines together: `function(host)`
gives a context manager for one request and its body.
"""

from __future__ import annotations

import importlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, cast

from corpusmill.errors import UsageError

RATE_PER_S = 10.0
BURST = 20.0

RequestLimit = Callable[[str], AbstractContextManager[Any]]


@dataclass
class Traffic:
    """Counts of requests. Kept with a run, never in receipts: no digest may depend on them."""

    requests: int = 0
    retries: int = 0
    """Repeated attempts: busy servers, broken connections, truncated bodies."""
    damaged: int = 0
    """Bodies that arrived damaged and were fetched again."""
    received_bytes: int = 0
    waited_s: float = 0.0
    """Waits for the token bucket and for busy servers."""

    def add(self, other: Traffic) -> None:
        """Add another count."""
        self.requests += other.requests
        self.retries += other.retries
        self.damaged += other.damaged
        self.received_bytes += other.received_bytes
        self.waited_s += other.waited_s

    def as_dict(self) -> dict[str, int | float]:
        """For a file of a run; waited seconds to the millisecond."""
        return {**self.__dict__, "waited_s": round(self.waited_s, 3)}


_watching = threading.local()


@contextmanager
def watched(*, apart: bool = False) -> Iterator[Traffic]:
    """Count the requests of this thread within the block; blocks may be nested.

    Args:
        apart: requests counted here are not counted by an outer block.
    """
    outer, traffic = getattr(_watching, "traffic", None), Traffic()
    _watching.traffic = traffic
    try:
        yield traffic
    finally:
        _watching.traffic = outer
        if outer is not None and not apart:
            outer.add(traffic)


def count(**amounts: float) -> None:
    """Add to the counts of this thread, if a block of `watched` collects them."""
    traffic = getattr(_watching, "traffic", None)
    for name, amount in amounts.items() if traffic is not None else ():
        setattr(traffic, name, getattr(traffic, name) + amount)


@dataclass
class Bucket:
    """Tokens for requests to one host: `burst` at once, then `rate` per second.

    Args:
        rate: requests per second; None: no limit.
    """

    rate: float | None
    burst: float = BURST
    clock: Callable[[], float] = time.monotonic
    _tokens: float = field(init=False)
    _at: float = field(init=False)
    _closed_until: float = field(init=False)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._tokens, self._at = self.burst, self.clock()
        self._closed_until = self._at

    def take(self) -> float:
        """Take one token; returns the seconds that the caller has to wait before the request."""
        with self._lock:
            now = self.clock()
            wait = max(0.0, self._closed_until - now)
            if self.rate is not None:
                self._tokens = min(self.burst, self._tokens + (now - self._at) * self.rate) - 1
                self._at = now
                wait = max(wait, -self._tokens / self.rate)
            return wait

    def close(self, seconds: float) -> None:
        """Send no request to this host for this many seconds."""
        with self._lock:
            self._closed_until = max(self._closed_until, self.clock() + seconds)


_buckets: dict[str, Bucket] = {}
_buckets_lock = threading.Lock()


def bucket(host: str, private: bool) -> Bucket:
    """The bucket of a host in this process."""
    with _buckets_lock:
        if host not in _buckets:
            _buckets[host] = Bucket(_rate(private))
        return _buckets[host]


@contextmanager
def turn(host: str, private: bool, sleep: Callable[[float], None]) -> Iterator[None]:
    """One request to a host, body included, when it is its turn.

    Raises:
        UsageError: the rate or the request limit of the environment cannot be used.
    """
    wait = bucket(host, private).take()
    if wait > 0:
        count(waited_s=wait)
        sleep(wait)
    began = time.monotonic()
    with request_limit()(host):
        count(requests=1, waited_s=time.monotonic() - began)
        yield


def _rate(private: bool) -> float | None:
    given = os.environ.get("CORPUSMILL_REQUESTS_PER_S")
    if not given:
        return None if private else RATE_PER_S
    try:
        rate = float(given)
    except ValueError:
        rate = 0.0
    if not 0 < rate < float("inf"):
        raise UsageError(f"CORPUSMILL_REQUESTS_PER_S is {given!r}", "expected a number above 0")
    return rate


def request_limit() -> RequestLimit:
    """The request limit of all machines together, as the environment names it; without one, nothing waits."""
    return _request_limit_named(os.environ.get("CORPUSMILL_HTTP_REQUEST_LIMIT", ""))


@lru_cache(maxsize=8)
def _request_limit_named(name: str) -> RequestLimit:
    if not name:
        return lambda host: nullcontext()
    module, _, function = name.partition(":")
    try:
        return cast(RequestLimit, getattr(importlib.import_module(module), function))
    except (ImportError, AttributeError, ValueError) as err:
        raise UsageError(
            f"CORPUSMILL_HTTP_REQUEST_LIMIT is {name!r}", str(err), "Give module:function, importable by the workers."
        ) from err
