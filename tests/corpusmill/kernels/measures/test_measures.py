"""Measures: equal to plain Python for any text, finite for every text, fixed by golden numbers on chosen ones."""

from __future__ import annotations

import json
import math
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill import schema
from corpusmill.canonical import content_digest
from corpusmill.kernels.measures.measures import measures
from tests.corpusmill.kernels import reference
from tests.corpusmill.kernels.texts import batches, column


def measured(text: str) -> dict[str, float]:
    return measures(column([text])).to_pylist()[0]


def load(path: Path) -> list[str]:
    return [json.loads(line)["text"] for line in path.read_text("utf-8").split("\n") if line]


@settings(max_examples=120)
@given(batches(), st.integers(0, 2))
def test_measures_equal_plain_python(values: list[str], before: int) -> None:
    got = measures(column(values, before))
    assert got.schema == schema.MEASURES
    for row, text in zip(got.to_pylist(), values, strict=True):
        assert row == reference.measures(text)


@settings(max_examples=150)
@given(st.lists(st.sampled_from(["a", "b", "c", "a b c d e", ". ", "\n", "\n\n", "a b"]), max_size=120))
def test_repetition_equals_plain_python_on_few_words(pieces: list[str]) -> None:
    text = " ".join(pieces)
    assert measured(text) == reference.measures(text)


@pytest.mark.parametrize("name", ["B26-line-breaks", "B32-no-space-languages", "B33-genres", "B35-tiny-documents"])
def test_measures_of_hostile_texts_equal_plain_python_and_are_finite(data_dir: Path, name: str) -> None:
    values = load(data_dir / "hostile" / f"{name}.jsonl")
    for row, text in zip(measures(column(values)).to_pylist(), values, strict=True):
        assert row == reference.measures(text)
        assert all(math.isfinite(value) for value in row.values())


LINES = [
    "Die Mühle steht still.",
    "방앗간은 아주 조용하다.",
    "がらがら回る水車。",
    "Q\u0323\u0307 x a\u0328\u0301 y",
    "Ångström \u2126m",
]


@pytest.mark.parametrize("line", LINES)
def test_measures_are_those_of_the_text_however_it_is_encoded(line: str) -> None:
    text = f"{line}\n{line}\n\nÉté, {line}\n\n{line} {line} {line} {line} {line}\n• {line}"
    rows = [measured(unicodedata.normalize(form, text)) for form in ("NFC", "NFD")]
    mixed = measured(
        "\n".join(unicodedata.normalize(("NFC", "NFD")[i % 2], one) for i, one in enumerate(text.split("\n")))
    )
    for row in (*rows, mixed):
        assert row.pop("text_bytes")
        assert row == rows[0]
    assert rows[0]["dup_line_ratio"] > 0.1


@pytest.mark.parametrize("text", ["", " ", "\n\n\n", "\t", "\u200b\u200b", "\ufeff"])
def test_a_text_without_words_has_zeros(text: str) -> None:
    row = measured(text)
    assert row.pop("text_bytes") == len(text.encode())
    assert row.pop("dup_line_ratio") == (0.5 if text == "\n\n\n" else 0)  # two empty lines around a run of line feeds
    assert set(row.values()) == {0}


def test_ratios_are_what_their_definitions_say() -> None:
    row = measured("- The mill # turns...\n• and the mill turns…\nThe mill be with you to…  \n\nend")
    assert row["bullet_line_ratio"] == 2 / 5
    assert row["ellipsis_line_ratio"] == 3 / 5
    assert row["stop_word_count"] == 5  # the, and, be, with, to; not "The"
    assert row["hash_ratio"] == 1 / 20
    assert row["ellipsis_ratio"] == 3 / 20
    assert row["alpha_word_ratio"] == 14 / 20
    assert row["word_count"] == 15  # "•" is not in datatrove's list of punctuation
    assert row["word_total"] == 14


def test_repetition_counts_later_copies_only() -> None:
    row = measured("aaa\nbbb\n\n\naaa\nbbb\n\naaa\nbbb")
    assert row["dup_line_ratio"] == 4 / 6
    assert row["dup_line_char_ratio"] == 12 / 26
    assert row["dup_paragraph_ratio"] == 2 / 3
    assert row["dup_paragraph_char_ratio"] == 14 / 26
    row = measured("one two three four five " * 3)
    assert row["top_2gram_char_ratio"] == 3 * len("one two") / 72  # the earliest of equally frequent ones
    assert row["dup_5gram_char_ratio"] == 2 * len("onetwothreefourfive") / 72


def test_a_top_ngram_counts_even_once() -> None:
    assert measured("one two")["top_2gram_char_ratio"] == 1.0


def test_ngrams_compare_words_not_joined_letters() -> None:
    """datatrove joins the words of duplicated n-grams: there the second half repeats the first."""
    text = "1 23 a b c 12 3 a b c"
    assert measured(text)["dup_5gram_char_ratio"] == 0


def test_a_batch_does_not_change_its_documents() -> None:
    values = ["the mill " * 300_000, "", "a b c d e f " * 5, "x\n" * 100_000, "end"]
    together = measures(column(values, before=1)).to_pylist()
    assert together == [measured(text) for text in values]


def test_threads_measure_at_once_without_disturbing_each_other() -> None:
    batches = [column([f"the mill {i} turns " * 200, f"line {i}\n" * 300]) for i in range(8)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(measures, batches)) == [measures(batch) for batch in batches]


def test_long_documents_equal_plain_python() -> None:
    text = " ".join(f"w{i * i % 997} and the" for i in range(4000)) + "\n" + "a line\n" * 50
    assert measured(text) == reference.measures(text)


def test_measures_of_chosen_texts_stay_as_they_are() -> None:
    """Golden: when this moves, raise the VERSION of the judge stage."""
    values = [
        "The miller doesn't see 3.14 wheels; #1 ... 日本語\n\n- ok\n- ok\n",
        "ภาษาไทย एक दो ΟΔΟΣ… 🙂🙂\r\nthe and of to\u2028the and of to",
        "",
    ]
    table = pa.Table.from_batches([measures(column(values * 3))])
    assert content_digest(table)[:16] == "8d2a2891f92283f6"
