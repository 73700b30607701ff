"""One real Prefect server with its workers for all tests of this folder: an idle one takes a fifth of a core."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from flows.platform import supervisor
from tests.shared import ended_with_us, linked

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import FlowRun

PREFECT_VARIABLES = ("PREFECT_API_URL", "PREFECT_API_AUTH_STRING", "PREFECT_HOME", "PREFECT_PROFILE")
QUICK = {
    "PREFECT_WORKER_QUERY_SECONDS": "1",
    "PREFECT_LOGGING_TO_API_BATCH_INTERVAL": "0.2",
    "PREFECT_SERVER_DEPLOYMENTS_CONCURRENCY_SLOT_WAIT_SECONDS": "1",
    "PREFECT_SERVER_CONCURRENCY_MAXIMUM_CONCURRENCY_SLOT_WAIT_SECONDS": "0.2",
}
"""Pauses between questions, of seconds to half a minute by default: what is asked and answered stays the same."""


@pytest.fixture(scope="session")
def alerts() -> Iterator[Alerts]:
    """A URL that failures are posted to, and what was posted."""
    told: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Alerts(f"http://127.0.0.1:{server.server_address[1]}/", told)
        server.shutdown()


@pytest.fixture
def home(tmp_path: Path, demo_crawl: Path) -> Path:
    """A home of a platform in which the sample crawl lies already."""
    linked(demo_crawl, tmp_path / "demo")
    return tmp_path


@dataclass(frozen=True)
class Alerts:
    """Address and messages."""

    url: str
    told: list[dict[str, str]]


@pytest.fixture(scope="package")
def platform(tmp_path_factory: pytest.TempPathFactory, alerts: Alerts) -> Iterator[supervisor.Platform]:
    """Server, pools, deployments, automations and workers, in a home of their own; this process is a client of it."""
    before = dict(os.environ)
    os.environ["CORPUSMILL_ALERT_WEBHOOK"] = alerts.url
    for name in PREFECT_VARIABLES:
        os.environ.pop(name, None)
    os.environ |= {"CORPUSMILL_WORKERS": "2", **QUICK}
    home = tmp_path_factory.mktemp("platform")
    try:
        started = supervisor.start(home, "127.0.0.1", None, str(home / "store"), lambda _: None, lambda: None)
        with ended_with_us(*(process.pid for process in started.processes)):
            yield started
        supervisor.stop_platform(started)
    finally:
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture
def client(platform: supervisor.Platform) -> Iterator[SyncPrefectClient]:
    """A client of that server."""
    from prefect import get_client

    with get_client(sync_client=True) as client:
        yield client


@pytest.fixture
def run(client: SyncPrefectClient) -> Callable[..., FlowRun]:
    """`run("flow/deployment", **parameters)`: the flow run, started but not waited for."""

    def start(deployment: str, **parameters: Any) -> FlowRun:
        found = client.read_deployment_by_name(deployment)
        return client.create_flow_run_from_deployment(found.id, parameters=parameters)

    return start


TRAINING = """
name = "toy"

[model]
dim = 16
layers = 1
heads = 1
hidden = 32

[mixture]
global_batch = 4
max_epochs = 1_000_000

[[mixture.stage]]
steps = {steps}

[run]
nproc = 2
micro_batch = 2
checkpoint_every = 1000
"""


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A small published dataset: address of its store, manifest digest."""
    from tests.training.packed import publish_dataset

    folder = tmp_path_factory.mktemp("toy")
    return str(folder / "store"), publish_dataset(folder / "store", folder / "scratch")


@pytest.fixture
def training_config(tmp_path: Path) -> Callable[[int], str]:
    """A file with a training config of a number of steps."""

    def write(steps: int) -> str:
        file = tmp_path / f"toy-{steps}.toml"
        file.write_text(TRAINING.format(steps=steps))
        return str(file)

    return write
