"""The benchmark of quality and perplexity: one JSON document, every floor measured, our side alone without peers."""

from __future__ import annotations

import json
import tomllib

import pytest

from bench.common import FLOORS
from bench.judges import __main__ as judges
from tests.tasks.models.test_quality import GOOD, OTHER


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        judges, "texts", lambda most: [text for pair in zip(GOOD, OTHER, strict=False) for text in pair]
    )
    monkeypatch.setattr(judges, "_labelled", lambda: (GOOD, OTHER))


def test_both_judges_are_measured_in_one_json_document(capsys) -> None:
    judges.main(["--quick", "--json", "--repeats", "1"])  # so few texts prove no floor
    document = json.loads(capsys.readouterr().out)
    assert document["subject"] == "judges"
    assert document["documents"] == len(GOOD)
    assert {"quality", "perplexity", "fasttext alone"} <= set(document["speed"])
    assert all(each["ms_a_document"] > 0 for each in document["speed"].values())
    assert document["held_out"]["precision"]["value"] > 0.9
    assert document["median_bits_e4"] > 0
    measured = {ratio["name"] for ratio in document["ratios"]}
    assert measured <= {"quality_overhead", "same_bytes", "lmplz_agrees", "kenlm"}
    assert [ratio["value"] for ratio in document["ratios"] if ratio["name"] == "same_bytes"] == [1.0]
    assert set(tomllib.loads(FLOORS.read_text())["judges"]) <= measured | {"lmplz_agrees"}


def test_without_peers_there_is_no_ratio(capsys, monkeypatch) -> None:
    monkeypatch.setattr(judges.shutil, "which", lambda name: None)
    assert judges.main(["--quick", "--repeats", "1", "--no-peer"]) == 0
    out = capsys.readouterr().out
    assert "perplexity" in out
    assert "fasttext alone" not in out
    assert "ratio" not in out
