"""mill quality and mill perplexity: from files to a model to scores, and what is typed wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mill import cli
from tests.tasks.models.test_perplexity import TOY
from tests.tasks.models.test_quality import GOOD, OTHER


@pytest.fixture(autouse=True)
def _away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CORPUSMILL_STORE", raising=False)
    for name, rows in (("good", GOOD), ("other", OTHER)):
        Path(f"{name}.jsonl").write_text("".join(json.dumps({"body": text}) + "\n" for text in rows))
    Path("toy.txt").write_text(TOY)


def run(capsys: pytest.CaptureFixture, *argv: str, code: int = 0) -> str:
    assert cli.run(argv) == code
    out = capsys.readouterr()
    return out.err if code else out.out


TRAIN = ("quality", "train", "--field", "body", "--dim", "4", "--bucket", "1000", "--positive", "good.jsonl")


def test_a_classifier_from_files_to_scores(capsys) -> None:
    shown = run(capsys, *TRAIN, "--negative", "other.jsonl", "-o", "m.bin", "--name", "toy")
    assert shown.splitlines()[0].split() == ["threshold", "kept", "precision", "recall", "false", "positives"]
    assert "95 % intervals" in shown
    card = json.loads(Path("m.bin.json").read_text())
    assert card["name"] == "toy"
    assert card["model"]["sha256"] in shown
    run(capsys, *TRAIN, "--negative", "other.jsonl", "--output", "n.bin", "--name", "toy", "--json")
    assert Path("n.bin").read_bytes() == Path("m.bin").read_bytes()
    scored = json.loads(run(capsys, "quality", "score", "m.bin", "good.jsonl", "toy.txt", "--field", "body", "--json"))
    assert [(row["source"], row["number"]) for row in scored["texts"][-2:]] == [("good.jsonl", 120), ("toy.txt", 1)]
    assert sum(row["score_e6"] > 500_000 for row in scored["texts"][:120]) > 110
    text = run(capsys, "quality", "score", "m.bin", "good.jsonl", "--field", "body")
    assert text.splitlines()[1].split() == ["good.jsonl", "1", f"{scored['texts'][0]['score_e6'] / 1e6:.6f}"]


def test_several_sources_of_one_side(capsys) -> None:
    Path("more.jsonl").write_text(json.dumps({"body": "one more text"}) + "\n")
    negatives = ("--negative", "other.jsonl", "--negative", "more.jsonl")
    card = json.loads(run(capsys, *TRAIN, *negatives, "-o", "m.bin", "--json"))
    assert card["data"]["negative"]["documents"] == len(OTHER) + 1


def test_the_default_pruning_fits_every_order(capsys) -> None:
    for order in ("2", "3"):
        run(capsys, "perplexity", "train", "--text", "toy.txt", "-o", f"m{order}", "--order", order)
    found = [json.loads(Path(f"m{order}.json").read_text())["training"]["prune"] for order in "23"]
    assert found == [[0, 0], [0, 0, 1]]


def test_a_language_model_from_files_to_scores(capsys) -> None:
    shown = run(capsys, "perplexity", "train", "--text", "toy.txt", "-o", "m.mill", "--order", "3", "--arpa", "m.arpa")
    assert shown.splitlines()[0].split() == ["words", "n-grams", "seen", "D1", "D2", "D3+"]
    assert "given" in shown  # the text is small: discounts are not its own
    assert "30 words of 6 lines, 10 distinct" in shown
    run(capsys, "perplexity", "convert", "m.arpa", "-o", "again.mill")
    assert Path("again.mill").read_bytes() == Path("m.mill").read_bytes()
    Path("odd.txt").write_text("water wind the the zebra")
    Path("none.txt").write_text("\n")
    files = ("toy.txt", "odd.txt", "none.txt")
    rows = json.loads(run(capsys, "perplexity", "score", "m.mill", *files, "--json"))["texts"]
    toy, odd, none = (row["bits_e4"] for row in rows)
    assert toy < odd
    assert none is None
    assert [line.split() for line in run(capsys, "perplexity", "score", "m.mill", *files).splitlines()][1:] == [
        ["toy.txt", "1", f"{toy / 1e4:.6f}"],
        ["odd.txt", "1", f"{odd / 1e4:.6f}"],
        ["none.txt", "1"],
    ]


@pytest.mark.parametrize(
    ("argv", "code", "says"),
    [
        ((*TRAIN, "--negative", "absent", "-o", "m.bin"), 3, "absent: no such file or folder"),
        ((*TRAIN, "--negative", "good.jsonl", "-o", "m.bin"), 2, "too few positive texts"),
        ((*TRAIN, "--negative", "other.jsonl", "-o", "m.txt"), 2, "--output m.txt"),
        ((*TRAIN, "--negative", "other.jsonl", "-o", "good.jsonl"), 2, "--output good.jsonl"),
        ((*TRAIN, "--negative", "toy.txt", "-o", "m.bin", "--epoch", "0"), 2, "epoch = 0"),
        (("quality", "train", "--positive", "good.jsonl", "--negative", "other.jsonl", "-o", "m.bin"), 2, "--field"),
        (("quality", "score", "toy.txt", "good.jsonl"), 2, "toy.txt: not a model of this kind"),
        (("quality", "score", "absent.bin", "good.jsonl"), 3, "absent.bin: no such file"),
        (("perplexity", "train", "--text", "toy.txt", "-o", "m", "--prune", "0,x"), 2, "--prune 0,x"),
        (("perplexity", "train", "--text", "toy.txt", "-o", "m", "--prune", "1"), 2, "prune 1"),
        (("perplexity", "train", "--text", "toy.txt", "-o", "m", "--order", "9"), 2, "order 9"),
        (("perplexity", "train", "--text", "toy.txt", "-o", "toy.txt"), 5, "toy.txt exists"),
        (("perplexity", "score", "toy.txt", "toy.txt"), 2, "not a model of this kind"),
        (("perplexity", "convert", "toy.txt", "-o", "m"), 2, "not a complete ARPA file"),
    ],
)
def test_what_is_typed_wrong_has_one_message_and_leaves_nothing(capsys, argv, code: int, says: str) -> None:
    before = sorted(path.name for path in Path().iterdir())
    assert says in run(capsys, *argv, code=code)
    assert sorted(path.name for path in Path().iterdir()) == before
