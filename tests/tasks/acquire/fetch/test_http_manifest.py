"""A crawl ingested through faults: the same manifest, digest for digest, and nothing twice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from corpusmill.config import Recipe, parse_recipe
from corpusmill.store import open_store
from tasks.acquire.fetch import http, rate_limit
from tasks.acquire.fetch.rate_limit import Traffic, watched
from tasks.acquire.fetch.retries import Retries
from tasks.chain import Built, build
from tests.faultproxy import Faults, faulty

CRAWL = "CC-MAIN-2026-34"
STATED = Faults(busy=0.3, cut=0.05, flip=0.01, reset=0.02, seed=7)
HARD = Faults(busy=0.3, cut=0.25, flip=0.25, reset=0.1, seed=3)


def recipe(root: str) -> Recipe:
    return parse_recipe(
        {
            "name": "faults",
            "source": {"crawl": {"kind": "common-crawl", "root": root, "crawls": ["newest"], "max_files": 2}},
            "extract": {"mode": "plain"},
            "pack": {"seq_len": 256, "vocab_size": 512},
        },
        "faults",
    )


def built(root: str, store: Path) -> tuple[Built, Traffic]:
    with watched() as traffic:
        done = build(recipe(root), open_store(store, create=True), lambda stage, fn, units: [fn(one) for one in units])
    return done, traffic


@pytest.fixture(scope="module")
def plain(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """From the folder itself."""
    return built(str(data_dir / "mini-crawl"), tmp_path_factory.mktemp("plain"))[0]


@pytest.mark.parametrize(("faults", "checksums"), [(STATED, True), (HARD, True), (HARD, False)])
def test_faults_do_not_change_the_manifest(
    plain: Built, data_dir: Path, tmp_path: Path, faults: Faults, checksums: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = Retries(attempts=25, sleep=lambda seconds: None)
    for name in ("get", "download", "length"):
        with_retries = lambda *args, real=getattr(http, name), **keys: real(*args, quick, **keys)  # noqa: E731
        monkeypatch.setattr(http, name, with_retries)
    with faulty(data_dir / "mini-crawl", faults, checksums=checksums) as server:
        done, traffic = built(server.url, tmp_path / "store")
        assert done.digest == plain.digest
        assert done.units_run == plain.units_run
        assert traffic.retries == server.faults["busy"] + server.faults["cut"] + server.faults["reset"]
        assert traffic.damaged == server.faults["flip"]
        if faults is HARD:
            assert min(server.faults[kind] for kind in ("busy", "cut", "flip")) > 0
        server.plan, before = Faults(), Counter(server.requests)
        again, _ = built(server.url, tmp_path / "store")
        assert again.digest == plain.digest
        assert sum(again.units_run.values()) == 0
        asked = server.requests - before
        assert not [path for path in asked if path.endswith(".warc.gz")]


def test_what_a_run_cost_is_counted_by_the_thread_that_asked(data_dir: Path) -> None:
    assert Traffic().as_dict() == {
        "requests": 0,
        "retries": 0,
        "damaged": 0,
        "received_bytes": 0,
        "waited_s": 0.0,
    }
    rate_limit.count(requests=1)  # nobody watches
