"""Language of documents: right on clear text, `und` without letters, and none of fastText's traps."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import fasttext
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill import schema
from corpusmill.errors import NotFound
from corpusmill.kernels.language.codes import TWO_LETTERS, code_of
from corpusmill.kernels.language.identify import CERTAIN_E4, EDGE_CHARS, HEAD_CHARS, MIDDLE_CHARS, LanguageModel
from corpusmill.kernels.language.windows import lines, places
from corpusmill.models import KNOWN, model_digest, model_path
from tests.corpusmill.kernels.texts import batches, column, texts

ENGLISH = "The miller opens the gate in the morning and the water begins to turn the old wooden wheel. "
GERMAN = "Der Müller öffnet am Morgen das Tor, und das Wasser beginnt das alte hölzerne Rad zu drehen. "


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    try:
        return LanguageModel(model_path("lid.176.ftz"))
    except NotFound as err:
        pytest.skip(str(err))


def rows(model: LanguageModel, *values: str, before: int = 0) -> list[dict[str, Any]]:
    batch = model.identify(column(list(values), before))
    assert batch.schema == schema.LANGUAGE
    return batch.to_pylist()


def identified(model: LanguageModel, *values: str) -> list[tuple[str, int]]:
    return [(row["language"], row["language_score_e4"]) for row in rows(model, *values)]


def mixed(model: LanguageModel, *values: str) -> list[bool]:
    return [row["language_mixed"] for row in rows(model, *values)]


def shared(data_dir: Path, name: str) -> list[dict[str, Any]]:
    with gzip.open(data_dir / "langid" / f"{name}.jsonl.gz", "rt", encoding="utf-8", newline="\n") as file:
        return [json.loads(line) for line in file]


class Reference:
    """What identify does, one document after the other in plain Python."""

    def __init__(self, path: Path) -> None:
        self.model = fasttext.load_model(str(path))

    def __call__(self, text: str) -> tuple[str, int, bool]:
        language, score = self.predict(text[:HEAD_CHARS])
        if len(text) >= HEAD_CHARS + MIDDLE_CHARS:
            begin = max(HEAD_CHARS, (len(text) - MIDDLE_CHARS) // 2)
            middle, certainty = self.predict(text[begin : begin + MIDDLE_CHARS])
            if language == "und":
                return middle, certainty, False
            other = middle not in ("und", language) and certainty > 5000
            return language, score // 2 if other else score, other
        edges = [text[:EDGE_CHARS], text[-EDGE_CHARS:]] if len(text) >= 400 and score < CERTAIN_E4 else []
        found = [self.predict(edge) for edge in edges if language != "und"]
        return language, score, any(other not in ("und", language) and sure > 5000 for other, sure in found)

    def predict(self, text: str) -> tuple[str, int]:
        line = self.line(text)
        if not any(map(str.isalpha, line)):
            return "und", 0
        labels, probabilities = self.model.predict(line.lower())
        return labels[0].removeprefix("__label__"), min(10_000, round(float(probabilities[0]) * 10_000))

    @staticmethod
    def line(text: str) -> str:
        return re.sub(r"\s+", " ", re.sub("</[sS]>", " ", text)).strip()


def agree(found: list[dict[str, Any]], expected: list[tuple[str, int, bool]]) -> None:
    """Equal, but for the last digit of scores: our sums of float32 are rounded elsewhere than fastText's."""
    for row, (language, score, flag) in zip(found, expected, strict=True):
        assert (row["language"], row["language_mixed"]) == (language, flag)
        assert abs(row["language_score_e4"] - score) <= 1


@pytest.fixture(scope="module")
def reference(model: LanguageModel) -> Reference:
    return Reference(model_path("lid.176.ftz"))


def test_the_model_file_is_the_known_one(model: LanguageModel) -> None:
    assert model_digest(model_path("lid.176.ftz")) == KNOWN["lid.176.ftz"].sha256


def test_clear_text_is_recognised_with_a_high_score(model: LanguageModel) -> None:
    for text, language in ((ENGLISH, "en"), (GERMAN, "de"), ("水車小屋の主人は朝に門を開けます。", "ja")):
        ((found, score),) = identified(model, text)
        assert (found, score >= 8000) == (language, True)


@pytest.mark.parametrize("text", ["", " ", "\n", "123 456 789", "... !!!", "\u200b\u200b", "🙂 🙂", "---\n***\n"])
def test_a_text_without_letters_is_und(model: LanguageModel, text: str) -> None:
    assert rows(model, text) == [{"language": "und", "language_score_e4": 0, "language_mixed": False}]


