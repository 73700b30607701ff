"""`mill` on a small crawl, from build to export: every record has one outcome, a second build does nothing again."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from corpusmill.dataset import funnel
from corpusmill.store import open_store
from corpusmill.typed_json import read
from mill import cli


@pytest.fixture(scope="module")
def crawl(small_crawl: Path) -> Path:
    return small_crawl


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The working directory of the commands, where the store of the first build is."""
    return tmp_path_factory.mktemp("here")


@pytest.fixture(autouse=True)
def _inside(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here)
    monkeypatch.delenv("CORPUSMILL_STORE", raising=False)


def demo(crawl: Path, *more: str) -> list[str]:
    """The command line that builds the demo's recipe on this crawl."""
    places = (f"source.crawl.root={crawl}", f"decontaminate.root={crawl / 'benchmarks'}")
    return ["build", "demo", "--json", *(word for place in places for word in ("--set", place)), *more]


def answer(capsys: pytest.CaptureFixture, *argv: str) -> Any:
    """The one document that a command prints with --json."""
    code = cli.run([*argv, *([] if "--json" in argv else ["--json"])])
    out, err = capsys.readouterr()
    assert code == 0, err
    assert out.count("\n") == 1
    return json.loads(out)


@pytest.fixture(scope="module")
def built(crawl: Path, here: Path) -> dict[str, Any]:
    """What the first build answered; it made the default store."""
    import contextlib
    import io
    import os

    before, out = Path.cwd(), io.StringIO()
    os.chdir(here)
    try:
        with contextlib.redirect_stdout(out):
            assert cli.run(demo(crawl, "--workers", "2")) == 0
    finally:
        os.chdir(before)
    return dict(json.loads(out.getvalue()))


def test_build_answers_with_one_document(built, here):
    assert {"name", "manifest", "funnel", "units_run", "units_reused"} <= set(built)
    assert built["name"] == "demo"
    assert built["units_run"] > 40
    assert built["units_reused"] == 0
    assert funnel.faults(read(tuple[funnel.FunnelRow, ...], built["funnel"])) == []
    assert (here / ".corpusmill" / "store" / "STORE.json").is_file()
    assert built["partitions"]["crawl"]["tokens"] > 10_000


def test_a_second_build_runs_no_unit_and_gives_the_same_dataset(built, crawl, capsys):
    again = answer(capsys, *demo(crawl, "--workers", "1"))
    assert again["manifest"] == built["manifest"]
    assert again["units_run"] == 0
    assert again["units_reused"] == built["units_run"]


def test_moving_a_bound_extracts_and_judges_nothing_again(built, crawl, here, capsys):
    rules = (Path(__file__).parents[2] / "rules" / "gopher.toml").read_text(encoding="utf-8")
    (here / "mine.toml").write_text(rules.replace("min = 50", "min = 60"), encoding="utf-8")
    assert (here / "mine.toml").read_text() != rules
    other = answer(capsys, *demo(crawl, "--set", "filter.rules=mine.toml"))
    assert other["manifest"] != built["manifest"]
    store = open_store(".corpusmill/store")
    stages = {name.split("/")[1] for name in store.list("receipts/")}
    assert {"extract", "judge", "filter"} <= stages
    assert len(store.list("receipts/extract/")) == 6
    assert len(store.list("receipts/judge/")) == 18
    assert len(store.list("receipts/filter/")) == 12


