"""How often hosts are asked; what is counted."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from corpusmill.errors import UsageError
from tasks.acquire.fetch import rate_limit
from tasks.acquire.fetch.http import get
from tasks.acquire.fetch.rate_limit import Bucket, Traffic, watched
from tasks.acquire.fetch.retries import Retries
from tests.faultproxy import Faults, faulty
from tests.tasks.acquire.server import serve

HELD: Counter[str] = Counter()


@contextmanager
def limit(host: str) -> Iterator[None]:
    """A limit as the environment may name one."""
    HELD["now"] += 1
    HELD["most"] = max(HELD["most"], HELD["now"])
    HELD["all"] += 1
    try:
        yield
    finally:
        HELD["now"] -= 1


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_bucket_gives_a_burst_and_then_its_rate() -> None:
    clock = Clock()
    bucket = Bucket(rate=2, burst=3, clock=clock)
    assert [bucket.take() for _ in range(6)] == [0, 0, 0, 0.5, 1.0, 1.5]
    clock.now = 10
    assert [bucket.take() for _ in range(4)] == [0, 0, 0, 0.5]


def test_over_a_minute_no_host_gets_more_than_its_rate() -> None:
    clock = Clock()
    bucket = Bucket(rate=5, burst=10, clock=clock)
    sent = 0
    while True:
        clock.now += bucket.take()
        if clock.now > 60:
            break
        sent += 1
    assert 300 <= sent <= 311


def test_a_busy_host_is_left_alone_by_all() -> None:
    clock = Clock()
    bucket = Bucket(rate=None, clock=clock)
    assert bucket.take() == 0
    bucket.close(7)
    assert bucket.take() == 7
    clock.now = 8
    assert bucket.take() == 0


def test_own_hosts_are_not_held_back_and_the_environment_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rate_limit._rate(private=True) is None
    assert rate_limit._rate(private=False) == rate_limit.RATE_PER_S
    monkeypatch.setenv("CORPUSMILL_REQUESTS_PER_S", "0.5")
    assert rate_limit._rate(private=True) == 0.5
    for wrong in ("0", "-1", "many", "nan", "inf"):
        monkeypatch.setenv("CORPUSMILL_REQUESTS_PER_S", wrong)
        with pytest.raises(UsageError, match="expected a number above 0"):
            rate_limit._rate(private=False)


def test_a_rate_holds_back_all_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"x")
    monkeypatch.setenv("CORPUSMILL_REQUESTS_PER_S", "1000000")
    waits: list[float] = []
    with serve(tmp_path) as server:
        host = server.url.removeprefix("http://")
        rate_limit._buckets[host] = Bucket(rate=10, burst=4, clock=Clock())
        ask = lambda: get(f"{server.url}/file", Retries(sleep=waits.append))  # noqa: E731
        threads = [threading.Thread(target=ask) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(round(wait, 6) for wait in waits) == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]


def test_requests_retries_and_waits_are_counted(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 1000)
    waits: list[float] = []
    with serve(tmp_path, lambda n, path: {1: "503", 2: "reset"}.get(n)) as server, watched() as outer:
        with watched() as traffic:
            get(f"{server.url}/file", Retries(sleep=waits.append))
        get(f"{server.url}/file")
    assert (traffic.requests, traffic.retries, traffic.received_bytes) == (3, 2, 1000)
    assert traffic.waited_s == pytest.approx(sum(waits), abs=0.01)
    assert (outer.requests, outer.received_bytes) == (4, 2000)
    assert Traffic(waited_s=0.12345).as_dict()["waited_s"] == 0.123


def test_retry_after_closes_the_host(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    faults = Faults(busy=0.999999, retry_after="9")
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        server.plan = Faults()
        rate_limit._buckets.clear()

    with faulty(tmp_path, faults) as server:
        assert get(f"{server.url}/file", Retries(sleep=sleep)) == b"x"
        assert waits == [9]
        server.plan = faults
        host = server.url.removeprefix("http://")
        with pytest.raises(Exception, match="answers 503"):
            get(f"{server.url}/file", Retries(attempts=1))
        assert 8 < rate_limit.bucket(host, True).take() <= 9


def test_a_limit_is_held_while_a_request_lasts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"x")
    HELD.clear()
    monkeypatch.setenv("CORPUSMILL_HTTP_REQUEST_LIMIT", f"{__name__}:limit")
    with serve(tmp_path, lambda n, path: "503" if n == 1 else None) as server:
        get(f"{server.url}/file", Retries(sleep=lambda seconds: None))
    assert HELD == {"now": 0, "most": 1, "all": 2}
    monkeypatch.setenv("CORPUSMILL_HTTP_REQUEST_LIMIT", "no.such:thing")
    with pytest.raises(UsageError, match="CORPUSMILL_HTTP_REQUEST_LIMIT"):
        get(f"{server.url}/file")
