"""Children that are supervised: their lines arrive, and however it ends nothing of them is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from corpusmill.processes import Proc, alive, descendants, identify, stop, supervise

# A rank's behaviour at its worst: a session of its own, deaf to SIGTERM. It writes its pid, so that the test knows it.
DEAF_GRANDCHILD = """
import os, signal, subprocess, sys, time
code = (
    "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "print('rank', os.getpid(), flush=True); time.sleep(60)"
)
subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
print("parent", os.getpid(), flush=True)
time.sleep(60)
"""


def pid_in(line: str) -> int:
    return int(line.split()[1])


def test_lines_arrive_in_order_and_the_exit_status_comes_back(tmp_path: Path) -> None:
    lines: list[str] = []
    code = "import sys; print('one'); print('two', file=sys.stderr); sys.stdout.write('no newline'); sys.exit(3)"
    command = [sys.executable, "-u", "-c", code]
    assert supervise(command, log=tmp_path / "log", on_line=lines.append, poll_s=0.05) == 3
    assert lines == ["one", "two", "no newline"]


def test_an_exception_in_the_caller_ends_the_child_and_a_deaf_grandchild_in_another_session(tmp_path: Path) -> None:
    lines: list[str] = []

    class Terminated(BaseException):
        pass

    def on_line(line: str) -> None:
        lines.append(line)
        if len(lines) == 2:
            raise Terminated

    began = time.monotonic()
    with pytest.raises(Terminated):
        supervise(
            [sys.executable, "-c", DEAF_GRANDCHILD], log=tmp_path / "log", on_line=on_line, poll_s=0.05, grace_s=1.0
        )
    assert time.monotonic() - began < 15
    assert all(identify(pid_in(line)) is None for line in lines)


def test_a_child_that_leaves_something_behind_is_cleaned_up_after(tmp_path: Path) -> None:
    lines: list[str] = []
    code = DEAF_GRANDCHILD.replace("time.sleep(60)\n", "time.sleep(1.5)\n")
    assert supervise([sys.executable, "-c", code], log=tmp_path / "log", on_line=lines.append, poll_s=0.1) == 0
    ranks = [line for line in lines if line.startswith("rank")]
    assert len(ranks) == 1
    assert identify(pid_in(ranks[0])) is None


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's parent-death signal is Linux's")
def test_a_killed_caller_takes_its_child_along(tmp_path: Path) -> None:
    caller = f"""
from pathlib import Path
from corpusmill.processes import supervise
import sys
supervise([sys.executable, "-c", "import os,time; print('child', os.getpid(), flush=True); time.sleep(60)"],
          log=Path({str(tmp_path / "log")!r}), on_line=lambda line: print(line, flush=True), poll_s=0.05)
"""
    root = Path(__file__).parents[2]
    with subprocess.Popen([sys.executable, "-c", caller], stdout=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout is not None
        child = identify(pid_in(process.stdout.readline()))
        assert child is not None
        process.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(child)


def test_a_recycled_pid_is_not_signalled() -> None:
    me = identify(os.getpid())
    assert me is not None
    stop([Proc(me.pid, "another start")], grace_s=0.1)  # would end this test run
    assert alive(me)


def test_descendants_of_a_process_are_found_across_sessions() -> None:
    with subprocess.Popen([sys.executable, "-c", DEAF_GRANDCHILD], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pids = sorted(pid_in(parent.stdout.readline()) for _ in range(2))
        found = descendants([os.getpid()])
        assert set(pids) <= {proc.pid for proc in found}
        proc = identify(parent.pid)
        assert proc is not None
        stop([proc], grace_s=0.5)
        assert [pid for pid in pids if identify(pid)] == []
