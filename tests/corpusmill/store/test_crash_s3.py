"""A small run against a real S3 server with a fault at each of its requests.

The process ends before the request is sent (which is also after the one before it), the response is lost, or the server
says 500 after it did what was asked. Then the invariants are checked and the run is repeated.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ReadTimeoutError

import corpusmill.store.create
import corpusmill.store.store
from corpusmill.errors import MillError
from corpusmill.store import Store, open_store
from corpusmill.store.s3 import S3Backend
from tests.corpusmill.store.smallrun import inconsistencies, receipt_first, small_run


class ProcessEnds(BaseException):
    """No code of ours may handle this one."""


class FaultyWire:
    """Stands for the HTTP session of one client; at request number `at` the fault happens, once."""

    def __init__(self, client: Any, fault: str, at: int) -> None:
        self._endpoint, self._real = client._endpoint, client._endpoint.http_session
        self.fault, self.at, self.sent = fault, at, 0
        self._lock = threading.Lock()

    def __enter__(self) -> FaultyWire:
        self._endpoint.http_session = self
        return self

    def __exit__(self, *_: object) -> None:
        self._endpoint.http_session = self._real

    def send(self, request: Any) -> Any:
        with self._lock:
            now = self.sent == self.at
            self.sent += 1
        if now and self.fault == "process ends":
            raise ProcessEnds
        answer = self._real.send(request)
        if now and self.fault in ("lost response", "500 after success"):
            assert answer.content is not None  # read to its end, or the pool would warn of an open socket
        if now and self.fault == "lost response":
            raise ReadTimeoutError(endpoint_url=request.url)
        if now and self.fault == "500 after success":
            return AWSResponse(request.url, 500, {}, _Body(b"<Error><Code>InternalError</Code></Error>"))
        return answer


class _Body:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def stream(self, *_: object, **__: object) -> Iterator[bytes]:
        yield self._data

    def read(self, *_: object, **__: object) -> bytes:
        data, self._data = self._data, b""
        return data


@pytest.fixture
def places(s3_uri: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    """Fresh addresses in one bucket, where making a store is one request and not a probe of the server."""
    monkeypatch.setattr(corpusmill.store.store, "_require_working", lambda backend: None)
    count = iter(range(10_000))
    return lambda: f"{s3_uri}/{next(count)}"


def run_with_fault(url: str, fault: str, at: int, commit: Any) -> Iterator[str]:
    """What is wrong after a run with one fault, and after running again."""
    backend = S3Backend.open(url.removeprefix("s3://"))
    with FaultyWire(backend.client, fault, at):
        try:
            small_run(open_store(url, create=True), files=1, commit=commit)
        except ProcessEnds:
            assert fault == "process ends"
        except MillError as err:
            yield f"not survived: {err!r}"
    try:
        store = open_store(url, create=True)
        yield from inconsistencies(store)
        receipts = len(store.list("receipts/"))
        digest, ran = small_run(store, files=1, commit=commit)
        yield f"dataset {digest}"
        yield f"{len(store.history('small'))} history entries"
        yield f"{ran + receipts} units ran or had receipts"
        yield from store.list("runs/")
    except MillError as err:
        yield f"run again: {err!r}"


def every_request(places: Callable[[], str], fault: str, commit: Any, every: int = 1) -> Iterator[str]:
    """Whatever goes wrong, over a fault at each request (or every n-th)."""
    url = places()
    backend = open_store(url, create=True).backend
    assert isinstance(backend, S3Backend)
    with FaultyWire(backend.client, "none", -1) as wire:
        digest, _ = small_run(open_store(url), files=1)
    assert wire.sent > 25
    right = {f"dataset {digest}", "1 history entries", "3 units ran or had receipts"}
    for at in range(0, wire.sent + 1, every):  # + 1: a first run also makes the store
        found = set(run_with_fault(places(), fault, at, commit))
        yield from (f"{fault} at {at}: {what}" for what in found - right)


@pytest.mark.usefixtures("brief_waits")
@pytest.mark.parametrize(("fault", "every"), [("process ends", 1), ("lost response", 1), ("500 after success", 3)])
def test_a_fault_at_any_request_changes_nothing(places, fault, every):
    assert list(every_request(places, fault, Store.commit, every)) == []


def test_a_receipt_before_its_objects_would_be_caught(places):
    assert any("I2" in wrong for wrong in every_request(places, "process ends", receipt_first))


def test_believing_412_would_be_caught(places, monkeypatch):
    monkeypatch.setattr(corpusmill.store.create, "holds", lambda *_: False)
    assert any("not survived" in wrong for wrong in every_request(places, "lost response", Store.commit))
