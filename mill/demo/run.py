"""`mill demo`: a sample crawl to token shards to a trained model, through the platform or without it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from corpusmill.errors import CheckFailed, Unavailable
from corpusmill.plain_text import visible
from flows.platform import supervisor
from flows.platform.server import last_line
from flows.run.defaults import workers
from mill.demo.following import Following
from mill.platform import progress, sample_crawl

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import FlowRun, Log

    from corpusmill.store import Store

RECIPE = "demo"
PREFECTS_OWN = ("Beginning flow run", "Finished in state")
"""Log lines that repeat what is already shown."""
POLL_S = 0.5
"""Seconds between questions to the server."""
LAST_LINES_S = 2.5
"""How long the last lines of a log may take: they go to the server in batches of two seconds."""
TRAINING_APPEARS_S = 120
"""How long the event may take to start the training."""


@dataclass(frozen=True)
class Made:
    """What the demo made, in addition to what is in the store."""

    digest: str
    run_id: str
    tags: list[str]
    last_words: str


def on_platform(store_uri: str, home: Path, *, keep: bool) -> Made:
    """Run the deployments and let the event start the training; then stop what was started, unless `keep`.

    Raises:
        CheckFailed: a flow run failed, or the event started no training.
    """
    import httpx

    console = Console(stderr=True)
    platform = supervisor.find(home)
    if platform and not platform.complete:
        supervisor.stop_platform(platform)
        platform = None
    ours = platform is None
    if platform is None:
        with progress(console) as say:
            platform = supervisor.start(home, "127.0.0.1", None, store_uri, say, lambda: sample_crawl(home))
    else:
        supervisor.point_prefect_at(platform.env)
        sample_crawl(home)
    try:
        digest, run_id, tags = _runs(platform, store_uri, home, console)
    except httpx.TransportError as err:
        log = platform.home / "logs/server.log"
        raise Unavailable(
            "the Prefect server is not reachable any more", f"{err}; {last_line(log)}", f"Its log: {log}"
        ) from err
    except BaseException:
        console.print(f"logs: {visible(str(platform.home / 'logs'))}")
        raise
    finally:
        if ours and not keep:
            with progress(console) as say:
                say("stopping: workers, then the server")
                supervisor.stop_platform(platform)
    ui = "`mill up`, then the URL that it prints" if ours and not keep else platform.ui_url
    return Made(digest, run_id, tags, f"UI         {ui}; it shows these runs. `mill down` stops it.")


def _runs(platform: supervisor.Platform, store_uri: str, home: Path, console: Console) -> tuple[str, str, list[str]]:
    """Build and training as deployments: manifest digest, training run id, tags of the training's flow run."""
    from prefect import get_client

    from corpusmill.store import open_store

    store = open_store(store_uri, create=True)
    with get_client(sync_client=True) as client:
        began = datetime.now(UTC)
        deployment = client.read_deployment_by_name("build-dataset/demo")
        build = client.create_flow_run_from_deployment(
            deployment.id, parameters={"recipe": RECIPE, "set": overrides(home), "store": store_uri}
        )
        console.print(f"build-dataset/demo: {platform.ui_url}/runs/flow-run/{build.id}", soft_wrap=True)
        build = watched(client, build, console)
        digest = dataset_of(store, build)
        console.print("dataset.published: waiting for the automation to start train/demo")
        training = training_of(client, digest, began)
        console.print(f"train/demo: {platform.ui_url}/runs/flow-run/{training.id}", soft_wrap=True)
        watched(client, training, console)
        tags = client.read_flow_run(training.id).tags
        run_id = next(tag.removeprefix("run:") for tag in tags if tag.startswith("run:"))
    return digest, run_id, tags


def overrides(home: Path) -> list[str]:
    """Where the sample crawl is, for the recipe `demo`."""
    crawl = home / "demo"
    return [f"source.crawl.root={crawl}", f"decontaminate.root={crawl / 'benchmarks'}"]


def watched(client: SyncPrefectClient, run: FlowRun, console: Console) -> FlowRun:
    """Wait for a flow run and show its log, and where it is when the log is silent.

    Raises:
        CheckFailed: it did not complete.
    """
    from prefect.client.schemas.filters import LogFilter
    from prefect.client.schemas.sorting import LogSort

    seen, shown, last_lines_by, complete = 0, Following(dimmed(console)), 0.0, False
    while True:
        run = client.read_flow_run(run.id)
        final = run.state is not None and run.state.is_final()
        if final and not last_lines_by:
            last_lines_by = time.monotonic() + LAST_LINES_S
        logs = client.read_logs(
            LogFilter.model_validate({"flow_run_id": {"any_": [run.id]}}), offset=seen, sort=LogSort.TIMESTAMP_ASC
        )
        for log in logs:
            if not ("worker" in log.name or log.message.startswith(PREFECTS_OWN)):
                shown.line(log.message)
        if run.state is not None:
            shown.is_in(run.state.name or run.state.type.value)
        seen += len(logs)
        complete = complete or any(_is_last(log) for log in logs)
        if final and (complete or time.monotonic() > last_lines_by):
            break
        time.sleep(POLL_S)
    assert run.state is not None
    if not run.state.is_completed():
        raise CheckFailed(f"flow run {run.name} is {run.state.name}", run.state.message or "")
    return run


