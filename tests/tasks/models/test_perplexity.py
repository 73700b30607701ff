"""Training of language models: equal to plain Python, to lmplz's numbers, to itself; scores are back-off by hand."""

from __future__ import annotations

import gzip
import json
import math
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.canonical import parse_canonical
from corpusmill.errors import MillError, NotFound, Refused, UsageError
from corpusmill.kernels.perplexity import arpa, tokens
from corpusmill.kernels.perplexity import counts as perplexity_counts
from corpusmill.kernels.perplexity.score import Model
from tasks.models import perplexity, perplexity_estimate, perplexity_stream
from tests.corpusmill.kernels.perplexity import kneser_ney
from tests.corpusmill.kernels.texts import texts

TOY = """the mill turns
the mill stands still
the old mill turns in the wind
a mill turns in the water
the wind turns the old mill
a water stands still
"""

# lmplz of KenLM, source release 0.3.0: lmplz -o 3 --discount_fallback, with and without --prune 0 0 1, on TOY. (It
# counts the last n-gram of each length by its plain count in its counts of counts; in TOY that is its adjusted one.)
LMPLZ = {
    (0,): (
        [13, 22, 25],
        {
            "<unk>": (-1.2588767, 0),
            "<s>": (0, -0.5149098),
            "</s>": (-0.8356308, 0),
            "the": (-1.2588767, -0.1413292),
            "mill": (-1.2588767, -0.4771213),
            "turns": (-1.0158386, -0.17609128),
            "still": (-1.0975087, -0.17609128),
            "mill </s>": (-0.9380382, 0),
            "<s> the": (-0.20207761, -0.30103),
            "mill turns": (-0.24758816, -0.30103),
            "turns in": (-0.78417486, -0.30103),
            "old mill </s>": (-0.51191825, 0),
            "<s> the mill": (-0.52625954, 0),
            "stands still </s>": (-0.14549042, 0),
            "mill turns in": (-0.3814093, 0),
        },
    ),
    (0, 0, 1): (
        [13, 22, 5],
        {
            "the wind": (-0.8506838, 0),
            "<s> a": (-0.9676064, 0),
            "stands still </s>": (-0.14549042, 0),
            "turns in the": (-0.16428907, 0),
            "<s> the mill": (-0.49280477, 0),
            "the old mill": (-0.16428907, 0),
            "mill turns in": (-0.35368058, 0),
        },
    ),
}


def read_arpa(path: Path) -> tuple[list[int], dict[str, tuple[float, float]]]:
    """Counts, and n-gram -> its two logarithms to base 10, by a reader of two lines."""
    lines = path.read_text("utf-8").split("\n")
    counts = [int(line.rpartition("=")[2]) for line in lines if line.startswith("ngram ")]
    rows = [line.split("\t") for line in lines if "\t" in line]
    return counts, {row[1]: (float(row[0]), float(row[2]) if len(row) > 2 else 0.0) for row in rows}


def trained(folder: Path, documents: list[str], order: int = 3, prune: tuple[int, ...] = (0,)) -> Path:
    """A model m, its ARPA file m.arpa and its card m.json of a fresh folder."""
    perplexity.train(documents, folder / "m", perplexity.Training(order, prune), folder / "m.arpa")
    return folder


def same_as_plain(folder: Path, documents: list[str], order: int, prune: tuple[int, ...]) -> kneser_ney.Model:
    thresholds = [*prune, *[prune[-1]] * (order - len(prune))]
    expected = kneser_ney.estimate([s for d in documents for s in kneser_ney.sentences_of(d)], order, thresholds)
    counts, found = read_arpa(folder / "m.arpa")
    assert counts == [sum(len(g) == k for g in expected) for k in range(1, order + 1)]
    assert found.keys() == {" ".join(g) for g in expected}
    for ngram, (prob, backoff) in expected.items():
        got = found[" ".join(ngram)]
        # The file has what the model has: millionths of a bit, so probabilities end at 2**-100.
        assert got[0] == pytest.approx(max(math.log10(prob), -30.103), abs=2e-6)
        assert got[1] == pytest.approx(max(math.log10(backoff), -30.103), abs=2e-6)
    return expected


LINES = st.lists(st.sampled_from(["a", "b", "c", "d", "e.", "mill", "7", "\n", "\n"]), max_size=60).map(" ".join)


