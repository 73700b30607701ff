"""Downloads through faults: the same bytes after retries, and no further than permitted."""

from __future__ import annotations

import io
import itertools
import random
import socket
import tracemalloc
from pathlib import Path

import pytest

from corpusmill.errors import NotFound, Unavailable
from tasks.acquire.fetch import http
from tasks.acquire.fetch.http import download, get
from tasks.acquire.fetch.retries import DEFAULT, Again, Retries, persist
from tests.tasks.acquire.server import answering, serve

DATA = random.Random(5).randbytes(3_000_000)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "file").write_bytes(DATA)
    return tmp_path


class Waits(list[float]):
    """Collects waits instead of waiting."""

    def retries(self, **options: float) -> Retries:
        return Retries(sleep=self.append, **options)  # type: ignore[arg-type]


def fetched(url: str, retries: Retries = DEFAULT) -> bytes:
    out = io.BytesIO()
    assert download(url, out, retries).size == len(out.getvalue())
    return out.getvalue()


def test_a_download_is_the_file(folder: Path) -> None:
    with serve(folder) as server:
        assert fetched(f"{server.url}/file") == DATA
        assert get(f"{server.url}/file") == DATA
        assert server.requests == {"file": 2}


@pytest.mark.parametrize("faults", [["503", "cut", "cut", "reset", "cut"], ["429", "500", "reset"], ["cut"] * 15])
def test_faults_change_nothing_but_the_time(folder: Path, faults: list[str]) -> None:
    waits = Waits()
    with serve(folder, lambda n, _: faults[n - 1] if n <= len(faults) else None) as server:
        assert fetched(f"{server.url}/file", waits.retries(attempts=4)) == DATA
        assert len(waits) == len(faults)
        assert server.ranges["file"] > 0 or "cut" not in faults


def test_a_resource_that_changes_between_attempts_starts_again(folder: Path) -> None:
    def fault(number: int, path: str) -> str | None:
        if number == 2:
            (folder / "file").write_bytes(DATA[::-1])
        return "cut" if number == 1 else None

    with serve(folder, fault) as server:
        assert fetched(f"{server.url}/file", Waits().retries()) == DATA[::-1]


def test_a_server_without_ranges_starts_again(folder: Path) -> None:
    with serve(folder, lambda n, _: "cut" if n == 1 else "no-ranges") as server:
        assert fetched(f"{server.url}/file", Waits().retries()) == DATA


def test_a_server_that_stays_busy_is_unavailable(folder: Path) -> None:
    waits = Waits()
    with serve(folder, lambda n, _: "503") as server, pytest.raises(Unavailable, match="answers 503; tried 5 times"):
        get(f"{server.url}/file", waits.retries(attempts=5, backoff_s=1, max_wait_s=4))
    assert len(waits) == 4
    assert all(0.5 * 2**i <= wait <= min(4, 1.5 * 2**i) for i, wait in enumerate(waits))


def test_retry_after_is_honoured_within_bounds() -> None:
    assert http._retry_after_s("7") == 7
    assert http._retry_after_s("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert http._retry_after_s("soon") is None
    waits = Waits()
    attempts = iter([Again("busy", 7), Again("busy", 7000)])

    def attempt() -> bytes:
        for failure in attempts:
            raise failure
        return b"done"

    assert persist("x", waits.retries(max_wait_s=60), attempt, lambda: 0) == b"done"
    assert waits == [7, 60]


def test_a_missing_file_is_not_tried_again(folder: Path) -> None:
    with serve(folder) as server:
        with pytest.raises(NotFound, match="answers 404"):
            get(f"{server.url}/other")
        assert server.requests == {"other": 1}


def test_nobody_listening_is_unavailable() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(Unavailable, match="cannot be fetched"):
        get(f"http://127.0.0.1:{port}/file", Waits().retries(attempts=2))


def test_redirects_are_followed_to_http_only(folder: Path) -> None:
    with serve(folder) as other, serve(folder) as server:
        server.fault = lambda n, path: f"redirect:{other.url}/file"
        assert get(f"{server.url}/old") == DATA
        for target in ("file:///etc/passwd", "ftp://example.org/x"):
            server.fault = lambda n, path, to=target: f"redirect:{to}"  # type: ignore[misc]
            with pytest.raises(Unavailable, match="only http and https"):
                get(f"{server.url}/old")
        server.fault = lambda n, path: "redirect:/again"
        with pytest.raises(Unavailable, match="more than 5 times"):
            get(f"{server.url}/old")


ODD = ["²", "-5", "+5", "1_0", "٣".encode().decode("latin-1"), "9" * 400, "0x10", "1e3", "5;5", "NaN", ""]


@pytest.mark.parametrize(
    "value", [*ODD, "Mon, 01 Jan 99999 00:00:00 GMT", "Mon, 01 Jan 0001 00:00:00 -2359", "," * 999]
)
def test_a_number_in_a_header_that_is_none_counts_as_none(folder: Path, value: str) -> None:
    assert http._retry_after_s(value) is None or value.startswith("Mon")
    waits = Waits()
    with answering(503, {"Retry-After": value}) as url:
        for call in (http.length, get, lambda url, r: http.get_range(url, 0, 1, r)):
            with pytest.raises(Unavailable, match="the server answers 503"):
                call(url, waits.retries(attempts=2))
    with answering(200, {"Content-Length": value}) as url:
        assert http.length(url) is None
        assert get(url) == b"h"
    with answering(206, {"Content-Length": value, "Content-Range": "bytes 0-0/1"}) as url:
        assert http.get_range(url, 0, 1) == b"h"
    with answering(206, {"Content-Length": "1", "Content-Range": f"bytes 0-0/{value}"}) as url:
        assert http.length(url) is None


@pytest.mark.parametrize(
    "target", ["http://[::1", "http://127.0.0.1:99999/", "http://\u00ff\u00ff/", "http://" + "a" * 300]
)
def test_a_redirect_to_what_is_no_url_is_said(target: str) -> None:
    with answering(302, {"Location": target, "Content-Length": "0"}) as url, pytest.raises(Unavailable):
        get(url, Waits().retries(attempts=1))


@pytest.mark.parametrize("headers", [{}, {"Content-Length": str(2**40)}, {"Content-Length": "odd"}])
def test_what_is_read_whole_ends_at_its_bound(headers: dict[str, str]) -> None:
    endless = itertools.repeat(bytes(2**18))
    tracemalloc.start()
    with answering(200, headers, endless) as url, pytest.raises(Unavailable, match=r"larger than 4\.0 MiB"):
        get(url, most=4 * 2**20)
    with answering(206, {**headers, "Content-Range": "bytes 0-0/7"}, endless) as url:
        assert http.length(url) == 7
        assert len(http.get_range(url, 0, 1000)) == 1000
    assert tracemalloc.get_traced_memory()[1] < 16 * 2**20
    tracemalloc.stop()
