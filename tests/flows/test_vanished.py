"""A machine that vanishes with its worker and its flow run: the run must not stay Running for ever."""

from __future__ import annotations

import json
import os
import signal
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from corpusmill.processes import Proc, descendants
from tests.flows.test_platform import mill, said, state, until


def ask(url: str, body: dict[str, Any] | None = None) -> Any:
    request = urllib.request.Request(url, headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, json.dumps(body).encode() if body is not None else None, timeout=20) as answer:
        return json.load(answer)


@pytest.mark.long
def test_a_run_whose_machine_vanished_is_marked_crashed(
    home: Path, toy: tuple[str, str], training_config: Callable[[int], str]
) -> None:
    said(mill("up", home=home))
    try:
        api = state(home)["api_url"]
        deployment = ask(f"{api}/deployments/name/train/demo")["id"]
        wish = {"manifest": "toy", "config": training_config(1_000_000), "store": toy[0]}
        run = ask(f"{api}/deployments/{deployment}/create_flow_run", {"parameters": wish})["id"]
        heartbeat = {"filter": {"event": {"name": ["prefect.flow-run.heartbeat"]}}}
        until(lambda: ask(f"{api}/events/filter", heartbeat)["events"], 180)
        workers = Proc(**state(home)["workers"])
        for proc in [workers, *descendants([workers.pid])]:
            os.kill(proc.pid, signal.SIGKILL)
        until(lambda: ask(f"{api}/flow_runs/{run}")["state"]["type"] == "CRASHED", 240)
        assert "No heartbeat for 90 s" in ask(f"{api}/flow_runs/{run}")["state"]["message"]
    finally:
        said(mill("down", home=home))
