"""A worker that serves for long does not grow, and faults among its pages cost only themselves."""

from __future__ import annotations

import random
import time
from collections import deque
from itertools import islice
from pathlib import Path

import pytest

from corpusmill.extractor.sandbox import sandbox as module
from corpusmill.extractor.sandbox.sandbox import Limits, Sandbox
from corpusmill.extractor.sandbox.worker import FAULTS_VARIABLE
from tests.corpusmill.extractor import samples

EXTRACTIONS, WARMED_UP = 20_000, 2_000
MAX_GROWTH = 1.3
BATCH = 250


def fault(name: str) -> str:
    return f"<html><body><p>corpusmill-fault:{name} </p></body></html>"


@pytest.mark.parametrize(
    ("name", "reason"), [("hang", "timeout"), ("spin", "timeout"), ("crash", "crashed"), ("memory", "crashed")]
)
def test_a_fault_is_ended_within_two_seconds_of_its_limit(
    name: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FAULTS_VARIABLE, "1")
    with Sandbox("fast", Limits(timeout_s=1, memory_mb=256)) as sandbox:
        assert sandbox.extract(["<p>ready</p>"])[0].text == "ready"
        assert sandbox._worker is not None
        begin = time.monotonic()
        with pytest.raises(module._Failed, match=reason):
            sandbox._worker.run([fault(name)], deque([0]), [None], 1)
        assert time.monotonic() - begin < 1 + 2


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("mode", ["fast", "auto"])
def test_memory_after_many_extractions_and_faults_among_them(
    data_dir: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FAULTS_VARIABLE, "1")
    pages = [html.decode() for _, html in islice(samples.pages(data_dir, per_archive=60), 1500)]
    order = random.Random(17)
    limits = Limits(timeout_s=5, memory_mb=1536, recycle_documents=2 * EXTRACTIONS, recycle_rss_mb=4096)
    memory: dict[int, float] = {}
    with Sandbox(mode, limits) as sandbox:  # type: ignore[arg-type]
        for done in range(BATCH, EXTRACTIONS + BATCH, BATCH):
            found = sandbox.extract([order.choice(pages) for _ in range(BATCH)])
            assert not {one.reason for one in found} & {"timeout", "crashed"}
            assert sandbox._worker is not None
            if done in (WARMED_UP, EXTRACTIONS):
                memory[done] = module._rss_mb(sandbox._worker._process.pid)
        assert sandbox.restarts == 0
        print(f"{mode}: MiB after each number of extractions {memory}")
        assert memory[EXTRACTIONS] <= MAX_GROWTH * memory[WARMED_UP]
        planted = [*pages[:50], fault("crash"), *pages[50:100], fault("memory"), *pages[100:150]]
        found = sandbox.extract(planted)
        assert [i for i, one in enumerate(found) if one.reason in ("crashed", "timeout")] == [50, 101]
        assert sandbox.restarts == 4
