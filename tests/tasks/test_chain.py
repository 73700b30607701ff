"""The whole chain on a real crawl: each record has one outcome; one recipe gives one manifest however it runs.

The part of the mini-crawl taken here is one WARC file of each of its two crawls.
"""

from __future__ import annotations

import functools
import gzip
import http.server
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from corpusmill.config import Recipe, load_recipe
from corpusmill.dataset import funnel
from corpusmill.engine.local import Engine
from corpusmill.errors import Unavailable
from corpusmill.models import model_path
from corpusmill.store import Output, open_store
from tasks.chain import Built, build

SMALL = ["pack.vocab_size=2048", "pack.seq_len=256", "pack.heldout_one_in=10", "source.crawl.max_files=1"]


@pytest.fixture(scope="session")
def crawl(data_dir: Path) -> Path:
    model_path("lid.176.ftz")  # NotFound with the command that fetches it
    return data_dir / "mini-crawl"


def recipe_for(root: Path | str, data_dir: Path, *more: str) -> Recipe:
    return load_recipe(
        "crawl", [*SMALL, f"source.crawl.root={root}", f"decontaminate.root={data_dir / 'benchmarks'}", *more]
    )


def run_build(recipe: Recipe, store_uri: str | Path, workers: int = 2) -> Built:
    with Engine(workers) as engine:
        return build(recipe, open_store(store_uri, create=True), lambda stage, fn, units: engine.map(fn, units))


@pytest.fixture(scope="session")
def built(crawl: Path, data_dir: Path, tmp_path_factory) -> tuple[Built, Path]:
    store = tmp_path_factory.mktemp("chain") / "store"
    return run_build(recipe_for(crawl, data_dir), store), store


def outputs(store, manifest, kind: str) -> list[tuple[str, Output]]:
    rows = store.table(manifest.table("lineage")).to_pylist()
    names = ("name", "digest", "content", "size", "rows")
    return [(r["locator"], Output(*(r[n] for n in names))) for r in rows if r["kind"] == kind]


def test_a_build_with_nothing_to_do_starts_no_worker(built, crawl, data_dir):
    result, store = built

    def refuse(stage, fn, units):
        raise AssertionError(f"{len(units)} units of {stage} were run")

    again = build(recipe_for(crawl, data_dir), open_store(store), refuse)
    assert (again.digest, again.units_run) == (result.digest, {})
    assert again.units_reused == result.units_run


def test_funnel_adds_up_in_documents_bytes_and_words(built):
    rows = built[0].manifest.funnel
    assert funnel.faults(rows) == []
    assert [row.stage for row in rows] == [
        "acquire", "extract", "language", "filter", "decontaminate", "exact", "near", "pack",
    ]  # fmt: skip
    reasons = {reason for row in rows for reason in row.reasons}
    assert {"redirect", "revisit", "not_html", "other_language", "contaminated", "near_duplicate"} <= reasons
    assert rows[-1].docs_out > 50


def test_every_response_and_revisit_of_the_crawl_has_exactly_one_outcome(built, crawl):
    result, store_path = built
    store = open_store(store_path)
    tables = {place: store.table(o).to_pylist() for place, o in outputs(store, result.manifest, "records")}
    ours = {(place, row["offset"]): row for place, rows in tables.items() for row in rows}
    assert len(ours) == sum(map(len, tables.values()))
    taken = {place.removeprefix("crawl/") for place in tables}
    with gzip.open(crawl / "truth.jsonl.gz", "rt", encoding="utf-8") as lines:
        truth = [row for row in map(json.loads, lines) if row["warc"] in taken]
    assert {(f"crawl/{row['warc']}", row["offset"]) for row in truth} == set(ours)
    drops = Counter()
    for row in truth:
        if row["expect"] == "drop" and row["reason"] in ("http_status", "redirect", "revisit"):
            drops[row["reason"], ours[f"crawl/{row['warc']}", row["offset"]]["reason"]] += 1
    assert {reason for pair in drops for reason in pair} == {"http_status", "redirect", "revisit"}
    assert all(true == found for true, found in drops)


def test_every_duplicate_names_a_kept_document_verified_to_be_similar(built):
    result, store_path = built
    store = open_store(store_path)
    rows = [row for _, o in outputs(store, result.manifest, "decisions") for row in store.table(o).to_pylist()]
    final = {row["doc_id"]: row for row in rows}  # lineage lists the stages in order: the last decision counts
    near = [row for row in final.values() if row["reason"] == "near_duplicate"]
    assert near
    for row in near:
        assert final[row["keeper"]]["reason"] is None
        assert row["similarity"] >= 0.8
    for row in (row for row in final.values() if row["reason"] == "exact_duplicate"):
        assert final[row["cluster"]]["reason"] is None


def test_documents_with_planted_benchmark_items_are_named(built, crawl):
    result, _ = built
    proof = result.manifest.proofs.decontaminate
    assert proof["planted"] == proof["found"] > 0
    assert proof["false_hits"] == 0


