"""`mill up`, `status`, `down` as a user runs them: what is started is stopped, nothing else, and nothing is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from corpusmill.processes import Proc, alive, descendants, identify
from tests.flows.conftest import PREFECT_VARIABLES

ROOT = Path(__file__).parents[2]
MAIN = "import sys; from corpusmill.cli import main; main()"


def mill(*words: str, home: Path) -> subprocess.Popen[str]:
    env = {name: value for name, value in os.environ.items() if name not in PREFECT_VARIABLES}
    env |= {"PYTHONPATH": str(ROOT), "CORPUSMILL_STORE": str(home / "store")}
    return subprocess.Popen(
        [sys.executable, "-c", MAIN, *words, "--home", str(home)],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def said(process: subprocess.Popen[str], timeout_s: float = 240) -> str:
    out, _ = process.communicate(timeout=timeout_s)
    assert process.returncode == 0, out
    return out


def state(home: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((home / "platform.json").read_text())
    return data


def test_up_leaves_a_platform_running_and_down_leaves_nothing(tmp_path: Path) -> None:
    out = said(mill("up", home=tmp_path))
    api = state(tmp_path)["api_url"]
    assert api.removesuffix("/api") in out
    assert "prefect deployment run 'build-dataset/demo' --watch" in out
    ours = [Proc(**state(tmp_path)[role]) for role in ("server", "workers")]
    assert all(alive(proc) for proc in ours)
    assert "already up" in said(mill("up", home=tmp_path))
    assert f"healthy (pid {ours[0].pid})" in said(mill("status", home=tmp_path))
    family = [*ours, *descendants([proc.pid for proc in ours])]
    assert said(mill("down", home=tmp_path)).endswith("stopped\n")
    assert not [proc for proc in family if alive(proc)]
    assert not (tmp_path / "platform.json").exists()
    assert "nothing runs" in said(mill("down", home=tmp_path))


def test_an_interrupted_up_leaves_nothing(tmp_path: Path) -> None:
    process = mill("up", home=tmp_path)
    deadline = time.monotonic() + 60
    while not (tmp_path / "platform.json").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    server = Proc(**state(tmp_path)["server"])
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert not alive(server)
    assert not (tmp_path / "platform.json").exists()


def test_down_does_not_touch_a_process_that_only_has_the_same_id(tmp_path: Path) -> None:
    me = identify(os.getpid())
    assert me is not None
    data = {"api_url": "http://127.0.0.1:9/api", "env": {}, "store": "s", "owned": True}
    recycled = {"pid": me.pid, "started": "long ago"}
    (tmp_path / "platform.json").write_text(json.dumps({**data, "server": recycled, "workers": None}))
    assert "nothing runs" in said(mill("down", home=tmp_path))
    assert alive(me)
