"""Workers that hang, crash or eat memory cost one document; everything else comes back in order."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import deque
from pathlib import Path

import pytest

from corpusmill.errors import MillError
from corpusmill.extractor.modes import Extraction, extract
from corpusmill.extractor.sandbox import sandbox as module
from corpusmill.extractor.sandbox.frames import ReplyBuffer, RequestBuffer, reply, request
from corpusmill.extractor.sandbox.sandbox import Limits, Sandbox, shared_sandbox
from corpusmill.extractor.sandbox.worker import FAULTS_VARIABLE


def page(i: int) -> str:
    body = f"Page {i} has a paragraph that is long enough to be taken for content by anyone. " * 12
    return f"<html><body><article><p>{body}</p></article></body></html>"


def fault(name: str) -> str:
    return f"<html><body><p>corpusmill-fault:{name} </p></body></html>"


@pytest.fixture
def with_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FAULTS_VARIABLE, "1")


def texts(found: list[Extraction]) -> list[str | None]:
    return [one.text and one.text.split(" has")[0] for one in found]


def test_results_are_those_of_the_library_in_order() -> None:
    pages = [page(i) for i in range(300)] + ["", "<div>" * 5000, "<p>ü 漢字 \U0001f600</p>"]
    with Sandbox("auto") as sandbox:
        assert sandbox.extract(pages) == [extract(one, "auto") for one in pages]
        assert sandbox.extract([]) == []
        assert sandbox.restarts == 0


BAD = [("hang", "timeout"), ("spin", "timeout"), ("crash", "crashed"), ("memory", "crashed")]


@pytest.mark.parametrize(("name", "reason"), BAD)
@pytest.mark.usefixtures("with_faults")
def test_a_bad_page_costs_itself_only(name: str, reason: str) -> None:
    pages = [page(i) for i in range(40)]
    with Sandbox("resiliparse", Limits(timeout_s=0.3, memory_mb=256)) as sandbox:
        sandbox.extract(pages[:1])
        found = sandbox.extract([*pages[:20], fault(name), *pages[20:]])
        assert found.pop(20).reason == reason
        assert texts(found) == [f"Page {i}" for i in range(40)]
        assert sandbox.restarts == 2  # it was tried once more, alone


@pytest.mark.parametrize("bad", [0, 4, 8])
@pytest.mark.usefixtures("with_faults")
def test_whichever_page_kills_the_worker_the_others_finish(bad: int) -> None:
    pages = [page(i) for i in range(9)]
    pages[bad] = fault("crash")
    with Sandbox("resiliparse") as sandbox:
        found = sandbox.extract(pages)
    assert [one.reason for one in found] == ["crashed" if i == bad else None for i in range(9)]


@pytest.mark.usefixtures("with_faults")
def test_a_hanging_page_is_given_up_in_time() -> None:
    with Sandbox("resiliparse", Limits(timeout_s=1)) as sandbox:
        sandbox.extract([page(0)])
        assert sandbox._worker is not None
        begin = time.monotonic()
        with pytest.raises(module._Failed, match="timeout"):
            sandbox._worker.run([fault("hang")], deque([0]), [None], 1)
        assert 1 <= time.monotonic() - begin < 3


def test_workers_are_replaced_by_count() -> None:
    with Sandbox("resiliparse", Limits(recycle_documents=10)) as sandbox:
        pids = set()
        for _ in range(3):
            assert texts(sandbox.extract([page(i) for i in range(11)])) == [f"Page {i}" for i in range(11)]
            assert sandbox._worker is not None
            pids.add(sandbox._worker._process.pid)
        assert len(pids) == 3


def test_workers_are_replaced_by_memory() -> None:
    with Sandbox("resiliparse", Limits(recycle_rss_mb=1)) as sandbox:
        assert texts(sandbox.extract([page(i) for i in range(70)])) == [f"Page {i}" for i in range(70)]
        assert sandbox._worker is not None
        assert sandbox._worker.spent()


def test_memory_of_a_worker_is_bounded_on_real_hostile_input(data_dir: Path) -> None:
    import gzip

    table = gzip.decompress((data_dir / "hostile" / "B21-wide-table.html.gz").read_bytes()).decode("utf-8")
    with Sandbox("auto", Limits(timeout_s=60)) as sandbox:
        found = sandbox.extract([table, page(1)])
        assert "B21-END" in (found[0].text or "")
        assert texts(found)[1] == "Page 1"
        assert sandbox._worker is not None
        assert module._rss_mb(sandbox._worker._process.pid) < 600


@pytest.mark.skipif(sys.platform != "linux", reason="what a process has loaded is read from /proc")
@pytest.mark.parametrize(("timeout_s", "at_once"), [(30.0, False), (5.0, True)])
def test_auto_loads_trafilatura_with_the_first_page_that_asks_it_unless_there_is_little_time(
    timeout_s: float, at_once: bool, data_dir: Path
) -> None:
    import gzip

    def loaded(sandbox: Sandbox) -> bool:
        return "lxml" in Path(f"/proc/{sandbox._ready()._process.pid}/maps").read_text()

    held = data_dir / "extraction" / "trafilatura-eval" / "html" / "b2d74039ee92a4dc.html.gz"
    asks = gzip.decompress(held.read_bytes()).decode("utf-8", "replace")
    with Sandbox("auto", Limits(timeout_s=timeout_s)) as sandbox:
        assert loaded(sandbox) == at_once
        assert len(sandbox.extract([asks])[0].text or "") > 500
        assert loaded(sandbox)
        assert sandbox.restarts == 0


def test_a_worker_killed_between_batches_is_replaced_unnoticed() -> None:
    with Sandbox("resiliparse") as sandbox:
        sandbox.extract([page(0)])
        assert sandbox._worker is not None
        sandbox._worker._process.kill()
        sandbox._worker._process.wait()
        assert texts(sandbox.extract([page(1)])) == ["Page 1"]
        assert sandbox.restarts == 0


@pytest.mark.skipif(sys.platform != "linux", reason="a parent's death is signalled on Linux only")
def test_workers_die_with_their_parent() -> None:
    code = (
        "import os; from corpusmill.extractor.sandbox.sandbox import Sandbox\n"
        "s = Sandbox('resiliparse'); s.extract(['<p>x</p>']); print(s._worker._process.pid, flush=True); os._exit(9)"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(module.__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, env=env, check=False, timeout=120)
    worker = int(done.stdout)
    for _ in range(100):
        try:
            state = Path(f"/proc/{worker}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
        except OSError:
            return
        if state == "Z":
            return
        time.sleep(0.1)
    pytest.fail(f"worker {worker} lives on")


def test_a_worker_that_cannot_start_says_why() -> None:
    with pytest.raises(MillError, match="unknown mode"):
        Sandbox("no-such-mode").extract([page(0)])  # type: ignore[arg-type]


def test_one_sandbox_serves_a_process() -> None:
    try:
        assert shared_sandbox("resiliparse") is shared_sandbox("resiliparse", Limits())
        assert shared_sandbox("plain") is not shared_sandbox("resiliparse")
    finally:
        module._close_shared()


def test_replies_arrive_whole_whatever_the_pieces() -> None:
    sent = [Extraction("ü" * 9, "plain"), Extraction(None, reason="too_deep"), Extraction("x", "trafilatura")]
    data = b"".join(reply(i, one) for i, one in enumerate(sent))
    buffer = ReplyBuffer()
    got = [one for i in range(len(data)) for one in buffer.feed(data[i : i + 1])]
    assert [(one.number, one.extraction) for one in got] == list(enumerate(sent))


def test_requests_arrive_whole_whatever_the_pieces() -> None:
    sent = [(7, "ü".encode() * 9), (8, b""), (9, b"<p>x")]
    data = b"".join(piece for number, page in sent for piece in request(number, page))
    for width in (1, 5, len(data)):
        buffer = RequestBuffer()
        assert [one for i in range(0, len(data), width) for one in buffer.feed(data[i : i + width])] == sent