def _is_last(log: Log) -> bool:
    """Whether a line is the last that a flow run writes."""
    return log.name == "prefect.flow_runs" and log.message.startswith(PREFECTS_OWN[-1])


def dataset_of(store: Store, build: FlowRun) -> str:
    """The manifest that a build published: the newest of the dataset, which must also be in the run's tags."""
    _, digest = store.resolve(RECIPE)
    if f"manifest:{digest[:16]}" not in build.tags:
        raise CheckFailed(f"flow run {build.name} is not tagged with manifest {digest[:16]}", f"its tags: {build.tags}")
    return digest


def training_of(client: SyncPrefectClient, digest: str, since: datetime) -> FlowRun:
    """The flow run of `train` that the event started.

    Raises:
        Unavailable: none within two minutes.
    """
    from prefect.client.schemas.filters import DeploymentFilter, FlowFilter, FlowRunFilter

    deadline = time.monotonic() + TRAINING_APPEARS_S
    while time.monotonic() < deadline:
        runs = client.read_flow_runs(
            flow_filter=FlowFilter.model_validate({"name": {"any_": ["train"]}}),
            deployment_filter=DeploymentFilter.model_validate({"name": {"any_": ["demo"]}}),
            flow_run_filter=FlowRunFilter.model_validate({"expected_start_time": {"after_": since}}),
        )
        for run in runs:
            if run.parameters.get("manifest") == digest:
                return run
        time.sleep(POLL_S)
    raise Unavailable(
        "the event dataset.published started no training",
        f"no flow run of train/demo for manifest {digest[:16]} within {TRAINING_APPEARS_S} s",
        "Check that the automation train-on-publish-demo is enabled; `mill up` creates it.",
    )


def plain(store_uri: str, home: Path) -> Made:
    """The same chain and the same training in plain Python, without Prefect."""
    from corpusmill.config import load_recipe
    from corpusmill.engine.local import Engine
    from corpusmill.store import open_store
    from flows.run.launch import train_in_process
    from mill.progress import shown
    from tasks.chain import build

    console = Console(stderr=True)
    console.print("sample crawl")
    sample_crawl(home)
    recipe = load_recipe(RECIPE, overrides(home))
    store = open_store(store_uri, create=True)
    with Engine(workers()) as engine, shown(engine, sys.stderr) as run:
        built = build(recipe, store, run)
    console.print(f"{sum(built.units_run.values())} units run, {sum(built.units_reused.values())} reused")
    assert recipe.train is not None, "the demo's recipe names its training config"
    result = train_in_process(store.uri, built.digest, recipe.train, on_line=dimmed(console))
    words = "platform   `mill demo` does the same through Prefect, `mill up` leaves it running"
    return Made(built.digest, result["run_id"], result["tags"], words)


def dimmed(console: Console) -> Callable[[str], None]:
    """A function that prints a line as a line of a log."""
    return lambda line: console.print(f"  {visible(line)}", style="dim", markup=False, highlight=False, soft_wrap=True)


def report(store_uri: str, made: Made) -> tuple[dict[str, Any], str]:
    """Funnel, digest, tags, losses and lineage from the store: as a JSON document, and as text."""
    from corpusmill.dataset import funnel, lineage
    from corpusmill.dataset.manifest import open_manifest
    from corpusmill.plain_text import table
    from corpusmill.store import open_store
    from corpusmill.typed_json import written

    store = open_store(store_uri)
    manifest = open_manifest(store, made.digest, RECIPE)
    result = result_of(store, made.run_id)
    rows = funnel.rows(manifest.funnel)
    chain = lineage.chain(store, RECIPE, made.digest, manifest)
    lines = [
        table(("stage", "documents", "kept", "of all", "bytes kept"), rows, numbers=(1, 2, 3, 4)),
        "",
        f"manifest   {RECIPE}@{made.digest}",
        f"tags       {', '.join(made.tags)}",
        *losses(result),
        "",
        lineage.written_out(chain),
        "",
        made.last_words,
    ]
    facts = {
        "name": RECIPE,
        "manifest": made.digest,
        "funnel": written(manifest.funnel),
        "tags": made.tags,
        "training": result,
    }
    return facts, "\n".join(lines)


def result_of(store: Store, run_id: str) -> Mapping[str, Any]:
    """The result of a finished training run."""
    from corpusmill.store.receipts import unseal

    name = f"runs/{run_id}/result.json"
    return unseal(store.get(name), name)


def losses(result: Mapping[str, Any]) -> Iterator[str]:
    """Losses before and after training, as text."""
    yield f"loss       {result['loss_first']:.4f} before, {result['loss_last']:.4f} after {result['steps']:,} steps"
    if result["heldout_before"] is not None:
        yield f"held-out   {result['heldout_before']:.4f} bits per byte before, {result['heldout_after']:.4f} after"
