"""The flow `ingest-crawl` on a real server: two triggers at once, one after the other, and nothing twice."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpusmill.processes import descendants
from corpusmill.store import open_store
from flows.platform.deploy import apply_deployment, deployments
from tests.flows.waiting import artifacts_of, logs_of, until_final, until_said
from tests.tasks.acquire.server import serve
from tests.tasks.ingest.crawls import FILES, OLD, add_crawl, locator, recipe
from tests.tasks.ingest.crawls import run as ingest_here

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient

    from flows.platform.supervisor import Platform

MANY = 6
RECIPE = 'name = "web"\n[source.crawl]\nkind = "common-crawl"\nroot = "{root}"\ncrawls = ["newest"]\n'


def test_a_second_trigger_waits_and_finds_nothing_to_do(
    client: SyncPrefectClient, run: Callable[..., Any], tmp_path: Path
) -> None:
    add_crawl(tmp_path / "tree", OLD)
    store = open_store(tmp_path / "store", create=True)
    file = tmp_path / "web.toml"
    with serve(tmp_path / "tree") as server:
        file.write_text(RECIPE.format(root=server.url.replace("//", "//me:CANARYPW@")))
        asked = {"recipe": str(file), "store": store.uri, "set": []}
        # By both deployments: the limit of one of them does not know of the other's runs.
        triggered = [run("ingest-crawl/manual", **asked), run("ingest-crawl/nightly", **asked)]
        ended = [until_final(client, flow_run) for flow_run in triggered]
        fetched = Counter({path: n for path, n in server.requests.items() if path.endswith(".warc.gz")})
    for flow_run in ended:
        assert flow_run.state.is_completed(), logs_of(client, flow_run)
    first, second = sorted(ended, key=lambda flow_run: flow_run.start_time)
    assert first.end_time <= second.start_time
    assert fetched == Counter(locator(OLD, number) for number in range(FILES))
    (entry,) = store.history("web-documents")
    assert (
        entry["manifest"] == ingest_here(recipe(tmp_path / "tree"), open_store(tmp_path / "other", create=True)).digest
    )

    until_said(client, first, f"web-documents: {OLD}; {FILES} units run")
    until_said(client, second, "nothing new; 0 units run")
    assert {f"snapshot:{OLD}", "dataset:web-documents", f"manifest:{entry['manifest'][:16]}"} <= set(first.tags)
    assert set(artifacts_of(client, first)) == {"funnel", "ingested", "manifest"}
    assert set(artifacts_of(client, second)) == {"ingested"}
    for flow_run in ended:  # the password of the source's address is nowhere on the server
        said = [repr(client.read_flow_run(flow_run.id)), repr(artifacts_of(client, flow_run))]
        assert "CANARY" not in "".join([*said, *logs_of(client, flow_run)])


def test_a_crawl_without_one_usable_page_fails_and_announces_nothing(
    client: SyncPrefectClient, run: Callable[..., Any], tmp_path: Path
) -> None:
    add_crawl(tmp_path / "tree", OLD)
    for number in range(FILES):
        archive = tmp_path / "tree" / locator(OLD, number)
        archive.write_bytes(archive.read_bytes()[:40])
    store = open_store(tmp_path / "store", create=True)
    (tmp_path / "web.toml").write_text(RECIPE.format(root=tmp_path / "tree"))
    ended = until_final(client, run("ingest-crawl/manual", recipe=str(tmp_path / "web.toml"), store=store.uri, set=[]))
    assert ended.state.is_failed(), logs_of(client, ended)
    assert "truncated" in ended.state.message
    assert store.names() == []
    assert not {key for key in artifacts_of(client, ended) if key}  # Prefect's own, of the failure, has no key
    assert not [tag for tag in ended.tags if tag.startswith(("manifest:", "snapshot:"))]


def test_a_run_that_is_killed_in_mid_crawl_is_crashed_and_the_next_one_goes_on(
    client: SyncPrefectClient, platform: Platform, run: Callable[..., Any], tmp_path: Path
) -> None:
    add_crawl(tmp_path / "tree", OLD, files=MANY)
    store = open_store(tmp_path / "store", create=True)
    file = tmp_path / "web.toml"
    wanted = Counter(locator(OLD, number) for number in range(MANY))
    reached, go_on = threading.Event(), threading.Event()

    def hold(number: int, path: str) -> None:
        """Archives wait once two units are finished, so that the kill meets some at work."""
        if path in wanted and server.requests[path] and len(store.list("receipts/extract/")) >= 2:
            reached.set()
            go_on.wait(240)

    with serve(tmp_path / "tree", hold) as server:
        file.write_text(RECIPE.format(root=server.url))
        asked = {"recipe": str(file), "store": store.uri, "set": []}
        killed = run("ingest-crawl/manual", **asked)
        try:
            assert reached.wait(240)
            for process in descendants([platform.workers.pid]):
                os.kill(process.pid, signal.SIGKILL)
        finally:
            go_on.set()
        ended = until_final(client, killed)
        assert ended.state.is_crashed(), ended.state
        done = len(store.list("receipts/extract/"))
        assert 2 <= done < MANY
        resumed = until_final(client, run("ingest-crawl/manual", **asked))
        assert resumed.state.is_completed(), logs_of(client, resumed)
        fetched = Counter({path: n for path, n in server.requests.items() if path in wanted})
    assert set(fetched) == set(wanted)
    assert sum((fetched - wanted).values()) <= 2  # what its two processes had at hand
    until_said(client, resumed, f"{MANY - done} units run, {done} reused")
    (entry,) = store.history("web-documents")
    calm = ingest_here(recipe(tmp_path / "tree"), open_store(tmp_path / "other", create=True))
    assert entry["manifest"] == calm.digest


def test_the_server_knows_schedule_and_limit_and_keeps_what_people_switched_on(client: SyncPrefectClient) -> None:
    def known() -> Any:
        return client.read_deployment_by_name("ingest-crawl/nightly")

    (schedule,) = known().schedules
    assert (schedule.schedule.cron, schedule.schedule.timezone, schedule.active) == ("0 2 * * *", "UTC", False)
    for name in ("ingest-crawl/nightly", "ingest-crawl/manual"):
        deployment = client.read_deployment_by_name(name)
        assert deployment.global_concurrency_limit.limit == 1
        assert deployment.concurrency_options.collision_strategy.value == "ENQUEUE"
    client.update_deployment_schedule(known().id, schedule.id, active=True)
    apply_deployment(client, deployments()["ingest-crawl/nightly"])
    (again,) = known().schedules
    assert again.active
    client.update_deployment_schedule(known().id, again.id, active=False)
