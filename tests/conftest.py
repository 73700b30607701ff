"""Fixtures of all tests: the test data, the S3 server, hypothesis without deadlines."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

from corpusmill.store import backend
from tasks.acquire.fetch import retries
from tests.servers import s3_bucket, s3_server, s3_uri
from tests.shared import demo_crawl, small_crawl

__all__ = ["data_dir", "demo_crawl", "s3_bucket", "s3_server", "s3_uri", "small_crawl"]

# A busy machine is no fault of the code; the examples are the same in every run.
settings.register_profile("mill", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("mill")


DATA = Path(os.environ.get("CORPUSMILL_TEST_DATA", Path(__file__).parents[2] / "shared" / "data"))
os.environ.setdefault("CORPUSMILL_BENCHMARKS", str((DATA / "benchmarks").absolute()))


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of test data: CORPUSMILL_TEST_DATA, else ../shared/data beside the repository."""
    folder = DATA
    if not folder.is_dir():
        pytest.skip(f"no test data at {folder}; set CORPUSMILL_TEST_DATA")
    return folder


class Brief(random.Random):
    """Draws waits of a fiftieth."""

    def uniform(self, a: float, b: float) -> float:
        return super().uniform(a, b) / 50


@pytest.fixture
def brief_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits between tries, of stores and of sources, take a fiftieth: what is asked and answered stays the same."""
    monkeypatch.setattr(backend, "_jitter", Brief())
    monkeypatch.setitem(vars(retries.DEFAULT), "sleep", lambda seconds: time.sleep(seconds / 50))


class Files(LoadFileScheduling):
    """A worker takes file after file; the tests of flows are one, since they share a platform."""

    def _split_scope(self, nodeid: str) -> str:
        return "tests/flows" if nodeid.startswith("tests/flows/") else super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Files | None:
    return Files(config, log) if config.getvalue("dist") == "loadfile" else None


FIRST = ("flows", "training", "tasks", "mill", "test_", "bench", "corpusmill/extractor", "corpusmill/store")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest comes first and small files last, so that all workers end together."""
    items.sort(key=lambda item: next((i for i, at in enumerate(FIRST) if item.nodeid.startswith(f"tests/{at}")), 99))
