"""SIGKILL in the middle of `mill ingest`: the same command goes on, nothing is fetched twice but what was at hand."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from corpusmill.store import open_store
from tests.tasks.acquire.server import serve
from tests.tasks.ingest.crawls import OLD, add_crawl, locator, recipe, run

FILES, WORKERS = 6, 2
WAIT_S = 400


def mill(tmp_path: Path, address: str) -> subprocess.Popen[bytes]:
    """`mill ingest` in a process group of its own."""
    file = tmp_path / "web.toml"
    file.write_text(f'name = "web"\n[source.crawl]\nkind = "common-crawl"\nroot = "{address}"\ncrawls = ["newest"]\n')
    command = ["-m", "mill.cli", "ingest", str(file), "--store", str(tmp_path / "store"), "--create-store"]
    return subprocess.Popen(
        [sys.executable, "-c", "import sys; from mill.cli import main; main(sys.argv[1:])", *command[2:],
         "--workers", str(WORKERS), "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True, env={**os.environ},
    )  # fmt: skip


def receipts(tmp_path: Path) -> int:
    """Units that are finished."""
    return len(list((tmp_path / "store/receipts/extract").glob("*"))) if (tmp_path / "store").exists() else 0


def kill(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL to it and to its workers at once, as a machine that goes away does."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.parametrize("finished", [0, 3])
def test_a_killed_ingestion_goes_on_where_it_was(tmp_path: Path, finished: int) -> None:
    add_crawl(tmp_path / "tree", OLD, files=FILES)
    reached = threading.Event()
    go_on = threading.Event()
    want = run(recipe(tmp_path / "tree"), open_store(tmp_path / "calm", create=True))

    def hold(number: int, path: str) -> None:
        """Requests for archives wait once that number of units are finished, so that the kill meets them at work."""
        if path.endswith(".warc.gz") and not go_on.is_set() and receipts(tmp_path) >= finished:
            reached.set()
            go_on.wait(WAIT_S)

    with serve(tmp_path / "tree") as server:
        wanted = Counter(locator(OLD, number) for number in range(FILES))
        deadline = time.monotonic() + WAIT_S
        server.fault = lambda number, path: hold(number, path) if server.requests[path] else None  # not of sizes
        killed = mill(tmp_path, server.url)
        try:
            assert reached.wait(deadline - time.monotonic())
        finally:
            kill(killed)
        go_on.set()
        done = receipts(tmp_path)
        assert finished <= done < FILES
        assert open_store(tmp_path / "store").history("web-documents") == []

        again = mill(tmp_path, server.url)
        out, _ = again.communicate(timeout=WAIT_S)
        told = json.loads(out)
        fetched = Counter({path: n for path, n in server.requests.items() if path.endswith(".warc.gz")})
        assert set(fetched) == set(wanted)
        assert sum((fetched - wanted).values()) <= WORKERS
        assert max(fetched.values()) <= 2
        assert (told["units_run"], told["units_reused"]) == (FILES - done, done)
        assert told["manifest"] == want.digest
        assert server.sizes == wanted  # asked before the kill, and remembered

        before = Counter(server.requests)
        last = mill(tmp_path, server.url)
        out, _ = last.communicate(timeout=WAIT_S)
        assert json.loads(out)["published"] == []
        assert server.requests - before == {"collinfo.json": 1}