def test_second_build_runs_no_unit_and_publishes_nothing_new(built, crawl, data_dir):
    result, store_path = built
    again = run_build(recipe_for(crawl, data_dir), store_path, workers=1)
    assert again.digest == result.digest
    assert again.units_run == {}
    assert len(open_store(store_path).history("web-en")) == 1


@pytest.fixture
def served(crawl: Path) -> Iterator[str]:
    handler = functools.partial(QuietHandler, directory=str(crawl))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None: ...


def test_one_worker_http_and_s3_give_the_manifest_of_two_workers_folder_and_folder(built, served, data_dir, s3_uri):
    result, _ = built
    assert run_build(recipe_for(served, data_dir), s3_uri, workers=1).digest == result.digest


def test_another_root_folder_gives_the_same_manifest(built, crawl, data_dir, tmp_path):
    result, store_path = built
    shutil.copytree(crawl, tmp_path / "moved")
    again = run_build(recipe_for(tmp_path / "moved", data_dir), store_path)
    assert (again.digest, again.units_run) == (result.digest, {})


def is_there(group: int) -> bool:
    """Whether a process group has a member."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_killed_builds_resume_to_the_same_manifest(built, crawl, data_dir, tmp_path):
    result, _ = built
    mill = Path(sys.executable).parent / "mill"
    command = [str(mill), "build", "crawl", "--store", str(tmp_path / "store"), "--create-store"]
    sets = [*SMALL, f"source.crawl.root={crawl}", f"decontaminate.root={data_dir / 'benchmarks'}"]
    command += [part for value in sets for part in ("--set", value)] + ["--json", "--workers", "2"]
    made = tmp_path / "store" / "receipts"
    most = len(open_store(built[1]).list("receipts/")) * 3 // 4
    for reached in sorted(random.Random(5).sample(range(most), 3)):
        with (tmp_path / "log").open("w") as log:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log, start_new_session=True)
        while sum(1 for _ in made.glob("*/*")) < reached:
            assert process.poll() is None, (tmp_path / "log").read_text()
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        while is_there(process.pid):  # the workers notice that their parent is gone
            time.sleep(0.05)
    assert not open_store(tmp_path / "store").names()
    finished = subprocess.run(command, capture_output=True, text=True, timeout=500, check=True)
    assert json.loads(finished.stdout)["manifest"] == result.digest


def test_moving_a_bound_runs_filter_and_what_follows_but_neither_extract_nor_judge(built, crawl, data_dir, tmp_path):
    result, store_path = built
    rules = Path("rules/gopher.toml").read_text(encoding="utf-8")
    assert "min = 50" in rules
    (tmp_path / "stricter.toml").write_text(rules.replace("min = 50", "min = 200"), encoding="utf-8")
    moved = run_build(recipe_for(crawl, data_dir, f"filter.rules={tmp_path / 'stricter.toml'}"), store_path, workers=1)
    assert moved.digest != result.digest
    assert not {"extract", "judge", "tokenizer", "source"} & set(moved.units_run)
    assert {"filter", "decontaminate", "exact", "near", "decide", "pack"} <= set(moved.units_run)


def test_listed_file_that_is_missing_publishes_nothing_and_keeps_the_others(crawl, data_dir, tmp_path):
    shutil.copytree(crawl, tmp_path / "crawl")
    recipe = recipe_for(tmp_path / "crawl", data_dir)
    lost = next((tmp_path / "crawl").glob("crawl-data/CC-MAIN-2026-34/segments/*/warc/*.warc.gz"))
    for file in (tmp_path / "crawl").glob("crawl-data/CC-MAIN-2026-34/segments/*/warc/*.warc.gz"):
        file.unlink()
    with pytest.raises(Unavailable, match=r"\.warc\.gz"):
        run_build(recipe, tmp_path / "store", workers=1)
    store = open_store(tmp_path / "store")
    assert store.names() == []
    assert len(store.list("receipts/extract/")) == 1
    assert not lost.exists()


def test_copies_of_the_files_are_the_same_files_and_other_bytes_are_read_and_named(built, crawl, data_dir, tmp_path):
    shutil.copytree(crawl, tmp_path / "crawl")
    shutil.copytree(built[1], tmp_path / "store")
    copied = run_build(recipe_for(tmp_path / "crawl", data_dir), tmp_path / "store", workers=1)
    assert (copied.digest, copied.units_run, copied.changed) == (built[0].digest, {}, ())
    locator = built[0].manifest.inputs[0].locator
    file = tmp_path / "crawl" / locator
    file.write_bytes(file.read_bytes() + file.read_bytes()[:2000])
    other = run_build(recipe_for(tmp_path / "crawl", data_dir), tmp_path / "store", workers=1)
    assert other.digest != copied.digest
    assert other.units_run["extract"] == 1
    assert other.changed == (f"crawl/{locator}",)
