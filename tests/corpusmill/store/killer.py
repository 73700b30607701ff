"""Runs the small run once per step of the folder backend, killed there by SIGKILL, then checks and runs it again.

A process of its own, forking from a state without threads: `python -m tests.corpusmill.store.killer FOLDER KIND
EVERY`; KIND is `good` or a mutant and EVERY takes each n-th step only. JSON lines out.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from corpusmill.errors import MillError
from corpusmill.store import Store, folder, open_store
from corpusmill.store.backend import Exists, Source
from tests.corpusmill.store.smallrun import inconsistencies, receipt_first, small_run

STEPS = ("write", "fchmod", "fsync", "link", "mkdir", "unlink")
KINDS = ("good", "receipt_first", "in_place")


class StoppingOs:
    """The `os` module as folder.py sees it; dies at step number `stop`, in the middle of it where it is a write."""

    def __init__(self, stop: int, half: bool) -> None:
        self.stop, self.half, self.taken, self.writes = stop, half, 0, set[int]()

    def __getattr__(self, name: str) -> Any:
        function = getattr(os, name)
        if name not in STEPS:
            return function

        def step(*args: Any, **kwargs: Any) -> Any:
            if name == "write":
                self.writes.add(self.taken)
            if self.taken == self.stop:
                if self.half and name == "write":
                    os.write(args[0], bytes(args[1])[: len(args[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            self.taken += 1
            return function(*args, **kwargs)

        return step


def in_child(work: Callable[[], Any]) -> Any:
    """The result of `work` in a forked child; None if it was killed."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        try:
            answer = {"ok": work()}
        except BaseException:
            answer = {"error": traceback.format_exc()}
        with os.fdopen(write, "w") as pipe:
            json.dump(answer, pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    os.waitpid(pid, 0)
    if not said:
        return None
    answer = json.loads(said)
    if "error" in answer:
        raise RuntimeError(answer["error"])
    return answer["ok"]


def run(root: Path, commit: Any, stop: int, half: bool) -> Any:
    """The small run in a fresh or half-done store, with the given step as its last."""
    stopper = StoppingOs(stop, half)
    folder.os = stopper  # type: ignore[assignment]
    digest, ran = small_run(open_store(root, create=True), files=1, commit=commit)
    return {"digest": digest, "ran": ran, "steps": stopper.taken, "writes": sorted(stopper.writes)}


def check_and_rerun(root: Path, commit: Any) -> Any:
    """Invariants after the kill; the run again; invariants, digest, history and leftovers after that."""
    after_kill, receipts = [], 0
    try:
        if (root / "STORE.json").exists():
            after_kill = inconsistencies(open_store(root))
            receipts = len(open_store(root).list("receipts/"))
        store = open_store(root, create=True)
        digest, ran = small_run(store, files=1, commit=commit)
    except MillError as err:
        return {"faults": [*after_kill, repr(err)]}
    return {
        "faults": after_kill + inconsistencies(store),
        "digest": digest,
        "repeated": ran - (3 - receipts),
        "entries": len(store.history("small")),
        "left": sum(1 for path in (root / "tmp").rglob("*") if path.is_file() and path.name != "owner"),
    }


def in_place(self: folder.FolderBackend, name: str, source: Source) -> None:
    """The mutant: FolderBackend.attempt writing to the final name."""
    final = self.root / name
    final.parent.mkdir(parents=True, exist_ok=True)
    try:
        fd = folder.os.open(final, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    except FileExistsError as err:
        raise Exists(name) from err
    folder._write(fd, source, name)
    os.close(fd)


def main(place: Path, kind: str, every: int) -> None:
    commit = receipt_first if kind == "receipt_first" else Store.commit
    if kind == "in_place":
        folder.FolderBackend.attempt = in_place  # type: ignore[method-assign]
    whole = in_child(lambda: run(place / "whole", commit, -1, False))
    print(json.dumps(whole), flush=True)
    points = [(stop, False) for stop in range(whole["steps"])] + [(stop, True) for stop in whole["writes"]]
    for stop, half in points[::every]:
        root = place / f"{stop}-{half}"
        killed = in_child(lambda root=root, stop=stop, half=half: run(root, commit, stop, half))
        result = in_child(lambda root=root: check_and_rerun(root, commit))
        print(json.dumps({"stop": stop, "half": half, "killed": killed is None, **result}), flush=True)
        shutil.rmtree(root)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