@settings(max_examples=30)
@given(
    st.lists(st.one_of(LINES, texts(12)), min_size=1, max_size=4),
    st.integers(2, 6),
    st.sampled_from([(0,), (0, 0, 1), (0, 1)]),
)
def test_models_equal_plain_python(tmp_path_factory, documents, order: int, prune) -> None:
    documents = [*documents, "a b c\na b d\n"]
    folder = trained(tmp_path_factory.mktemp("model"), documents, order, prune)
    expected = same_as_plain(folder, documents, order, prune)
    asked = [*documents, "a b b a\nunheard of", "", "a c mill d e."]
    scores = Model(folder / "m").log2_e4(pa.array(asked, pa.large_string())).to_pylist()
    for text, score in zip(asked, scores, strict=True):
        bits = kneser_ney.bits(expected, order, text)
        assert (score is None) == (bits is None)
        assert score is None or score == pytest.approx(bits * 1e4, abs=0.6)


@pytest.fixture(scope="module")
def long_text() -> list[str]:
    """Some 20,000 words with enough repetitions that every order has discounts of its own."""
    rng = np.random.default_rng(5)
    words = np.array([f"w{i}" for i in range(400)])
    ranks = np.minimum((rng.pareto(1.0, 20_000) * 4).astype(int), 399)
    phrases = [" ".join(words[ranks[i : i + 8]]) for i in range(0, 20_000, 8)]
    return ["\n".join(phrases[i] for i in rng.integers(0, len(phrases), 600)) for _ in range(5)]


@pytest.mark.parametrize("prune", [(0,), (0, 0, 1), (0, 1, 2)])
def test_a_text_with_discounts_of_its_own_equals_plain_python(tmp_path, long_text, prune) -> None:
    folder = trained(tmp_path, long_text, 4, prune)
    same_as_plain(folder, long_text, 4, prune)
    card = parse_canonical((folder / "m.json").read_bytes())
    assert [d["fallback"] for d in card["discounts"]] == [False] * 4


def test_probabilities_after_a_context_sum_to_one(tmp_path, long_text) -> None:
    trained(tmp_path, long_text, 3, (0, 0, 1))
    _, found = read_arpa(tmp_path / "m.arpa")
    model = {tuple(g.split(" ")): (10**p, 10**b) for g, (p, b) in found.items()}
    words = [g[0] for g in model if len(g) == 1 and g[0] != "<s>"]
    contexts = [(), ("<s>",), ("w0",), ("w1", "w0"), ("w0", "w1"), ("w399",), ("<s>", "w0"), ("nowhere", "w2")]
    for context in contexts:
        assert sum(kneser_ney.probability(model, context, word) for word in words) == pytest.approx(1, abs=2e-4)


@pytest.mark.parametrize("prune", LMPLZ)
def test_numbers_that_lmplz_wrote(tmp_path, prune) -> None:
    trained(tmp_path, [TOY], 3, prune)
    counts, found = read_arpa(tmp_path / "m.arpa")
    known_counts, known = LMPLZ[prune]
    assert counts == known_counts
    for ngram, weights in known.items():
        assert found[ngram] == pytest.approx(weights, abs=1e-6)


def lmplz(folder: Path, documents: list[str], order: int, *options: str) -> Path:
    """An ARPA file by KenLM's trainer, on the same words."""
    program = shutil.which("lmplz")
    if program is None:
        pytest.skip("no lmplz on PATH (KenLM's trainer; docs/notes/perplexity.md says how it is built)")
    lines = tokens.spelled(pa.array(documents, pa.large_string()))
    (folder / "words").write_text("".join(" ".join(line) + "\n" for line in lines), "utf-8")
    command = [program, "-o", str(order), "-S", "200M", "-T", str(folder), "--text", str(folder / "words")]
    command += ["--arpa", str(folder / "lmplz.arpa"), "--discount_fallback", *options]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "lmplz.arpa"


def clean_texts(data_dir: Path) -> list[str]:
    lines = gzip.decompress((data_dir / "quality" / "clean.jsonl.gz").read_bytes()).decode().split("\n")
    return [json.loads(line)["text"] for line in lines if line]


