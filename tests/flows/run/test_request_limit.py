"""The request limit of a cluster on a real Prefect server: several processes together, and an ingestion under it."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from prefect.client.schemas.actions import GlobalConcurrencyLimitCreate, GlobalConcurrencyLimitUpdate

from corpusmill.errors import UsageError
from corpusmill.store import open_store
from flows.platform import deploy
from flows.run import request_limit
from tasks.acquire.fetch.http import get
from tests.flows.run import asking
from tests.flows.waiting import artifacts_of, logs_of, until_final, until_said
from tests.tasks.acquire.server import FolderServer, serve
from tests.tasks.ingest.crawls import FILES, OLD, add_crawl

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient

REQUESTS = 6


@pytest.fixture
def limit(client: SyncPrefectClient) -> str:
    """The limit as the set-up makes it; slots of runs that other tests have killed would come back in five minutes."""
    client.delete_global_concurrency_limit_by_name(request_limit.LIMIT)
    client.create_global_concurrency_limit(
        GlobalConcurrencyLimitCreate(name=request_limit.LIMIT, limit=request_limit.AT_ONCE)
    )
    return request_limit.LIMIT


@contextmanager
def at_most(client: SyncPrefectClient, limit: str, number: int) -> Iterator[None]:
    """The limit with another number, for a while."""
    client.update_global_concurrency_limit(limit, GlobalConcurrencyLimitUpdate(limit=number))
    try:
        yield
    finally:
        client.update_global_concurrency_limit(limit, GlobalConcurrencyLimitUpdate(limit=request_limit.AT_ONCE))


class Busy:
    """How many requests a server has at hand, now and at most; each takes a while."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.lock = threading.Lock()

    def __call__(self, number: int, path: str) -> None:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        threading.Event().wait(0.3)
        with self.lock:
            self.now -= 1


def ask_at_once(server: FolderServer, processes: int = 3) -> None:
    context = multiprocessing.get_context("spawn")
    children = [context.Process(target=asking.ask, args=(f"{server.url}/file", REQUESTS)) for _ in range(processes)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0] * processes


def test_processes_share_the_limit(
    client: SyncPrefectClient, limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"x")
    with at_most(client, limit, 1), serve(tmp_path, free := Busy()) as server:
        ask_at_once(server)
        monkeypatch.setenv(request_limit.VARIABLE, request_limit.HERE)
        server.fault = held = Busy()
        ask_at_once(server)
    assert free.most > 1
    assert held.most == 1
    assert server.requests == {"file": 2 * 3 * REQUESTS}


def test_without_the_limit_a_request_is_refused_with_the_way_out(
    client: SyncPrefectClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"x")
    monkeypatch.setenv(request_limit.VARIABLE, request_limit.HERE)
    client.delete_global_concurrency_limit_by_name(request_limit.LIMIT)
    try:
        with serve(tmp_path) as server:
            with pytest.raises(UsageError, match=r"no global concurrency limit[\s\S]*platform\.deploy"):
                get(f"{server.url}/file")
            assert not server.requests
    finally:
        client.create_global_concurrency_limit(
            GlobalConcurrencyLimitCreate(name=request_limit.LIMIT, limit=request_limit.AT_ONCE)
        )


def test_the_set_up_makes_the_limit_once_and_leaves_its_number_to_people(client: SyncPrefectClient, limit: str) -> None:
    with at_most(client, limit, 3):
        deploy.apply()
        assert client.read_global_concurrency_limit_by_name(request_limit.LIMIT).limit == 3
    assert client.read_global_concurrency_limit_by_name(request_limit.LIMIT).limit == request_limit.AT_ONCE


def test_the_block_names_the_limit_only_where_nobody_did(client: SyncPrefectClient, monkeypatch: Any) -> None:
    monkeypatch.delenv(request_limit.VARIABLE, raising=False)
    with request_limit.held():
        assert os.environ[request_limit.VARIABLE] == request_limit.HERE
    assert request_limit.VARIABLE not in os.environ
    monkeypatch.setenv(request_limit.VARIABLE, "")
    with request_limit.held():
        assert os.environ[request_limit.VARIABLE] == ""


def test_an_ingestion_asks_under_the_limit_and_shows_what_it_asked(
    client: SyncPrefectClient, limit: str, run: Callable[..., Any], tmp_path: Path
) -> None:
    add_crawl(tmp_path / "tree", OLD)
    store = open_store(tmp_path / "store", create=True)
    occupied: dict[str, int] = {}

    def look(number: int, path: str) -> str | None:
        with lock:
            occupied[path] = client.read_global_concurrency_limit_by_name(limit).active_slots
        return "429" if number == server.requests[path] == 1 and path.endswith("1.warc.gz") else None

    lock = threading.Lock()
    file = tmp_path / "web.toml"
    with serve(tmp_path / "tree", look) as server:
        file.write_text(
            f'name = "web"\n[source.crawl]\nkind = "common-crawl"\nroot = "{server.url}"\ncrawls = ["newest"]\n'
        )
        ended = until_final(client, run("ingest-crawl/manual", recipe=str(file), store=store.uri, set=[]))
        asked = server.requests.total() + server.sizes.total()
    assert ended.state.is_completed(), logs_of(client, ended)
    assert len(occupied) == FILES + 2
    assert min(occupied.values()) >= 1
    (kept,) = (name for name in store.list("runs/") if name.endswith("traffic.json"))
    told = f"{asked} requests, 1 of them again"
    line = until_said(client, ended, told)
    assert line.startswith(told)
    assert kept.split("/")[1] in line
    assert told in artifacts_of(client, ended)["ingested"]
    assert client.read_global_concurrency_limit_by_name(limit).active_slots == 0
