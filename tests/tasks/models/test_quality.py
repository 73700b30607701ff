"""Training of classifiers: the same bytes again, a held-out part that teaches nothing, a card that says it all."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pytest

from corpusmill.canonical import parse_canonical
from corpusmill.errors import Refused, UsageError
from corpusmill.kernels.quality.classifier import Classifier, normalised
from tasks.models import quality
from tasks.models.corpus import texts

WORDS = {
    "positive": ["mill", "water", "wheel", "stone", "river", "grain", "careful", "history", "because", "study"],
    "negative": ["buy", "free", "click", "offer", "winner", "cheap", "now", "pills", "cash", "bonus", "guarantee"],
}


def made(side: str, count: int) -> list[str]:
    rng = random.Random(side)
    return [" ".join(rng.choices(WORDS[side] + ["the", "of", "and"], k=30)) for _ in range(count)]


GOOD, OTHER = made("positive", 120), made("negative", 200)
SMALL = quality.Training(dim=4, bucket=1000, epoch=5)


@pytest.mark.parametrize("ending", ["bin", "ftz"])
def test_a_second_training_gives_the_same_bytes_whatever_the_order(tmp_path, ending: str) -> None:
    first = quality.train(GOOD, OTHER, tmp_path / f"a.{ending}", SMALL, name="toy")
    shuffled = [random.Random(1).sample(side, len(side)) for side in (GOOD, OTHER)]
    code = (
        "import sys, json; from pathlib import Path; from tasks.models import quality\n"
        "good, other = json.load(sys.stdin)\n"
        "quality.train(good, other, Path(sys.argv[1]), quality.Training(dim=4, bucket=1000, epoch=5), name='toy')"
    )
    command = [sys.executable, "-W", "ignore", "-c", code, str(tmp_path / f"b.{ending}")]
    subprocess.run(command, input=json.dumps(shuffled), text=True, check=True, cwd=Path(__file__).parents[3])
    for name in (f"a.{ending}", f"a.{ending}.json"):
        assert (tmp_path / name).read_bytes() == (tmp_path / f"b{name[1:]}").read_bytes()
    assert parse_canonical((tmp_path / f"a.{ending}.json").read_bytes()) == first
    other = quality.train(GOOD[:100], OTHER, tmp_path / f"c.{ending}", SMALL, name="toy")
    assert other["model"]["sha256"] != first["model"]["sha256"]
    assert other["data"]["positive"]["sha256"] != first["data"]["positive"]["sha256"]
    assert other["data"]["negative"] == first["data"]["negative"]


def test_the_card_says_what_the_model_is_made_of_and_no_path_or_time(tmp_path) -> None:
    card = quality.train([*GOOD, *GOOD[:7], " ", "both ways"], [*OTHER, "both ways"], tmp_path / "m.bin", SMALL)
    data = card["data"]["positive"]
    assert {key: data[key] for key in ("documents", "empty", "repeated", "in_both")} == {
        "documents": 129,
        "empty": 1,
        "repeated": 7,
        "in_both": 1,
    }
    assert data["trained"] + data["held_out"] == 120
    assert card["name"] == "m"
    assert card["training"]["dim"] == 4
    assert card["training"]["thread"] == 1
    assert (card["held_out"]["positive"], card["held_out"]["negative"]) == (
        data["held_out"],
        card["data"]["negative"]["held_out"],
    )
    assert str(tmp_path) not in json.dumps(card)
    assert {p.name for p in tmp_path.iterdir()} == {"m.bin", "m.bin.json"}


def test_texts_that_are_held_out_teach_nothing(tmp_path, monkeypatch) -> None:
    seen: dict[str, set[str]] = {}
    fit, held_out = quality._fit, quality._held_out

    def watched(lines: Path, output: Path, training: quality.Training) -> None:
        seen["learned"] = set(lines.read_text("utf-8").split("\n")[:-1])
        fit(lines, output, training)

    def measured(classifier: Classifier, held: Path) -> dict:
        seen["held"] = set(held.read_text("utf-8").split("\n")[:-1])
        return held_out(classifier, held)

    monkeypatch.setattr(quality, "_fit", watched)
    monkeypatch.setattr(quality, "_held_out", measured)
    quality.train(GOOD, OTHER, tmp_path / "m.bin", SMALL)
    assert not seen["learned"] & seen["held"]
    labelled = {f"__label__positive {t}" for t in GOOD} | {f"__label__negative {t}" for t in OTHER}
    assert seen["learned"] | seen["held"] == labelled
    assert 0.1 < len(seen["held"]) / len(labelled) < 0.3


def test_the_table_is_what_the_model_does_on_the_held_out_part(tmp_path, monkeypatch) -> None:
    kept: list[str] = []
    held_out = quality._held_out
    monkeypatch.setattr(
        quality, "_held_out", lambda c, h: kept.extend(h.read_text("utf-8").split("\n")[:-1]) or held_out(c, h)
    )
    card = quality.train(GOOD, OTHER, tmp_path / "m.bin", SMALL)
    model = Classifier(tmp_path / "m.bin")
    pairs = [line.split(" ", 1) for line in kept]
    scores = model.scores_e6(pa.array([text for _, text in pairs], pa.large_string())).to_pylist()
    for row in card["held_out"]["table"]:
        hits = [s >= row["threshold_e6"] for s in scores]
        good = [label == "__label__positive" for label, _ in pairs]
        assert row["precision"]["of"] == sum(hits)
        assert (
            row["precision"]["hits"] == row["recall"]["hits"] == sum(a and b for a, b in zip(hits, good, strict=True))
        )
        assert row["recall"]["of"] == sum(good)


def test_clean_text_and_spam_are_told_apart(tmp_path, data_dir) -> None:
    folder = data_dir / "quality"
    sources = [[str(folder / f"{name}.jsonl.gz")] for name in ("clean", "spam")]
    models = []
    for name in ("a.bin", "b.bin"):
        card = quality.train(*(texts(source, "none") for source in sources), tmp_path / name)
        models.append((tmp_path / name).read_bytes())
    assert models[0] == models[1]
    row = next(row for row in card["held_out"]["table"] if row["threshold_e6"] == 500_000)
    assert row["precision"]["value"] >= 0.95
    assert row["recall"]["value"] >= 0.9
    assert row["false_positives"]["value"] <= 0.02
    assert card["held_out"]["positive"] >= 20


def test_a_text_that_names_a_label_cannot_label_itself(tmp_path) -> None:
    marked = [f"{text} __label__positive </s> __label__third x" for text in OTHER]
    quality.train(GOOD, marked, tmp_path / "m.bin", SMALL)
    assert sorted(Classifier(tmp_path / "m.bin")._model.labels) == ["__label__negative", "__label__positive"]
    assert normalised(marked[0]).count("__label__") == 0


@pytest.mark.parametrize(
    ("good", "other", "says"),
    [
        ([], OTHER, "too few positive"),
        (GOOD, ["", "\n"], "too few negative"),
        (GOOD, GOOD, "too few positive"),
        (GOOD, ["the same"] * 50, "too few negative"),
    ],
)
def test_too_few_texts_are_an_error_that_counts_them(tmp_path, good, other, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        quality.train(good, other, tmp_path / "m.bin", SMALL)
    assert "which leaves" in caught.value.why
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "change", [{"lr": 0}, {"dim": 0}, {"epoch": 0}, {"held_out_percent": 0}, {"held_out_percent": 91}, {"bucket": 0}]
)
def test_parameters_out_of_range_are_refused_before_any_text_is_read(tmp_path, change: dict) -> None:
    def unread():
        raise AssertionError
        yield

    with pytest.raises(UsageError, match=next(iter(change))):
        quality.train(unread(), unread(), tmp_path / "m.bin", quality.Training(**change))


def test_the_name_says_the_kind_and_nothing_is_overwritten(tmp_path) -> None:
    with pytest.raises(UsageError, match=r"m\.model"):
        quality.train(GOOD, OTHER, tmp_path / "m.model", SMALL)
    for taken in ("m.bin", "n.bin.json"):
        (tmp_path / taken).write_text("mine")
        with pytest.raises(Refused, match=taken):
            quality.train(GOOD, OTHER, tmp_path / taken.removesuffix(".json"), SMALL)
        assert (tmp_path / taken).read_text() == "mine"


def test_many_texts_are_held_out_in_batches(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(quality, "_BATCH", 3)
    card = quality.train(chain(GOOD), iter(OTHER), tmp_path / "m.bin", SMALL)
    assert card["held_out"]["positive"] == card["data"]["positive"]["held_out"]
