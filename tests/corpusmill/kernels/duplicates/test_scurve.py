"""Bands and rows for a similarity: areas, half points, and what is recommended."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

from corpusmill.errors import UsageError
from corpusmill.kernels.duplicates.lsh import collision_probability
from corpusmill.kernels.duplicates.scurve import choices, recommended
from mill import cli


def test_areas_are_those_of_a_fine_sum():
    for choice in choices(0.8, 112):
        n = 20_000
        points = [(i + 0.5) / n for i in range(n)]
        chances = [collision_probability(p, choice.bands, choice.rows) for p in points]
        below = sum(c for p, c in zip(points, chances, strict=True) if p < 0.8) / n
        above = sum(1 - c for p, c in zip(points, chances, strict=True) if p >= 0.8) / n
        assert choice.false_positive == pytest.approx(below, abs=1e-4)
        assert choice.false_negative == pytest.approx(above, abs=1e-4)
        assert collision_probability(choice.half, choice.bands, choice.rows) == pytest.approx(0.5, abs=1e-9)


@pytest.mark.parametrize(
    ("threshold", "num_perm", "recall", "bands"),
    [(0.8, 112, 0.9, 14), (0.8, 112, 0.99, 28), (0.8, 256, 0.99, 32), (0.5, 128, 0.85, 32)],
)
def test_recommended_finds_enough_with_the_fewest_false_positives(threshold, num_perm, recall, bands):
    best = recommended(threshold, num_perm, recall)
    assert best.bands == bands
    assert best.at_threshold >= recall
    others = [c for c in choices(threshold, num_perm) if c.at_threshold >= recall]
    assert min(c.false_positive for c in others) == best.false_positive


@pytest.mark.parametrize(
    ("threshold", "num_perm", "recall"), [(0, 112, 0.9), (1.2, 112, 0.9), (0.8, 1, 0.9), (0.8, 112, 1)]
)
def test_settings_that_make_no_sense_are_refused(threshold, num_perm, recall):
    with pytest.raises(UsageError, match="expected"):
        recommended(threshold, num_perm, recall)


def test_recall_that_no_choice_reaches_says_what_to_do():
    with pytest.raises(UsageError, match="more permutations"):
        recommended(0.2, 4, 0.9999)


def test_command_draws_and_answers(tmp_path, capsys):
    picture = tmp_path / "curve.svg"
    assert cli.run(["lsh", "--threshold", "0.8", "--svg", str(picture)]) == 0
    shown = capsys.readouterr().out
    assert "deduplicate.bands = 14 (8 rows)" in shown
    assert "found with probability 0.924" in shown
    assert "+" in shown
    assert ET.fromstring(picture.read_text()).tag.endswith("svg")
    assert cli.run(["lsh", "--threshold", "0.7", "--recall", "0.99", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["recommended"]["bands"] * answer["recommended"]["rows"] == 112
    assert answer["recommended"]["at_threshold"] >= 0.99
    assert cli.run(["lsh", "--threshold", "2"]) == 2
    assert cli.run(["lsh", "--num-perm", "7"]) == 2
