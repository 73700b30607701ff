"""What `mill plan` says, and that it writes nothing."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from corpusmill.config import parse_recipe
from corpusmill.errors import Unavailable
from corpusmill.store import open_store
from mill import cli
from tasks import acquire
from tasks.acquire import units
from tasks.batches import TASK_RUNS, Batches
from tasks.queries.plan import SAMPLED, build_runs, ingest_runs, plan
from tasks.units import Job
from tests.tasks.acquire.server import serve
from tests.tasks.ingest.crawls import FILES, NEW, OLD, add_crawl, locator, recipe, run


@pytest.fixture
def root(tmp_path: Path) -> Path:
    add_crawl(tmp_path / "tree", OLD)
    return tmp_path / "tree"


def state(folder: Path) -> dict[str, tuple[int, float]]:
    """Every file below a folder, with size and time."""
    return {str(p): (p.stat().st_size, p.stat().st_mtime) for p in sorted(folder.rglob("*")) if p.is_file()}


def sizes(root: Path, crawl: str) -> int:
    return sum((root / locator(crawl, number)).stat().st_size for number in range(FILES))


def test_a_plan_counts_what_is_done_and_what_is_new(root: Path, tmp_path: Path) -> None:
    store = open_store(tmp_path / "store", create=True)
    with serve(root) as server:
        before = plan(recipe(server.url), store).to_json()
        assert (before["files"], before["done"]) == (FILES, 0)
        assert before["bytes"] == before["bytes_to_read"] == sizes(root, OLD)
        assert before["requests"] == 1 + 1 + 2 * FILES  # collinfo.json, warc.paths.gz, the files' sizes, the files
        assert before["task_runs"] == {
            "build-dataset": 3 + 1 + 1 + 1 + 3 + 1 + 1 + 1,
            "ingest-crawl": 3,
            "most": TASK_RUNS,
        }
        assert [part["new"] for part in before["sources"]] == [True]

        run(recipe(server.url), store)
        add_crawl(root, NEW)
        after = plan(recipe(server.url, OLD, "newest"), store).to_json()
        assert [(p["snapshot"], p["files"], p["done"], p["new"]) for p in after["sources"]] == [
            (OLD, FILES, FILES, False),
            (NEW, FILES, 0, True),
        ]
        assert after["bytes_to_read"] == sizes(root, NEW)
        assert after["requests"] == 1 + 2 + 2 * FILES
        assert not after["requests_at_least"]
        assert after["core_hours"]["extract"] <= before["core_hours"]["extract"] + 0.001


def test_a_plan_reads_no_archive_and_writes_nothing(root: Path, tmp_path: Path) -> None:
    store = open_store(tmp_path / "store", create=True)
    run(recipe(root), store)
    add_crawl(root, NEW)
    before = state(tmp_path)
    with serve(root) as server:
        assert plan(recipe(server.url), store).to_json()["files"] == FILES
        assert not [path for path in server.requests if path.endswith(".warc.gz")]
        assert server.sizes == {locator(NEW, number): 1 for number in range(FILES)}
    assert state(tmp_path) == before


def test_a_plan_needs_no_store_and_makes_none(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "web.toml"
    file.write_text(f'name = "web"\n[source.crawl]\nkind = "common-crawl"\nroot = "{root}"\ncrawls = ["newest"]\n')
    before = state(tmp_path)
    assert cli.run(("plan", str(file), "--json")) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (document["files"], document["done"], document["requests"]) == (FILES, 0, 0)
    assert cli.run(("plan", str(file))) == 0
    text = capsys.readouterr().out
    assert "task runs   build-dataset 12, ingest-crawl 3 (of 300 at most)" in text
    assert state(tmp_path) == before
    assert not (tmp_path / ".corpusmill").exists()


def test_a_crawl_of_90_000_files_takes_at_most_300_task_runs_and_a_dozen_questions(tmp_path: Path) -> None:
    count, size = 90_000, 1000
    add_crawl(tmp_path, OLD, files=0)
    names = [locator(OLD, number) for number in range(count)]
    listed = gzip.compress("\n".join(names).encode(), 1)
    (tmp_path / f"crawl-data/{OLD}/warc.paths.gz").write_bytes(listed)
    for i in range(SAMPLED):  # what is not asked for need not be there
        file = tmp_path / names[count * i // SAMPLED]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"w" * size)
    with serve(tmp_path) as server:
        planned = plan(recipe(server.url), None).to_json()
        assert server.requests.total() + server.sizes.total() <= SAMPLED + 4
    assert (planned["files"], planned["bytes"]) == (count, count * size)
    assert planned["sources"][0]["sampled"]
    assert planned["requests"] == 2 * count + 2
    assert 0 < planned["task_runs"]["ingest-crawl"] <= TASK_RUNS
    assert 0 < planned["task_runs"]["build-dataset"] <= TASK_RUNS


def test_ten_thousand_files_weigh_little(tmp_path: Path) -> None:
    """B79: what the process that submits holds of them, from the plan to the batches."""
    add_crawl(tmp_path, OLD, files=0)
    listed = "\n".join(locator(OLD, number) for number in range(10_000))
    (tmp_path / f"crawl-data/{OLD}/warc.paths.gz").write_bytes(gzip.compress(listed.encode(), 1))
    wanted = recipe(tmp_path, OLD)
    tracemalloc.start()
    try:
        cut = Batches().cut([Job("store", wanted, unit) for unit in acquire.plan(wanted)])
        held, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(map(len, cut)) == 10_000
    assert held < 10_000 * 1024
    assert most < 10_000 * 4096


def test_large_files_are_counted_by_their_blocks_before_and_after_they_are_asked_about(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(units, "BLOCK_BYTES", 1500)
    monkeypatch.setattr("tasks.queries.plan.BLOCK_BYTES", 1500)
    store = open_store(tmp_path / "store", create=True)
    each = [-(-(root / locator(OLD, number)).stat().st_size // 1500) for number in range(FILES)]
    assert min(each) > 1
    with serve(root) as server:
        before = plan(recipe(server.url), store).to_json()
        assert (before["files"], before["sources"][0]["to_ask"]) == (sum(each), FILES)
        assert before["bytes"] == sizes(root, OLD)
        assert before["requests_at_least"]
        assert before["task_runs"]["ingest-crawl"] == sum(each)
        server.requests.clear()
        server.sizes.clear()
        done = run(recipe(server.url), store)
        assert done.units_run == sum(each)
        blocks = before["requests"] - 2 - FILES
        assert server.sizes.total() == FILES
        assert server.requests.total() <= 2 + blocks  # two edges of such small blocks are seen at one look
        after = plan(recipe(server.url), store).to_json()
        assert (after["files"], after["done"], after["requests"]) == (sum(each), sum(each), 2)
        assert server.sizes.total() == FILES
        again = run(recipe(root), open_store(tmp_path / "other", create=True))
        assert again.digest == done.digest


@pytest.mark.parametrize("files", [1, 10, 128, 10_000, 90_000, 1_000_000])
def test_no_number_of_files_or_crawls_takes_more_than_300_task_runs(files: int) -> None:
    assert min(files, 128) <= build_runs(files, 1024) <= TASK_RUNS
    assert min(files, 128) <= ingest_runs([files] * 12) <= TASK_RUNS


def test_a_listed_file_that_is_missing_is_said_before_anything_starts(root: Path) -> None:
    (root / locator(OLD, 1)).unlink()
    with pytest.raises(Unavailable, match="is missing"):
        plan(recipe(root), None)


def test_the_command_says_what_came_in_and_that_nothing_else_did(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    file = tmp_path / "web.toml"
    file.write_text(f'name = "web"\n[source.crawl]\nkind = "common-crawl"\nroot = "{root}"\ncrawls = ["newest"]\n')
    command = ("ingest", str(file), "--store", str(tmp_path / "store"), "--workers", "1")
    assert cli.run(command) == 3  # no store is made unasked
    assert cli.run((*command, "--create-store", "--json")) == 0
    done = json.loads(capsys.readouterr().out)
    ((added),) = done["published"]
    assert (added["source"], added["snapshot"], added["files"], added["manifest"]) == (
        "crawl",
        OLD,
        FILES,
        done["manifest"],
    )
    assert cli.run(command) == 0
    assert capsys.readouterr().out == f"nothing new\nweb-documents@{done['manifest']}\n"


def test_of_pages_by_index_the_hours_are_unknown_and_the_requests_at_least(tmp_path: Path) -> None:
    add_crawl(tmp_path, OLD)
    index = f"cc-index/collections/{OLD}/indexes/cdx-00000.gz"
    (tmp_path / index).parent.mkdir(parents=True)
    (tmp_path / index).write_bytes(gzip.compress(b""))
    (tmp_path / f"crawl-data/{OLD}/cc-index.paths.gz").write_bytes(gzip.compress(f"{index}\n".encode()))
    source = {"kind": "common-crawl", "root": str(tmp_path), "crawls": [OLD], "select": {"statuses": [200]}}
    planned = plan(parse_recipe({"name": "web", "source": {"crawl": source}}, "test"), None).to_json()
    assert (planned["files"], planned["requests_at_least"]) == (1, True)
    assert set(planned["core_hours"].values()) == {None}


def test_of_a_folder_the_files_that_no_manifest_names_are_to_be_ingested(root: Path, tmp_path: Path) -> None:
    source = {"kind": "files", "root": str(root), "pattern": "crawl-data/**/*.warc.gz", "snapshot": "ours"}
    wanted = parse_recipe({"name": "web", "source": {"folder": source}}, "test")
    store = open_store(tmp_path / "store", create=True)
    assert plan(wanted, store).task_runs["ingest-crawl"] == FILES
    run(wanted, store)
    assert plan(wanted, store).task_runs["ingest-crawl"] == 0
    add_crawl(root, NEW, files=2)
    assert plan(wanted, store).task_runs["ingest-crawl"] == 2
