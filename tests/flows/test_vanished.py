"""A machine that vanishes with its worker and its flow run: the run must not stay Running for ever."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from corpusmill.processes import Proc, descendants
from tests.flows.platform.test_platform import mill, said, state, until


def ask(url: str, body: dict[str, Any] | None = None) -> Any:
    return (httpx.get(url, timeout=20) if body is None else httpx.post(url, json=body, timeout=20)).json()


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
