"""Processes that we start: who they are, what they have started, how they end without leaving anything behind.

A process is identified by its id and its start time, so that a recycled id is never signalled.
"""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from corpusmill.redact import redacted

# Runs the command with a SIGTERM from the kernel should the flow be killed: prctl(PR_SET_PDEATHSIG, SIGTERM) outlives
# exec. Done in the child's own interpreter, because a preexec_fn is unsafe in a process with threads.
_TETHER = (
    [sys.executable, "-c", "import ctypes,os,sys; ctypes.CDLL(None).prctl(1, 15); os.execvp(sys.argv[1], sys.argv[1:])"]
    if sys.platform == "linux"
    else []
)


@dataclass(frozen=True)
class Proc:
    """One process for certain: `started` is its start in seconds since boot, which no correction of the clock moves."""

    pid: int
    started: str


def identify(pid: int) -> Proc | None:
    """The living process with this id, or None (a zombie is not living)."""
    with suppress(psutil.NoSuchProcess):
        return _living(psutil.Process(pid))
    return None


def alive(proc: Proc) -> bool:
    """Whether this very process still runs."""
    return identify(proc.pid) == proc


def children(pid: int) -> list[Proc]:
    """What this process has started itself."""
    return _started_by(pid, recursive=False)


def descendants(pids: Sequence[int]) -> set[Proc]:
    """Everything that these processes have started, at any depth, whatever its session or process group."""
    return {proc for pid in pids for proc in _started_by(pid, recursive=True)}


def _started_by(pid: int, *, recursive: bool) -> list[Proc]:
    with suppress(psutil.NoSuchProcess):
        return [proc for child in psutil.Process(pid).children(recursive) if (proc := _living(child))]
    return []


def _living(process: psutil.Process) -> Proc | None:
    with suppress(psutil.NoSuchProcess):  # it ended a moment ago
        if process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            return Proc(process.pid, f"{process.create_time() - psutil.boot_time():.2f}")
    return None


def stop(procs: Sequence[Proc], grace_s: float) -> None:
    """SIGTERM to the processes, time to end with all their descendants, then SIGKILL for whatever is left."""
    asked = [proc for proc in procs if alive(proc)]
    family = {
        *asked,
        *descendants([proc.pid for proc in asked]),
    }  # before the signal: orphans cannot be found by descent
    for proc in asked:
        end(proc, signal.SIGTERM)
    deadline = time.monotonic() + grace_s
    while time.monotonic() < deadline:
        family |= descendants([proc.pid for proc in family])  # they may start something while they end
        if not any(alive(proc) for proc in family):
            return
        time.sleep(0.1)
    for _ in range(50):
        family |= descendants([proc.pid for proc in family])
        left = [proc for proc in family if alive(proc)]
        if not left:
            return
        for proc in left:
            end(proc, signal.SIGKILL)
        time.sleep(0.1)


def end(proc: Proc, number: signal.Signals) -> None:
    """Send a signal to this very process."""
    if alive(proc):
        try:
            os.kill(proc.pid, number)
        except ProcessLookupError:
            pass


def supervise(
    argv: Sequence[str],
    *,
    log: Path,
    on_line: Callable[[str], None],
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    watch: Callable[[], None] = lambda: None,
    grace_s: float = 20.0,
    poll_s: float = 0.5,
) -> int:
    """Run a command to its end in a session of its own, and hand on the lines that it writes.

    Output goes to a file, not a pipe: when the caller is killed, the command's last prints still have somewhere to go.
    Any way out of this function, also a TerminationSignal in the caller, ends the command and all that it started:
    SIGTERM, `grace_s` (under the 30 s that a Prefect worker waits) to store a checkpoint, SIGKILL.

    Args:
        log: file for stdout and stderr, made or appended to.
        on_line: gets each line, without secrets; limit the rate there.
        watch: called at every poll; ends the command by raising.

    Returns:
        the exit status, negative for a signal.
    """
    with log.open("ab") as out, log.open("rb") as tail:
        tail.seek(0, os.SEEK_END)
        child = subprocess.Popen(
            [*_TETHER, *argv],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=dict(env or os.environ),
            cwd=cwd,
            start_new_session=True,
        )
        me = identify(child.pid)
        seen: set[Proc] = set()
        rest = b""
        try:
            while True:
                ended = child.poll() is not None
                seen |= descendants([child.pid]) if not ended else set()
                *lines, rest = (rest + tail.read()).split(b"\n")
                for line in lines:
                    on_line(redacted(line.decode("utf-8", "replace").rstrip()))
                if ended:
                    break
                watch()
                time.sleep(poll_s)
            if rest:
                on_line(redacted(rest.decode("utf-8", "replace").rstrip()))
        finally:
            # Ranks live in sessions of their own: a signal to the group would miss them, so they are known by descent.
            stop([me] if me and child.poll() is None else [], grace_s)
            stop([proc for proc in seen if alive(proc)], grace_s=2.0)
            child.wait()
    return child.returncode


def forget_peak() -> None:
    """Let `peak_bytes` begin anew, where the system can (Linux)."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_bytes() -> int:
    """Most memory that this process held since `forget_peak`; elsewhere than on Linux, ever.

    Not `ru_maxrss` on Linux: a process begins with that of the one which started it.
    """
    with suppress(OSError):
        found = re.search(r"^VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"), re.MULTILINE)
        if found:
            return int(found[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
