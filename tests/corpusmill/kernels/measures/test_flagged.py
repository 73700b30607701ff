"""Flagged words: counted as words, whatever their case, in any script."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.kernels.measures.flagged import COLUMNS, FlaggedWords, flagged
from corpusmill.kernels.words.table import word_table
from tests.corpusmill.kernels.texts import column, texts

LIST = """
darn            # mild ones, for tests
heck
what the heck
Ärger
чёрт
畜生
"""
WORDS = FlaggedWords.of_lines(LIST.split("\n"))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("Darn! DARN, darn.", 3),
        ("darned darning goddarn darn_it", 1),
        ("heck", 1),
        ("What the heck is that heck", 2),
        ("what the\nheck", 1),
        ("so ein ÄRGER, Ärgernis", 1),
        ("Чёрт! чёртов", 1),
        ("この畜生め", 1),
        ("畜 生", 0),
        ("darn\u0301", 0),
        ("darn1 1darn", 0),
    ],
)
def test_words_are_counted_where_they_stand_alone(text: str, count: int) -> None:
    assert WORDS.count(text) == count


def test_the_share_is_of_the_words_of_the_word_table() -> None:
    batch = flagged(column(["Darn it, what the heck is this?", "", "...", "fine words"], 1), WORDS)
    assert batch.schema == COLUMNS
    assert batch.to_pydict() == {"flagged_words": [2, 0, 0, 0], "flagged_word_ratio": [2 / 7, 0.0, 0.0, 0.0]}
    assert flagged(column([]), WORDS).num_rows == 0


def test_a_list_is_known_by_its_entries() -> None:
    assert FlaggedWords.of_lines(["Heck", "  darn # why", "#", ""]) == FlaggedWords(frozenset({"darn", "heck"}))
    assert FlaggedWords(frozenset({"a"})).digest != FlaggedWords(frozenset({"b"})).digest
    assert FlaggedWords(frozenset()).count("anything") == 0


def test_text_of_another_type_is_refused() -> None:
    with pytest.raises(ValueError, match="large_string"):
        flagged(pa.array(["x"]), WORDS)


@settings(max_examples=100)
@given(st.lists(st.one_of(st.sampled_from(["darn", "HECK", "heck", "what the ", " ", ".", "x", "1"]), texts(2))))
def test_counts_are_those_of_a_regular_expression(pieces: list[str]) -> None:
    """ASCII texts: there a word ends where \\w does."""
    text = re.sub(r"[^ -^`-~\n]", " ", "".join(pieces))
    words = FlaggedWords(frozenset({"darn", "heck", "what the heck"}))
    expected = len(re.findall(r"(?<![0-9a-z])(?:what the heck|darn|heck)(?![0-9a-z])", text.lower()))
    batch = flagged(column([text]), words)
    total = int(word_table(column([text])).word_counts()[0])
    assert batch.column("flagged_words").to_pylist() == [expected]
    assert batch.column("flagged_word_ratio").to_pylist() == [expected / total if total else 0.0]