def test_every_record_has_one_outcome_and_the_expected_one(built, crawl, here, capsys):
    done = answer(capsys, "export", built["manifest"], "--all", "-o", "out")
    fates = {}
    for line in (here / done["file"]).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        assert (row["file"], row["offset"]) not in fates
        fates[row["file"], row["offset"]] = row
    truth = [json.loads(line) for line in (crawl / "truth.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {(t["file"], t["offset"]) for t in truth} == set(fates)
    ends = defaultdict(set)
    for t in truth:
        fate = fates[t["file"], t["offset"]]
        ends[t["kind"]].add((fate["stage"], fate["reason"]))
        if t["kind"] == "foreign":
            assert fate["lang"] == t["language"]
    assert {kind: ends[kind] for kind in ("redirect", "missing", "revisit", "noindex", "not html", "empty", "cut")} == {
        "redirect": {("acquire", "redirect")},
        "missing": {("acquire", "http_status")},
        "revisit": {("acquire", "revisit")},
        "noindex": {("acquire", "robots_meta")},
        "not html": {("acquire", "not_html")},
        "empty": {("acquire", "empty_body")},
        "cut": {("acquire", "truncated")},
    }
    assert ends["foreign"] == {("language", "other_language")}
    assert ("exact", "exact_duplicate") in ends["mirror"] | ends["same page again"]
    assert ("decontaminate", "contaminated") in ends["planted"]
    assert (None, None) in ends["real"]
    assert (None, None) not in ends["planted"] | ends["spam"]


def test_counts_of_the_export_are_those_of_the_funnel(built, here, capsys):
    done = answer(capsys, "export", built["manifest"], "--all", "-o", "counted")
    rows = [json.loads(line) for line in (here / done["file"]).read_text(encoding="utf-8").splitlines()]
    for row in built["funnel"]:
        for reason, counts in row["reasons"].items():
            assert counts["docs"] == sum((r["stage"], r["reason"]) == (row["stage"], reason) for r in rows)
    assert built["funnel"][0]["docs_in"] == len(rows)
    assert built["funnel"][-1]["docs_out"] == sum(r["stage"] is None for r in rows)


def test_the_dataset_is_sound_and_its_lineage_names_every_file(built, capsys):
    checked = answer(capsys, "verify", built["manifest"])["checked"]
    assert checked["documents"] == built["funnel"][1]["docs_out"]
    assert checked["tokens"] == sum(part["tokens"] for part in built["partitions"].values())
    chain = answer(capsys, "lineage", built["manifest"])
    assert len(chain["inputs"]) == 6
    assert all(len(source["sha256"]) == 64 for source in chain["inputs"])


def test_rejects_show_the_bound_that_decided(built, capsys):
    found = answer(capsys, "rejects", built["manifest"], "--reason", "too_few_words", "-n", "1")["rejects"]
    assert len(found) == 1
    assert found[0]["value"] < found[0]["bound"] == 50


def test_a_store_elsewhere_is_made_only_when_asked(crawl, tmp_path, capsys):
    there = tmp_path / "there"
    assert cli.run(demo(crawl, "--store", str(there))) == 3
    assert not there.exists()
    assert "--create-store" in capsys.readouterr().err


def test_a_listed_file_that_is_missing_ends_with_7_and_publishes_nothing(built, crawl, tmp_path, capsys):
    broken = tmp_path / "crawl"
    shutil.copytree(crawl, broken)
    lost = sorted(broken.rglob("warc/*.warc.gz"))[1]
    lost.unlink()
    store = tmp_path / "store"
    code = cli.run(demo(broken, "--store", str(store), "--create-store", "--workers", "2"))
    out, err = capsys.readouterr()
    assert (code, out) == (7, "")
    assert lost.name in err
    assert "Traceback" not in err
    assert open_store(store).names() == []
    shutil.copy(next(path for path in crawl.rglob(lost.name)), lost)
    again = answer(capsys, *demo(broken, "--store", str(store), "--workers", "1"))
    assert again["manifest"] == built["manifest"]
    assert again["units_reused"] > 0


@pytest.mark.parametrize("setting", ["filter.rules=nope", "language.model=nope", "source.crawl.root=nope"])
def test_what_the_recipe_names_and_is_not_there_is_said_at_once(crawl, tmp_path, capsys, setting):
    code = cli.run([*demo(crawl, "--store", str(tmp_path / "store"), "--create-store"), "--set", setting])
    out, err = capsys.readouterr()
    assert (code, out) == (3, "")
    assert "nope" in err
    assert "more of" not in err
    assert open_store(tmp_path / "store").list("receipts/") == []


def test_a_full_disk_ends_with_7_and_the_rest_is_done_when_there_is_space(built, crawl, tmp_path, capsys):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a tmpfs needs root")
    try:
        command = demo(crawl, "--store", str(disk / "store"), "--workers", "1")
        code = cli.run([*command, "--create-store"])
        out, err = capsys.readouterr()
        assert (code, out) == (7, "")
        assert "No space left" in err
        assert "Traceback" not in err
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
        again = answer(capsys, *command)
        assert again["manifest"] == built["manifest"]
        assert answer(capsys, "verify", "demo", "--store", str(disk / "store"))["ok"]
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)  # memory-mapped tables are still open