def test_hostile_line_breaks_are_blanks(model: LanguageModel, data_dir: Path) -> None:
    lines = (data_dir / "hostile" / "B26-line-breaks.jsonl").read_text("utf-8").split("\n")
    found = identified(model, *(json.loads(line)["text"] for line in lines if line))
    assert [language for language, _ in found] == ["en"] * 4 + ["und"] * 2


def test_capitals_make_no_difference(model: LanguageModel) -> None:
    assert identified(model, ENGLISH.upper(), ENGLISH.title()) == identified(model, ENGLISH.lower(), ENGLISH)


def test_fasttexts_own_end_mark_hides_nothing(model: LanguageModel) -> None:
    assert identified(model, "</s>" + GERMAN) == identified(model, GERMAN)
    assert identified(model, "Hello there </s> " + GERMAN * 3)[0][0] == "de"


def test_a_page_in_two_languages_passes_for_neither_with_certainty(model: LanguageModel) -> None:
    one, two = ENGLISH * 60, ENGLISH * 24 + GERMAN * 60
    ((_, certain),) = identified(model, one)
    ((language, halved),) = identified(model, two)
    assert (language, certain > 8000, halved) == ("en", True, identified(model, two[:HEAD_CHARS])[0][1] // 2)


def test_a_beginning_without_letters_leaves_it_to_the_middle(model: LanguageModel) -> None:
    ((language, score),) = identified(model, "17 42 " * 400 + GERMAN * 30)
    assert (language, score > 8000) == ("de", True)


def test_a_short_text_is_judged_by_its_beginning_alone(model: LanguageModel) -> None:
    text = (ENGLISH * 40)[: HEAD_CHARS - 1]
    assert identified(model, text + " ") == identified(model, text)


@settings(max_examples=60)
@given(batches(), st.integers(0, 2))
def test_batches_are_judged_as_documents_one_by_one(
    model: LanguageModel, reference: Reference, values: list[str], before: int
) -> None:
    agree(rows(model, *values, before=before), [reference(value) for value in values])


def test_shared_texts_are_judged_as_documents_one_by_one(
    model: LanguageModel, reference: Reference, data_dir: Path
) -> None:
    udhr, mixtures = shared(data_dir, "udhr")[::9], shared(data_dir, "mixed")[::4]
    values = [row["text"] for row in udhr + mixtures] + [udhr[0]["text"] + mixtures[0]["text"] * 3, ENGLISH * 300]
    found = rows(model, *values)
    agree(found, [reference(value) for value in values])
    assert len({row["language"] for row in found}) > 20
    assert sum(row["language_mixed"] for row in found) > 5


@settings(max_examples=150)
@given(texts(), st.data())
def test_lines_are_those_of_python(value: str, data: st.DataObject) -> None:
    encoded = value.encode()
    begin = data.draw(st.integers(0, len(value)))
    end = data.draw(st.integers(begin, len(value)))
    window = value[begin:end]
    at, after = len(value[:begin].encode()), len(value[:end].encode())
    made = lines(column([value], 1), np.array([0]), np.array([at]), np.array([after]))
    line = Reference.line(window)
    assert made.line(0) == line
    assert encoded[at:after].decode() == window
    assert made.letters[0] == sum(map(str.isalpha, line))


@settings(max_examples=60)
@given(st.lists(st.tuples(texts(), st.integers(1, 90)), max_size=3))
def test_windows_are_counted_in_characters(pieces: list[tuple[str, int]]) -> None:
    values = [piece * times for piece, times in pieces]
    found = places(column(values, 1))
    for i, value in enumerate(values):
        data = value.encode()
        assert found.chars[i] == len(value)
        assert data[: found.head[i]].decode() == value[:HEAD_CHARS]
        assert data[: found.first[i]].decode() == value[:EDGE_CHARS]
        assert data[found.last[i] :].decode() == value[-EDGE_CHARS:]
        begin = max(HEAD_CHARS, (len(value) - MIDDLE_CHARS) // 2)
        middle = value[begin : begin + MIDDLE_CHARS] if len(value) >= HEAD_CHARS + MIDDLE_CHARS else ""
        assert data[found.middle[i, 0] : found.middle[i, 1]].decode() == middle


def test_documents_in_two_languages_are_flagged(model: LanguageModel) -> None:
    halves, whole = ENGLISH * 8 + GERMAN * 8, ENGLISH * 16
    long = ENGLISH * 24 + GERMAN * 60
    assert mixed(model, halves, whole, long, ENGLISH + GERMAN, "") == [True, False, True, False, False]


def test_a_mixture_of_halves_is_flagged_and_one_language_is_not(model: LanguageModel, data_dir: Path) -> None:
    """Figures of docs/notes/language.md, with room for another model build."""
    halves = [row["text"] for row in shared(data_dir, "mixed") if set(row["langs"].values()) == {5}]
    known = [row["text"] for row in shared(data_dir, "udhr") if row["bcp47"] in model.codes]
    assert sum(mixed(model, *halves)) / len(halves) > 0.6
    assert sum(mixed(model, *known)) / len(known) < 0.05


def test_labels_become_iso_639_codes() -> None:
    labels = ["__label__en", "__label__als", "__label__eng_Latn", "cmn_Hani", "zho_Hant", "srp_Cyrl", "srp_Latn"]
    assert [code_of(label) for label in labels] == ["en", "als", "en", "zh", "zh", "sr", "sr"]
    assert [code_of(label) for label in ("ceb_Latn", "__label__fil_Latn", "als_Latn", "und")] == [
        "ceb",
        "tl",
        "sq",
        "und",
    ]


def test_two_letter_codes_are_those_of_the_declarations(data_dir: Path) -> None:
    """bcp47 of the Declarations is ISO 639-1 where a language has such a code."""
    tags = {row["iso639_3"]: row["bcp47"].partition("-")[0] for row in shared(data_dir, "udhr")}
    short = {code: tag for code, tag in tags.items() if len(tag) == 2 and code in TWO_LETTERS}
    assert short.pop("twi") == "ak"  # Twi has a code of its own, tw; the Declaration has that of its macrolanguage
    assert len(short) > 100
    assert {code: TWO_LETTERS[code] for code in short} == short


def test_two_labels_of_one_code_are_one_language(tmp_path: Path) -> None:
    """A model with scripts in its labels, as GlotLID has them."""
    train = tmp_path / "train.txt"
    srp = ["__label__srp_Latn dobar dan kako ste danas", "__label__srp_Cyrl добар дан како сте данас"]
    train.write_text("\n".join([*srp, "__label__eng_Latn good day how are you today"] * 40), "utf-8")
    trained = fasttext.train_supervised(str(train), thread=1, dim=8, minn=2, maxn=3, epoch=20, verbose=0, lr=0.5)
    trained.save_model(str(tmp_path / "own.bin"))
    own = LanguageModel(tmp_path / "own.bin")
    assert sorted(own.codes) == ["en", "sr"]
    found = [
        language for language, _ in identified(own, "dobar dan kako", "добар дан како", "good day how are you", "7")
    ]
    assert found == ["sr", "sr", "en", "und"]


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "no.bin").write_bytes(b"not a model" * 10)
    with pytest.raises(ValueError, match=r"no\.bin"):
        LanguageModel(tmp_path / "no.bin")


def test_upper_case_twins_agree(model: LanguageModel, data_dir: Path) -> None:
    """Sentences of scripts with capitals, of languages that the model knows."""
    sentences = [row["text"] for row in shared(data_dir, "sentences")[::6] if row["lang"] in model.codes]
    sentences = [text for text in sentences if text.upper() != text]
    plain, twins = identified(model, *sentences), identified(model, *map(str.upper, sentences))
    same = sum(one[0] == other[0] for one, other in zip(plain, twins, strict=True))
    assert same / len(sentences) > 0.99


def test_sentences_of_many_languages_are_recognised(model: LanguageModel, data_dir: Path) -> None:
    """Single sentences of the languages of the sample crawl."""
    crawled = "bg ca cs da de el en es fi fr hu id it ja ko nl pl pt ro ru sv tr uk vi"
    wanted = crawled.split(" ")
    sentences = [row for row in shared(data_dir, "sentences") if row["lang"] in wanted][::5]
    found = identified(model, *(row["text"] for row in sentences))
    right = sum(language == row["lang"] for row, (language, _) in zip(sentences, found, strict=True))
    assert len(sentences) > 300
    assert right / len(sentences) > 0.93


def test_a_batch_does_not_change_its_documents(model: LanguageModel) -> None:
    values = [ENGLISH, GERMAN, "", ENGLISH * 50]
    assert identified(model, *values) == [identified(model, text)[0] for text in values]
