"""Scores of a classifier: bounded, null without text, never an exception; thresholds, fractions and buckets exact."""

from __future__ import annotations

import json
import math
from pathlib import Path

import fasttext
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.kernels.quality import classifier
from corpusmill.kernels.quality.calibration import Share, calibration, wilson
from tests.corpusmill.kernels.texts import texts

GOOD = "The miller wrote a careful account of the wheel and how the water turned it"
BAD = "buy cheap pills now click here free free offer winner"


def column(*values: str | None) -> pa.LargeStringArray:
    return pa.array(list(values), pa.large_string())


def model_at(path: Path, positive: str = classifier.POSITIVE, card: dict | None = None) -> Path:
    lines = path.with_suffix(".txt")
    rows = [(positive, GOOD), ("__label__other", BAD)] * 40
    lines.write_text("".join(f"{label} {text} {i}\n" for i, (label, text) in enumerate(rows)))
    fasttext.train_supervised(str(lines), dim=4, epoch=20, lr=0.5, thread=1, verbose=0).save_model(str(path))
    if card is not None:
        classifier.card_path(path).write_text(json.dumps(card))
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> classifier.Classifier:
    return classifier.Classifier(model_at(tmp_path_factory.mktemp("quality") / "m.bin"))


def test_good_text_scores_high_and_other_text_low(model) -> None:
    scores = model.scores_e6(column(GOOD, BAD))
    assert scores.type == pa.int32()
    good, bad = scores.to_pylist()
    assert good > 900_000
    assert bad < 100_000


def test_without_text_there_is_no_score(model) -> None:
    assert model.scores_e6(column("", " \n\t", "\x00", "</s>", None, "x")).is_null().to_pylist() == [True] * 5 + [False]
    assert model.scores_e6(column()).to_pylist() == []


@settings(max_examples=80)
@given(st.lists(st.one_of(texts(), st.text(st.characters(exclude_categories=("Cs",)))), max_size=4))
def test_any_text_has_a_score_from_0_to_1_and_the_same_again(model, values: list[str]) -> None:
    array = pa.array(["before", *values], pa.large_string()).slice(1)
    scores = model.scores_e6(array).to_pylist()
    assert scores == [model.scores_e6(column(value)).to_pylist()[0] for value in values]
    for value, score in zip(values, scores, strict=True):
        assert (score is None) == (not classifier.normalised(value))
        assert score is None or 0 <= score <= 1_000_000


@given(texts(), st.integers(1, 50))
def test_the_line_that_is_judged_has_nothing_that_fasttext_would_trip_over(text: str, head: int) -> None:
    line = classifier.normalised(text, head)
    assert len(line) <= head
    assert not {"\n", "\r", "\t", "\x00", "\u2028"} & set(line)
    assert "  " not in line
    assert "</s>" not in line


def test_marks_of_fasttext_in_a_text_neither_hide_what_follows_nor_name_a_label(model) -> None:
    assert classifier.normalised("a</s>b\n\n__label__positive  c\x00d") == "a b positive c d"
    plain, marked = model.scores_e6(column(f"x {BAD}", f"x </s> {BAD}")).to_pylist()
    assert plain == marked


def test_only_the_first_characters_are_judged(tmp_path) -> None:
    card = {"labels": {"positive": classifier.POSITIVE}, "text": {"head_chars": len(GOOD)}}
    short = classifier.Classifier(model_at(tmp_path / "m.bin", card=card))
    alone, followed = short.scores_e6(column(GOOD, f"{GOOD} {BAD * 50}")).to_pylist()
    assert alone == followed
    assert (
        classifier.Classifier(model_at(tmp_path / "n.bin")).scores_e6(column(f"{GOOD} {BAD * 50}")).to_pylist()[0]
        < alone
    )


@pytest.mark.parametrize("label", classifier.POSITIVE_LABELS)
def test_models_of_others_are_asked_for_their_positive_label(tmp_path, label: str) -> None:
    found = classifier.Classifier(model_at(tmp_path / "m.bin", label))
    assert found.label == label
    assert found.scores_e6(column(GOOD)).to_pylist()[0] > 900_000


def test_a_model_without_the_label_or_with_a_false_card_is_refused(tmp_path) -> None:
    with pytest.raises(ValueError, match=r"no positive label; expected __label__positive or .*__label__nice"):
        classifier.Classifier(model_at(tmp_path / "a.bin", "__label__nice"))
    card = {"labels": {"positive": "__label__none"}, "text": {"head_chars": 10}}
    with pytest.raises(ValueError, match="expected __label__none"):
        classifier.Classifier(model_at(tmp_path / "b.bin", card=card))
    (tmp_path / "c.bin").write_bytes(b"no model")
    with pytest.raises(ValueError, match=r"c\.bin"):
        classifier.Classifier(tmp_path / "c.bin")


