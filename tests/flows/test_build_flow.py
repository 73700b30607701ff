"""The flow `build-dataset` on a real server: the same dataset as `mill build`, and who trains on it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from prefect.client.schemas.filters import DeploymentFilter, FlowRunFilter, TaskRunFilter
from prefect.states import Cancelling

from corpusmill.config import load_recipe
from corpusmill.processes import alive, descendants
from corpusmill.store import open_store
from flows.platform.supervisor import Platform
from mill.demo.run import overrides, result_of
from tests.flows.conftest import Alerts
from tests.flows.waiting import artifacts_of, logs_of, until_final, until_said
from tests.shared import linked

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, demo_crawl: Path) -> Path:
    """A folder with the sample crawl and an empty store."""
    folder = tmp_path_factory.mktemp("home")
    linked(demo_crawl, folder / "demo")
    open_store(folder / "store", create=True)
    return folder


def test_a_build_publishes_what_mill_build_would_and_the_event_starts_one_training(
    client: SyncPrefectClient, run: Run, home: Path, training_config: Callable[[int], str]
) -> None:
    from corpusmill.engine.local import Engine
    from tasks.chain import build

    store = open_store(home / "store")
    wish = [*overrides(home), "source.crawl.max_files=1", f"train={training_config(4)}"]
    began = datetime.now(UTC)
    first = until_final(client, run("build-dataset/demo", recipe="demo", set=wish, store=store.uri))
    assert first.state.is_completed(), logs_of(client, first)
    name, digest = store.resolve("demo")
    manifest = store.manifest(digest, name)
    assert {f"manifest:{digest[:16]}", "dataset:demo"} <= set(first.tags)

    artifacts = artifacts_of(client, first)
    assert set(artifacts) == {"funnel", "dataset-card", "rejects-sample", "manifest", "columns", "counts"}
    table = json.loads(artifacts["funnel"])
    keys = ("stage", "docs_in", "docs_out", "bytes_in", "bytes_out")
    assert [[row[key] for key in keys] for row in table] == [[row[key] for key in keys] for row in manifest["funnel"]]
    assert digest in artifacts["dataset-card"]

    runs = client.read_task_runs(task_run_filter=TaskRunFilter.model_validate({"flow_run_id": {"any_": [first.id]}}))
    files = 2
    assert files <= len(runs) <= 5 * files
    assert all(task.state.is_completed() for task in runs)

    with Engine(1) as engine:
        again = build(load_recipe("demo", wish), store, lambda stage, fn, units: engine.map(fn, units))
    assert (again.digest, sum(again.units_run.values())) == (digest, 0)

    training = until_one(client, began, digest)
    assert training.state.is_completed(), logs_of(client, training)
    (run_tag,) = [tag for tag in training.tags if tag.startswith("run:")]
    assert {f"manifest:{digest[:16]}", "dataset:demo"} <= set(training.tags)
    result = result_of(store, run_tag.removeprefix("run:"))
    assert result["manifest"] == digest
    assert f'"{result["loss_last"]:.4f}"' in artifacts_of(client, training)["training"]
    until_said(client, training, "step 4/4")

    # Asking directly, on top: the event is silent, and the training that is asked for is done already.
    began = datetime.now(UTC)
    second = until_final(client, run("build-dataset/demo", recipe="demo", set=wish, store=store.uri, train=True))
    assert second.state.is_completed(), logs_of(client, second)
    until_said(client, second, "0 units run")
    assert f"manifest:{digest[:16]}" in second.tags
    asked = until_one(client, began, digest)
    assert asked.state.is_completed()
    assert run_tag in asked.tags
    until_said(client, asked, "finished before")
    assert not any("step " in line for line in logs_of(client, asked))
    time.sleep(6)  # an automation that had matched would have acted: it takes 2 to 4 s
    assert [found.id for found in trainings(client, began, digest)] == [asked.id]


def trainings(client: SyncPrefectClient, since: datetime, digest: str) -> list[Any]:
    """Flow runs that train on the dataset, from then on."""
    runs = client.read_flow_runs(
        deployment_filter=DeploymentFilter.model_validate({"tags": {"all_": ["demo"]}}),
        flow_run_filter=FlowRunFilter.model_validate({"expected_start_time": {"after_": since}}),
    )
    return [found for found in runs if found.parameters.get("manifest") == digest]


def until_one(client: SyncPrefectClient, since: datetime, digest: str) -> Any:
    """The one training that starts, in its final state."""
    deadline = time.monotonic() + 90
    while not (found := trainings(client, since, digest)):
        assert time.monotonic() < deadline, "no training started"
        time.sleep(0.5)
    assert len(found) == 1
    return until_final(client, found[0])


def test_cancelling_a_build_ends_its_workers_and_leaves_no_process(
    client: SyncPrefectClient, run: Run, platform: Platform, home: Path
) -> None:
    store = open_store(home / "another-store", create=True)
    build = run("build-dataset/demo", recipe="demo", set=overrides(home), store=store.uri)
    of_build = FlowRunFilter.model_validate({"id": {"any_": [build.id]}})
    assert platform.workers is not None
    deadline = time.monotonic() + 120
    # the flow, its pool's resource tracker and two processes
    while len(descendants([platform.workers.pid])) < 4 or not states_of(client, of_build):
        assert time.monotonic() < deadline
        time.sleep(0.3)
    running = descendants([platform.workers.pid])
    client.set_flow_run_state(build.id, Cancelling())
    assert until_final(client, build).state.is_cancelled()
    deadline = time.monotonic() + 20  # the state may be there before the last process has gone
    while any(alive(proc) for proc in running):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert store.names() == []
    deadline = time.monotonic() + 15
    while not all(state.is_final() for state in states_of(client, of_build)):
        assert time.monotonic() < deadline, states_of(client, of_build)
        time.sleep(0.3)
    names = {state.name for state in states_of(client, of_build)}
    assert names == {"Cancelled"}, "batches of a cancelled build have not failed"
    log = logs_of(client, build)
    assert not [line for line in log if "Traceback" in line or "Error" in line], log


def states_of(client: SyncPrefectClient, flow_runs: FlowRunFilter) -> list[Any]:
    """States of the batches."""
    return [task.state for task in client.read_task_runs(flow_run_filter=flow_runs)]


def test_a_recipe_with_a_fault_fails_with_all_of_it_in_the_message_and_is_told_to_the_webhook(
    client: SyncPrefectClient, run: Run, alerts: Alerts
) -> None:
    faults = ["pack.seq_length=5", "source.demo.root=['http://me:CANARYPW@host/?sig=CANARYSIG']"]
    failed = until_final(client, run("build-dataset/demo", recipe="demo", set=faults))
    assert failed.state.is_failed()
    assert "CANARY" not in failed.state.message
    assert "CANARY" not in "".join(logs_of(client, failed))
    assert "pack.seq_length: unknown key" in failed.state.message
    deadline = time.monotonic() + 30
    while not [alert for alert in alerts.told if alert["run"] == str(failed.id)]:
        assert time.monotonic() < deadline, alerts.told
        time.sleep(0.5)
    (alert,) = [alert for alert in alerts.told if alert["run"] == str(failed.id)]
    assert alert["text"] == f"build-dataset / {failed.name} is Failed"
