"""Never train twice: who trains a run now, and whether it is finished. Names are created once and never changed.

    runs/<run id>/claim.<n>       the n-th attempt: host, process, time
    runs/<run id>/beat.<n>.<k>    its k-th heartbeat
    runs/<run id>/released.<n>    it has ended, and how
    runs/<run id>/result.json     the run is finished

An attempt whose process has ended (seen on its own machine), or that sent no heartbeat for a while (seen from
elsewhere; clocks may differ by less than the lease), counts as dead. Two attempts at once would waste time, not spoil
anything: both see the same batches, and checkpoints are create-only.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from corpusmill.canonical import canonical_json
from corpusmill.errors import MillError
from corpusmill.processes import Proc, alive, identify
from corpusmill.store import Store
from corpusmill.store.receipts import seal, unseal

BEAT_S = 120.0
LEASE_S = 600.0


def finished(store: Store, run_id: str) -> Mapping[str, Any] | None:
    """The result of a finished run; None while it is not."""
    name = f"runs/{run_id}/result.json"
    return unseal(store.get(name), name) if store.exists(name) else None


def finish(store: Store, run_id: str, result: Mapping[str, Any]) -> None:
    """Mark a run as finished; the first result counts.

    Raises:
        CheckFailed: what is there already is no result.
    """
    if not store.create(f"runs/{run_id}/result.json", seal(result)):
        finished(store, run_id)


def claim(store: Store, run_id: str) -> int | None:
    """Take the run: the number of our claim; None while a living attempt has it."""
    while True:
        newest = _highest(store, f"runs/{run_id}/claim.")
        if newest and _lives(store, run_id, newest):
            return None
        if store.create(f"runs/{run_id}/claim.{newest + 1}", seal(_self() | {"time": int(time.time())})):
            return newest + 1


def release(store: Store, run_id: str, number: int, outcome: str) -> None:
    """Record that an attempt has ended."""
    store.put(f"runs/{run_id}/released.{number}", seal({"outcome": outcome}))


@contextmanager
def beating(store: Store, run_id: str, number: int) -> Iterator[None]:
    """Send heartbeats from a thread, for observers on other machines."""
    stop = threading.Event()

    def beat() -> None:
        k = 0
        while not stop.wait(BEAT_S):
            k += 1
            try:
                store.put(f"runs/{run_id}/beat.{number}.{k}", canonical_json({"time": int(time.time())}))
            except MillError:
                continue  # a store that is away for a while; the next beat tells

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _highest(store: Store, prefix: str) -> int:
    return max((int(name.removeprefix(prefix)) for name in store.list(prefix)), default=0)


def _lives(store: Store, run_id: str, number: int) -> bool:
    if store.exists(f"runs/{run_id}/released.{number}"):
        return False
    name = f"runs/{run_id}/claim.{number}"
    owner = unseal(store.get(name), name)
    if owner["machine"] == _self()["machine"]:
        return alive(Proc(int(owner["pid"]), str(owner["started"])))
    beats = _highest(store, f"runs/{run_id}/beat.{number}.")
    return time.time() < float(owner["time"]) + beats * BEAT_S + LEASE_S


def _self() -> dict[str, object]:
    me = identify(os.getpid())
    boot = Path("/proc/sys/kernel/random/boot_id")  # process ids mean something within one start of one machine
    start = boot.read_text(encoding="ascii").strip() if boot.exists() else ""
    return {"machine": f"{socket.gethostname()} {start}", "pid": os.getpid(), "started": me.started if me else ""}