@pytest.mark.parametrize(
    "card",
    [
        "{",
        "[]",
        "{}",
        '{"labels":{"positive":1},"text":{"head_chars":5}}',
        '{"labels":{"positive":"x"},"text":{"head_chars":0}}',
    ],
)
def test_a_damaged_card_is_an_error_and_not_ignored(tmp_path, card: str) -> None:
    path = model_at(tmp_path / "m.bin")
    classifier.card_path(path).write_text(card)
    with pytest.raises(ValueError, match=r"m\.bin\.json"):
        classifier.Classifier(path)


def test_the_identity_of_a_judge_is_its_model_and_how_it_is_asked(tmp_path) -> None:
    path = model_at(tmp_path / "m.bin")
    plain = classifier.identity(path)
    cards = [{"labels": {"positive": classifier.POSITIVE}, "text": {"head_chars": n}} for n in (5000, 6000)]
    found = []
    for card in cards:
        classifier.card_path(path).write_text(json.dumps(card))
        found.append(classifier.identity(path))
    classifier.card_path(path).write_text(json.dumps({**cards[0], "name": "other words, same questions"}))
    assert classifier.identity(path) == found[0]
    path.write_bytes(path.read_bytes() + b"x")
    assert len({plain, *found, classifier.identity(path)}) == 4


SCORES = st.lists(
    st.one_of(st.none(), st.sampled_from([0, 1, 5, 500_000, 999_999, 1_000_000])), min_size=1, max_size=30
)


@settings(max_examples=30)
@given(SCORES, st.floats(0.001, 1.0))
def test_a_top_fraction_is_the_least_set_of_equal_scores_that_is_enough(scores, fraction: float) -> None:
    fraction = round(fraction, 6)
    array = pa.array(scores, pa.int32())
    threshold = classifier.threshold_of_fraction(array, fraction)
    wanted = math.ceil(round(len(scores) * fraction, 9))
    kept = [s for s in scores if s is not None and s >= threshold]
    known = [s for s in scores if s is not None]
    if len(known) >= wanted:
        assert len(kept) >= wanted
        assert sum(s > threshold for s in known) < wanted
        assert threshold in known
    else:
        assert (threshold, len(kept)) == (0, len(known))
    half = len(scores) // 2
    counts = classifier.score_counts(array[:half]) + classifier.score_counts(array[half:])
    assert classifier.threshold_of_counts(counts, len(scores), fraction) == threshold
    assert classifier.threshold_of_fraction(pa.chunked_array([array[:half], array[half:]]), fraction) == threshold


@pytest.mark.parametrize("fraction", [0, -0.1, 1.01])
def test_a_fraction_out_of_range_is_refused(fraction: float) -> None:
    with pytest.raises(ValueError, match="fraction"):
        classifier.threshold_of_fraction(pa.array([1], pa.int32()), fraction)
    with pytest.raises(ValueError, match="no documents"):
        classifier.threshold_of_fraction(pa.array([], pa.int32()), 0.5)
    with pytest.raises(ValueError, match="scores must be"):
        classifier.score_counts(pa.array([1_000_001], pa.int32()))


@given(SCORES, st.sets(st.sampled_from([0, 1, 2, 500_000, 500_001, 1_000_000])))
def test_the_bucket_is_the_number_of_bounds_reached(scores, bounds) -> None:
    ascending = sorted(bounds)
    found = classifier.buckets(pa.array([7, *scores], pa.int32()).slice(1), ascending)
    assert found.type == pa.int32()
    assert found.to_pylist() == [None if s is None else sum(s >= b for b in ascending) for s in scores]


def test_bounds_must_ascend() -> None:
    with pytest.raises(ValueError, match="ascend"):
        classifier.buckets(pa.array([1], pa.int32()), [5, 5])


def test_wilsons_interval_of_known_counts() -> None:
    assert wilson(5, 10) == (0.2366, 0.7634)
    assert wilson(0, 10) == (0.0, 0.2775)
    assert wilson(10, 10) == (0.7225, 1.0)
    assert wilson(81, 263) == (0.2553, 0.3662)  # Newcombe 1998, table I, method 3
    assert wilson(15, 148) == (0.0624, 0.1605)
    assert wilson(0, 0) == (None, None)
    assert Share(0, 0).to_json() == {"value": None, "low": None, "high": None, "hits": 0, "of": 0}


@given(st.lists(st.integers(0, 20), max_size=30), st.lists(st.integers(0, 20), max_size=30))
def test_the_table_counts_what_a_threshold_keeps(good: list[int], other: list[int]) -> None:
    rows = calibration(np.array(good, np.int32), np.array(other, np.int32), [20, 0, 7])
    assert [row.threshold_e6 for row in rows] == [0, 7, 20]
    for row in rows:
        hits, false = sum(s >= row.threshold_e6 for s in good), sum(s >= row.threshold_e6 for s in other)
        assert row.kept == Share(hits + false, len(good) + len(other))
        assert row.precision == Share(hits, hits + false)
        assert row.recall == Share(hits, len(good))
        assert row.false_positives == Share(false, len(other))
        for part in (row.kept, row.precision, row.recall):
            low, high = wilson(part.hits, part.total)
            assert part.total == 0 or low - 1e-4 <= part.hits / part.total <= high + 1e-4
