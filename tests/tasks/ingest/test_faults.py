"""The sample crawl ingested over HTTP through a server that fails often, crawl by crawl: the digests of a calm day."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from corpusmill.config import Recipe, parse_recipe
from corpusmill.store import Store, open_store
from tasks.acquire.fetch import http
from tasks.acquire.fetch.rate_limit import Traffic, watched
from tasks.acquire.fetch.retries import Retries
from tasks.ingest import Ingested
from tests.faultproxy import FaultProxy, Faults, faulty
from tests.tasks.ingest.crawls import run

OLD, NEW = "CC-MAIN-2026-30", "CC-MAIN-2026-34"
STATED = Faults(busy=0.3, cut=0.05, flip=0.01, reset=0.02, seed=12)


def recipe(root: str | Path, max_files: int | None) -> Recipe:
    source = {"kind": "common-crawl", "root": str(root), "crawls": ["newest"], "max_files": max_files}
    return parse_recipe({"name": "mini", "source": {"crawl": source}, "extract": {"mode": "plain"}}, "test")


def archives(server: FaultProxy, before: Counter[str]) -> set[str]:
    """Archives that were asked for since."""
    return {path.split("/")[2] for path in server.requests - before if path.endswith(".warc.gz")}


@pytest.mark.parametrize("max_files", [1, pytest.param(None, marks=pytest.mark.long)])
def test_crawls_come_in_through_faults_as_on_a_calm_day(
    data_dir: Path, tmp_path: Path, max_files: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = Retries(attempts=25, sleep=lambda seconds: None)
    for name in ("get", "download", "length"):
        with_retries = lambda *args, real=getattr(http, name), **keys: real(*args, quick, **keys)  # noqa: E731
        monkeypatch.setattr(http, name, with_retries)
    tree = tmp_path / "tree"
    shutil.copytree(data_dir / "mini-crawl", tree)
    (tree / "collinfo.json").chmod(0o644)
    told: list[dict[str, Any]] = json.loads((tree / "collinfo.json").read_text())

    def announced(*crawls: str) -> None:
        (tree / "collinfo.json").unlink()
        (tree / "collinfo.json").write_text(json.dumps([entry for entry in told if entry["id"] in crawls]))

    def ingested(root: str | Path, store: Store) -> tuple[Ingested, Traffic]:
        with watched() as traffic:
            return run(recipe(root, max_files), store), traffic

    tree.chmod(0o755)
    calm, stormy = (open_store(tmp_path / name, create=True) for name in ("calm", "stormy"))
    asked = Traffic()
    with faulty(tree, STATED) as server:
        for crawls, new in (((OLD,), OLD), ((OLD,), None), ((OLD, NEW), NEW), ((OLD, NEW), None)):
            announced(*crawls)
            want, _ = ingested(tree, calm)
            before = Counter(server.requests)
            done, traffic = ingested(server.url, stormy)
            asked.add(traffic)
            assert done.digest == want.digest
            assert [manifest.snapshot.id for _, manifest in done.published] == ([new] if new else [])
            assert archives(server, before) == ({new} if new else set())
        assert asked.requests == server.requests.total()
        assert asked.retries == server.faults["busy"] + server.faults["cut"] + server.faults["reset"]
        assert asked.damaged == server.faults["flip"]
        assert server.faults["busy"] > 0
    print(json.dumps({"asked": asked.as_dict(), "faults": server.faults}))