@pytest.mark.parametrize("prune", [(0,), (0, 0, 1)])
def test_perplexity_is_that_of_lmplz_on_the_same_text(tmp_path, data_dir, prune) -> None:
    documents = clean_texts(data_dir)
    learned, held = documents[1::12], documents[::12]
    theirs = lmplz(tmp_path, learned, 5, "--prune", *map(str, prune))
    trained(tmp_path, learned, 5, prune)
    ours_counts, ours = read_arpa(tmp_path / "m.arpa")
    theirs_counts, known = read_arpa(theirs)
    assert ours_counts == theirs_counts
    assert ours.keys() == known.keys()
    assert max(abs(ours[g][i] - known[g][i]) for g in known for i in (0, 1)) < 5e-6
    perplexity.convert(theirs, tmp_path / "converted")
    text = pa.array(held, pa.large_string())
    for a, b in zip(*(Model(tmp_path / name).log2_e4(text).to_pylist() for name in ("m", "converted")), strict=True):
        assert 2 ** (abs(a - b) / 1e4) < 1.0002  # asked for: within 2 %


def test_kenlm_scores_our_arpa_file_as_we_do(tmp_path, data_dir) -> None:
    kenlm = pytest.importorskip("kenlm", reason="it comes with the extra dev")
    documents = clean_texts(data_dir)
    trained(tmp_path, documents[1::5], 4, (0, 0, 1))
    text = pa.array([*documents[:20], "", "\n"], pa.large_string())
    ours, theirs = Model(tmp_path / "m").log2_e4(text), kenlm.Model(str(tmp_path / "m.arpa"))
    assert ours.is_null().to_pylist() == [False] * 20 + [True] * 2
    for i, bits in enumerate(ours.to_pylist()[:20]):
        lines = list(tokens.spelled(text.slice(i, 1)))
        log10 = sum(theirs.score(" ".join(line)) for line in lines)
        assert abs(bits + log10 * math.log2(10) * 1e4 / sum(len(line) + 1 for line in lines)) <= 2


def test_the_same_bytes_however_the_text_is_cut(tmp_path, long_text, monkeypatch) -> None:
    files, sort = [], perplexity_counts.in_suffix_order
    for number, (part, batch) in enumerate([(1 << 24, 1 << 20), (1, 1000), (500, 7000)]):
        monkeypatch.setattr(perplexity_stream, "BATCH_CHARS", batch)
        monkeypatch.setattr(perplexity_estimate, "in_suffix_order", lambda *a, p=part: sort(*a, part=p))
        monkeypatch.setattr(perplexity, "BLOCK", 1000 + number)
        folder = tmp_path / str(number)
        folder.mkdir()
        trained(folder, long_text, 4, (0, 0, 1))
        files.append([(folder / name).read_bytes() for name in ("m", "m.arpa", "m.json")])
    assert files[0] == files[1] == files[2]


