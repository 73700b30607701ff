"""`mill up`, `status`, `down` as a user runs them: what is started is stopped, nothing else, and nothing is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from corpusmill.processes import Proc, alive, descendants, identify
from flows.platform import supervisor
from flows.platform.server import is_healthy
from flows.platform.supervisor import Platform
from tests.flows.conftest import PREFECT_VARIABLES

ROOT = Path(__file__).parents[3]
MAIN = "import sys; from mill.cli import main; main()"


def mill(*words: str, home: Path, api_url: str | None = None) -> subprocess.Popen[str]:
    env = {name: value for name, value in os.environ.items() if name not in PREFECT_VARIABLES}
    env |= {"PYTHONPATH": str(ROOT), "CORPUSMILL_STORE": str(home / "store")}
    env |= {"PREFECT_API_URL": api_url} if api_url else {}
    return subprocess.Popen(
        [sys.executable, "-c", MAIN, *words, "--home", str(home)],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=hears_sigint,
    )


def hears_sigint() -> None:
    """A test run that a shell started in the background ignores SIGINT, and so would its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def said(process: subprocess.Popen[str], timeout_s: float = 240) -> str:
    out, _ = process.communicate(timeout=timeout_s)
    assert process.returncode == 0, out
    return out


def until(true: Callable[[], Any], timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.5)


def state(home: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((home / "platform.json").read_text())
    return data


def test_up_leaves_a_guarded_platform_running_and_down_leaves_nothing(home: Path) -> None:
    out = said(mill("up", "--host", "0.0.0.0", home=home))
    api, env = state(home)["api_url"], state(home)["env"]
    assert api.removesuffix("/api") in out
    assert "prefect deployment run 'build-dataset/demo' --watch" in out
    assert "prefect deployment run 'build-dataset/any' -p recipe=FILE --watch" in out
    assert env["PREFECT_API_AUTH_STRING"] in out
    assert (home / "platform.json").stat().st_mode & 0o077 == 0
    assert httpx.get(f"{api}/work_pools/cpu", timeout=20).status_code in (401, 403)
    login = tuple(env["PREFECT_API_AUTH_STRING"].split(":"))
    until(lambda: httpx.get(f"{api}/work_pools/cpu", auth=login, timeout=20).json()["status"] == "READY", timeout_s=60)
    ours = [Proc(**state(home)[role]) for role in ("server", "workers")]
    assert all(alive(proc) for proc in ours)
    assert "already up" in said(mill("up", home=home))
    assert f"healthy (pid {ours[0].pid})" in said(mill("status", home=home))
    family = [*ours, *descendants([proc.pid for proc in ours])]
    assert said(mill("down", home=home)).endswith("stopped\n")
    assert not [proc for proc in family if alive(proc)]
    assert not (home / "platform.json").exists()
    assert "nothing is running" in said(mill("down", home=home))


def test_a_given_server_is_used_and_left_alone(platform: Platform, home: Path) -> None:
    said(mill("up", home=home, api_url=platform.api_url))
    assert state(home)["server"] is None
    workers = Proc(**state(home)["workers"])
    assert alive(workers)
    said(mill("down", home=home))
    assert not alive(workers)
    assert is_healthy(platform.api_url)


def test_an_interrupted_up_leaves_nothing(home: Path) -> None:
    process = mill("up", home=home)
    deadline = time.monotonic() + 60
    while not (home / "platform.json").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    server = Proc(**state(home)["server"])
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert not alive(server)
    assert not (home / "platform.json").exists()


@pytest.mark.parametrize("step", ["point_prefect_at", "_write_state"])
def test_an_interrupt_between_start_and_note_of_a_process_leaves_nothing(
    home: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(supervisor, step, interrupted)
    monkeypatch.setattr(supervisor, "given_api_url", lambda: None)  # other tests point this process at a server
    before = len(supervisor._children)
    with pytest.raises(KeyboardInterrupt):
        supervisor.start(home, "127.0.0.1", None, str(home / "store"), lambda text: None, lambda: None)
    (server,) = supervisor._children[before:]
    assert server.poll() is not None
    assert not (home / "platform.json").exists()


def test_down_does_not_touch_a_process_that_only_has_the_same_id(home: Path) -> None:
    me = identify(os.getpid())
    assert me is not None
    data = {"api_url": "http://127.0.0.1:9/api", "env": {}, "store": "s", "owned": True}
    recycled = {"pid": me.pid, "started": "long ago"}
    (home / "platform.json").write_text(json.dumps({**data, "server": recycled, "workers": None}))
    assert "nothing is running" in said(mill("down", home=home))
    assert alive(me)
