"""Benchmarks: floors decide the exit code, the JSON form, a quick run of our side; the peer where it is installed."""

from __future__ import annotations

import gzip
import json
import tomllib
from pathlib import Path

import pytest

from bench.chain import __main__ as chain
from bench.common import FLOORS, Ratio, interleaved, judged, report
from bench.crawls import _responses, crawl_at, only, sample
from bench.peer import VENV, Peer
from bench.peers import stopwatch
from bench.peers.stopwatch import Stopwatch, cpu_seconds
from corpusmill.errors import MillError, NotFound
from corpusmill.models import model_path


@pytest.fixture(scope="module")
def demo(demo_crawl) -> Path:
    model_path("lid.176.ftz")  # NotFound with the command that fetches it
    return demo_crawl


def settings(root: Path) -> list[str]:
    return ["--recipe", "demo", "--set", f"decontaminate.root={root / 'benchmarks'}", str(root)]


def test_a_ratio_below_its_floor_ends_with_exit_code_4(tmp_path, capsys):
    floors = tmp_path / "floors.toml"
    floors.write_text("[toy.fast]\nfloor = 3.0\ngoal = 10.0\n")
    good = judged("toy", {"fast": 3.0, "unbounded": 0.1}, floors)
    assert good == [Ratio("fast", 3.0, 3.0, 10.0), Ratio("unbounded", 0.1)]
    assert report({}, "", good, as_json=False) == 0
    assert report({}, "", judged("toy", {"fast": 2.99}, floors), as_json=False) == 4
    assert "below its floor" in capsys.readouterr().out


def test_json_is_one_document_that_holds_the_verdicts(capsys):
    code = report({"subject": "toy"}, "not shown", [Ratio("fast", 2.0, 3.0, 4.0)], as_json=True)
    assert code == 4
    assert json.loads(capsys.readouterr().out) == {
        "subject": "toy",
        "ratios": [{"name": "fast", "value": 2.0, "floor": 3.0, "goal": 4.0, "ok": False}],
    }


def test_every_floor_of_the_chain_is_measured():
    arm = chain.Arm(1.0, 1, 1, 1, 1)
    arms = dict.fromkeys((chain.OURS, chain.OURS_AUTO, chain.PEER, chain.EVEN), arm)
    measured = {ratio.name for wanted in (False, True) for ratio in chain._ratios(arms, wanted) if ratio.floor}
    assert measured == set(tomllib.loads(FLOORS.read_text())["chain"])


def test_arms_take_turns():
    order: list[str] = []
    results = interleaved({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 3, lambda text: None)
    assert order == ["a", "b"] * 3
    assert {name: len(runs) for name, runs in results.items()} == {"a": 3, "b": 3}


def test_time_goes_to_the_step_that_runs(monkeypatch):
    spent = 0.0
    monkeypatch.setattr(stopwatch, "cpu_seconds", lambda: spent)
    watch = Stopwatch()

    def spin(seconds: float) -> None:
        nonlocal spent
        spent += seconds

    def outer():
        for _ in range(2):
            spin(0.25)
            yield None

    def inner() -> None:
        for _ in watch.generator("outer", outer)():
            spin(1.5)

    watch.function("inner", inner)()
    assert watch.spent == {"outer": 0.5, "inner": 3.0}


def test_cpu_seconds_go_on_while_work_is_done():
    began, done = cpu_seconds(), 0
    while cpu_seconds() < began + 0.05:
        done += 1
    assert done


def test_a_sample_is_whole_responses_of_the_first_file_of_each_snapshot(demo, tmp_path):
    crawl = crawl_at(demo, "demo")
    small = sample(crawl, tmp_path, 10)
    assert len(small.files) == 2
    for file in small.files:
        with gzip.open(tmp_path / file) as opened:
            text = opened.read()
        assert text.count(b"WARC-Type: response") == 5
        assert text.count(b"WARC-Type:") == 5


def test_a_crawl_of_chosen_records_holds_these_alone(demo, tmp_path):
    crawl = crawl_at(demo, "demo")
    file = crawl.files[0]
    found = list(_responses(demo / file))
    few = only(crawl, tmp_path, {file: {found[3][0], found[7][0]}})
    assert few.files == (file,)
    assert (tmp_path / file).read_bytes() == found[3][1] + found[7][1]


def test_quick_measures_every_stage_of_our_side(demo, capsys, monkeypatch):
    monkeypatch.setattr(chain, "QUICK_RESPONSES", 24)
    monkeypatch.setattr(chain, "WARM_RESPONSES", 16)  # of fewer none may be kept
    assert chain.main(["--quick", "--json", "--no-peer", "--wanted", "--repeats", "1", *settings(demo)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["records"] == 24
    assert sum(stage["share"] for stage in document["stages"]) == pytest.approx(1)
    took = {stage["name"]: stage["cpu_s"] for stage in document["stages"]}
    assert took.keys() == chain.stages.STEPS.keys()
    assert all(took[name] > 0 for name in ("read", "extract", "documents", "language", "measures", "digests", "pack"))
    stored = {stage["name"]: stage["bytes_stored"] for stage in document["stages"]}
    assert all(stored[name] > 0 for name in ("documents", "language", "measures", "digests", "decide", "tokenizer"))
    assert set(document["paired"]) == {chain.OURS, chain.OURS_AUTO}
    assert document["ratios"] == []
    assert 0 < document["paired"][chain.OURS]["documents"] <= document["pages"]
    assert all(0 < arm["extraction_share"] < 1 for arm in document["paired"].values())


def test_without_the_peers_the_message_says_how_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setattr("bench.peer.VENV", tmp_path)
    with pytest.raises(NotFound, match="make bench-setup"):
        Peer("datatrove_chain", tmp_path / "log")


@pytest.mark.long
@pytest.mark.skipif(not (VENV / "bin" / "python").is_file(), reason="no .bench-venv: make bench-setup")
def test_the_pair_with_datatrove_runs_on_the_same_pages(demo, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(chain, "QUICK_RESPONSES", 24)
    monkeypatch.setattr(chain, "WARM_RESPONSES", 8)
    chain.main(["--quick", "--json", "--repeats", "1", *settings(demo)])  # so few pages prove no floor
    paired = json.loads(capsys.readouterr().out)["paired"]
    assert paired[chain.PEER]["documents"] > 15
    assert paired[chain.PEER]["steps"].keys() >= {"WarcReader", "Trafilatura", "MinhashDedupSignature"}
    with Peer("datatrove_chain", tmp_path / "log") as peer, pytest.raises(MillError, match="KeyError"):
        peer.ask({})