def test_documents_are_counted_once_however_they_are_cut(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(perplexity_stream, "BATCH_CHARS", 10)
    card = perplexity.train(["one two\nthree four\nfive", "", "six " * 30, "seven"], tmp_path / "m")
    assert {key: card["data"][key] for key in ("documents", "sentences", "words", "vocabulary")} == {
        "documents": 4,
        "sentences": 5,
        "words": 36,
        "vocabulary": 7,
    }


def test_a_model_of_an_arpa_file_is_the_model_that_wrote_it(tmp_path, long_text) -> None:
    trained(tmp_path, long_text, 4, (0, 0, 1))
    card = perplexity.convert(tmp_path / "m.arpa", tmp_path / "again", "again")
    assert card["name"] == "again"
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()


def test_a_card_says_what_a_model_is_made_of_and_no_path_or_time(tmp_path) -> None:
    card = perplexity.train([TOY], tmp_path / "m", perplexity.Training(3, (0,)), name="toy")
    assert parse_canonical((tmp_path / "m.json").read_bytes()) == card
    assert card["ngrams"] == {"seen": [11, 22, 25], "kept": [11, 22, 25]}
    assert card["training"] == {"order": 3, "prune": [0, 0, 0]}
    assert card["name"] == "toy"
    assert str(tmp_path) not in json.dumps(card)
    other = perplexity.train([TOY + "more"], tmp_path / "n", perplexity.Training(3, (0,)), name="toy")
    assert other["data"]["sha256"] != card["data"]["sha256"]
    assert {p.name for p in tmp_path.iterdir()} == {"m", "m.json", "n", "n.json"}


@pytest.mark.parametrize(
    ("documents", "order", "prune", "says"),
    [
        ([], 3, (0,), "no word"),
        (["", "\n \u200b"], 3, (0,), "no word"),
        (["a"], 1, (0,), "order 1"),
        (["a"], 7, (0,), "order 7"),
        (["a"], 3, (1,), "prune 1"),
        (["a"], 3, (0, 2, 1), "prune 0,2,1"),
        (["a"], 3, (0, 0, 0, 0), "prune"),
    ],
)
def test_what_cannot_be_trained_is_refused_and_leaves_nothing(tmp_path, documents, order, prune, says) -> None:
    with pytest.raises(UsageError, match=says):
        perplexity.train(documents, tmp_path / "m", perplexity.Training(order, prune), tmp_path / "m.arpa")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("taken", ["m", "m.json", "m.arpa"])
def test_nothing_is_overwritten(tmp_path, taken: str) -> None:
    (tmp_path / taken).write_text("mine")
    with pytest.raises(Refused, match=taken):
        perplexity.train([TOY], tmp_path / "m", arpa=tmp_path / "m.arpa")
    assert [p.read_text() for p in tmp_path.iterdir()] == ["mine"]


def arpa_of(*lines: str) -> str:
    return "\n".join(lines) + "\n"


SOUND = arpa_of(
    "", "\\data\\", "ngram 1=3", "ngram 2=1", "", "\\1-grams:", "-1\t<unk>", "-0.5\ta\t-0.3", "-0.7 b 0",
    "\\2-grams:", "-0.2 a b", "", "\\end\\", "",
)  # fmt: skip


def test_arpa_files_of_others_are_read(tmp_path) -> None:
    (tmp_path / "a.arpa").write_text(SOUND)
    perplexity.convert(tmp_path / "a.arpa", tmp_path / "m")
    log2_10 = math.log2(10)
    # "a b": p(a) after an unknown <s>, p(b | a), and </s>, which this model does not know.
    expected = round((0.5 + 0.2 + 1) * log2_10 / 3 * 1e4)
    assert Model(tmp_path / "m").log2_e4(pa.array(["a b"], pa.large_string())).to_pylist() == [expected]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("-1\t<unk>\n", "", "2 n-grams of length 1, the head says 3"),
        ("<unk>", "c", "no <unk>"),
        ("\\end\\", "", "the file ends before"),
        ("-0.2 a b", "-0.2 a", "expected a number, 2 words"),
        ("-0.2 a b", "x a b", "could not convert"),
        ("\\2-grams:", "\\3-grams:", "expected the 2-grams"),
        ("ngram 2=1", "ngram 2=one", "invalid literal"),
        ("ngram 1=3\nngram 2=1\n", "", "expected 1 to 6 counts"),
    ],
)
def test_a_broken_arpa_file_is_an_error_with_its_line(tmp_path, old: str, new: str, says: str) -> None:
    assert old in SOUND
    (tmp_path / "a.arpa").write_text(SOUND.replace(old, new))
    with pytest.raises(UsageError) as caught:
        perplexity.convert(tmp_path / "a.arpa", tmp_path / "m")
    assert says in caught.value.why
    assert not (tmp_path / "m").exists()


def test_bytes_that_are_no_text_are_no_arpa_file(tmp_path) -> None:
    (tmp_path / "a.arpa").write_bytes(b"\\data\\\nngram 1=\xff")
    with pytest.raises(UsageError, match="not a complete ARPA file"):
        perplexity.convert(tmp_path / "a.arpa", tmp_path / "m")
    with pytest.raises(NotFound):
        perplexity.convert(tmp_path / "none", tmp_path / "m")
    with pytest.raises(MillError):
        perplexity.convert(tmp_path, tmp_path / "m")


def test_keys_of_spelled_words_are_those_of_text(tmp_path) -> None:
    trained(tmp_path, [TOY + "Übung macht 日本語 ½\n"], 3)
    assert len(arpa.keys_of_words([])) == 0
    perplexity.convert(tmp_path / "m.arpa", tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()
