"""Language of documents: right on clear text, null without letters, and none of fastText's traps."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, settings

from corpusmill import schema
from corpusmill.errors import NotFound
from corpusmill.kernels.language import HEAD_CHARS, LanguageModel
from corpusmill.models import KNOWN, model_digest, model_path
from tests.kernels.texts import column, texts

ENGLISH = "The miller opens the gate in the morning and the water begins to turn the old wooden wheel. "
GERMAN = "Der Müller öffnet am Morgen das Tor, und das Wasser beginnt das alte hölzerne Rad zu drehen. "


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    try:
        return LanguageModel(model_path("lid.176.ftz"))
    except NotFound as err:
        pytest.skip(str(err))


def identified(model: LanguageModel, *values: str) -> list[tuple[str | None, int]]:
    batch = model.identify(column(list(values)))
    assert batch.schema == schema.LANGUAGE
    return [(row["language"], row["language_score_e4"]) for row in batch.to_pylist()]


def test_the_model_file_is_the_known_one(model: LanguageModel) -> None:
    assert model_digest(model_path("lid.176.ftz")) == KNOWN["lid.176.ftz"].sha256


def test_clear_text_is_recognised_with_a_high_score(model: LanguageModel) -> None:
    for text, language in ((ENGLISH, "en"), (GERMAN, "de"), ("水車小屋の主人は朝に門を開けます。", "ja")):
        ((found, score),) = identified(model, text)
        assert (found, score >= 8000) == (language, True)


@pytest.mark.parametrize("text", ["", " ", "\n", "123 456 789", "... !!!", "\u200b\u200b", "🙂 🙂", "---\n***\n"])
def test_a_text_without_letters_has_no_language(model: LanguageModel, text: str) -> None:
    assert identified(model, text) == [(None, 0)]


def test_hostile_line_breaks_are_blanks(model: LanguageModel, data_dir: Path) -> None:
    lines = (data_dir / "hostile" / "B26-line-breaks.jsonl").read_text("utf-8").split("\n")
    found = identified(model, *(json.loads(line)["text"] for line in lines if line))
    assert [language for language, _ in found] == ["en"] * 4 + [None] * 2


def test_upper_case_is_lowered_first(model: LanguageModel) -> None:
    assert identified(model, ENGLISH.upper()) == identified(model, ENGLISH.lower())


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
@given(texts())
def test_any_text_gets_a_language_or_none(model: LanguageModel, text: str) -> None:
    ((language, score),) = identified(model, text)
    assert 0 <= score <= 10_000
    assert (language is None) == (not any(c.isalpha() for c in text[:HEAD_CHARS])) or len(text) > HEAD_CHARS


def test_sentences_of_many_languages_are_recognised(model: LanguageModel, data_dir: Path) -> None:
    """Single sentences of the languages of the sample crawl."""
    crawled = "bg ca cs da de el en es fi fr hu id it ja ko nl pl pt ro ru sv tr uk vi"
    wanted = crawled.split(" ")
    with gzip.open(data_dir / "langid" / "sentences.jsonl.gz", "rt", encoding="utf-8", newline="\n") as file:
        rows = [json.loads(line) for line in file]
    rows = [row for row in rows if row["lang"] in wanted][::5]
    found = identified(model, *(row["text"] for row in rows))
    right = sum(language == row["lang"] for row, (language, _) in zip(rows, found, strict=True))
    assert len(rows) > 300
    assert right / len(rows) > 0.93


def test_a_batch_does_not_change_its_documents(model: LanguageModel) -> None:
    values = [ENGLISH, GERMAN, "", ENGLISH * 50]
    assert identified(model, *values) == [identified(model, text)[0] for text in values]
