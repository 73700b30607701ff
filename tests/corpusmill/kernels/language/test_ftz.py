"""Compressed fastText models read by us: the same labels and probabilities as fastText gives."""

from __future__ import annotations

from pathlib import Path

import fasttext
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.errors import NotFound
from corpusmill.kernels.language.ftz_model import Tables, check_whole, huffman, read_tables
from corpusmill.kernels.language.ftz_predict import best_labels
from corpusmill.kernels.language.identify import LanguageModel
from corpusmill.models import model_path
from tests.corpusmill.kernels.texts import column, texts

PIECES = [
    "the",
    "der",
    "и",
    "__label__en",
    "__label__",
    "</s",
    "<s>",
    "\0",
    "a",
    " ",
    "  ",
    "é",
    "水",
    "\U0001f642",
    "x" * 300,
]
LINES = ["good day how are you", "guten tag wie geht es", "bonjour comment allez vous", "добрый день как дела"]


@pytest.fixture(scope="module")
def path() -> Path:
    try:
        return model_path("lid.176.ftz")
    except NotFound as err:
        pytest.skip(str(err))


@pytest.fixture(scope="module")
def tables(path: Path) -> Tables:
    found = read_tables(path)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def original(path: Path) -> fasttext.FastText._FastText:
    return fasttext.load_model(str(path))


def predicted(tables: Tables, lines: list[str]) -> tuple[list[str], np.ndarray]:
    encoded = [line.encode() for line in lines]
    offsets = np.cumsum([0, *map(len, encoded)])
    numbers, probabilities = best_labels(tables, b"".join(encoded), offsets)
    return [tables.labels[number] for number in numbers], probabilities


def test_labels_are_those_of_the_model(tables: Tables, original) -> None:
    assert list(tables.labels) == original.labels
    assert tables.rows.shape[1] == original.get_dimension()


@settings(max_examples=200)
@given(st.lists(st.one_of(st.sampled_from(PIECES), texts(3)), max_size=12).map("".join))
def test_predictions_are_those_of_fasttext(tables: Tables, original, text: str) -> None:
    line = " ".join(text.split()).replace("</s>", " ")
    labels, probabilities = predicted(tables, [line, "", line])
    (expected,), (probability,) = original.predict(line)
    assert labels[0] == labels[2] == expected
    assert probabilities[0] == pytest.approx(probability, abs=5e-6)
    assert probabilities[0] == probabilities[2]


def trained(folder: Path, name: str, **options) -> fasttext.FastText._FastText:
    source = folder / "train.txt"
    labels = ("en", "de", "fr", "ru")
    lines = [f"__label__{label} {line}" for label, line in zip(labels, LINES, strict=True) for _ in range(60)]
    source.write_text("\n".join(lines), "utf-8")
    model = fasttext.train_supervised(
        str(source), thread=1, dim=10, minn=2, maxn=4, epoch=12, verbose=0, lr=0.5, bucket=5000, **options
    )
    model.save_model(str(folder / name))
    return model


@pytest.mark.parametrize("qnorm", [False, True])
def test_a_model_of_ones_own_is_read_too(tmp_path: Path, qnorm: bool) -> None:
    model = trained(tmp_path, "own.bin", loss="hs")
    model.quantize(str(tmp_path / "train.txt"), retrain=False, cutoff=400, qnorm=qnorm, thread=1, verbose=False)
    model.save_model(str(tmp_path / "own.ftz"))
    tables = read_tables(tmp_path / "own.ftz")
    assert tables is not None
    labels, probabilities = predicted(tables, LINES)
    for line, label, probability in zip(LINES, labels, probabilities, strict=True):
        (expected,), (given_,) = model.predict(line)
        assert (label, probability) == (expected, pytest.approx(given_, abs=5e-6))


@pytest.mark.parametrize("options", [{"loss": "softmax"}, {"loss": "hs", "wordNgrams": 2}, {"loss": "hs"}])
def test_other_models_go_through_fasttext(tmp_path: Path, options: dict) -> None:
    trained(tmp_path, "own.bin", **options)
    assert read_tables(tmp_path / "own.bin") is None
    found = LanguageModel(tmp_path / "own.bin").identify(column(LINES)).column("language").to_pylist()
    assert found == ["en", "de", "fr", "ru"]


def test_a_cut_file_is_no_table(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    for size in (0, 3, 100, 20_000, len(data) // 2, len(data) - 1):
        (tmp_path / "cut.ftz").write_bytes(data[:size])
        assert read_tables(tmp_path / "cut.ftz") is None


@pytest.mark.parametrize("options", [{}, {"loss": "hs"}, {"wordNgrams": 2, "dim": 5}])
def test_a_model_whose_end_is_missing_is_refused_wherever_it_is_cut(tmp_path: Path, options: dict) -> None:
    """The library loads some of them without a word, and never comes back from others."""
    import fasttext

    train, file, cut = tmp_path / "t.txt", tmp_path / "m.bin", tmp_path / "cut.bin"
    train.write_text("".join(f"__label__{i % 3} word{i % 7} and some text\n" for i in range(60)))
    made = fasttext.train_supervised(str(train), bucket=2000, epoch=1, minn=2, maxn=3, thread=1, verbose=0, **options)
    made.save_model(str(file))
    check_whole(file)
    whole = file.read_bytes()
    for size in (0, 3, 4, 9, 70, 100, len(whole) // 2, len(whole) - 1):
        cut.write_bytes(whole[:size])
        with pytest.raises(ValueError, match="fastText model"):
            check_whole(cut)


def test_a_compressed_model_is_whole_or_refused(path: Path, tmp_path: Path) -> None:
    check_whole(path)
    whole = path.read_bytes()
    for size in range(0, len(whole), len(whole) // 40):
        (tmp_path / "cut.ftz").write_bytes(whole[:size])
        with pytest.raises(ValueError, match="fastText model"):
            check_whole(tmp_path / "cut.ftz")


def test_the_tree_joins_the_rarest_first() -> None:
    left, right = huffman([40, 30, 20, 10])
    assert (left.tolist(), right.tolist()) == ([-1, -1, -1, -1, 3, 4, 0], [-1, -1, -1, -1, 2, 1, 5])
