"""The plain form of texts: what is written in several ways becomes one, and places lead back to the text as given."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.kernels.screen.plain_form import plain, plain_text

ODD = st.text(
    st.sampled_from(
        "ab1 '.,\u00e9e\u0301\u0323o\u0308\uff21\uff42\uff11\uff40\uff07\uff0c\uff3f"
        "\ufb01\ufb06\U0001d400\u2018\u02bc`\u00b4\u4e2d\u0438_"
    )
)


def texts(*values: str) -> pa.Array:
    return pa.array(values, pa.large_string())


@pytest.mark.parametrize(
    ("given_text", "expected"),
    [
        ("\uff26\uff55\uff4c\uff4c \uff11\uff12\uff0c\uff13\uff14\uff15", "Full 12,345"),
        ("\ufb01nd e\ufb03cient", "find efficient"),
        ("\U0001d400\U0001d41b\U0001d7ce", "Ab0"),
        ("cafe\u0301", "caf\u00e9"),
        ("don\u2018t don`t don\u00b4t don\u02bct don\uff07t don\uff40t", " ".join(["don't"] * 6)),
        ("\u2018quoted\u2019 `code` a\u00b4", "\u2018quoted\u2019 `code` a\u00b4"),
        ("plain \u2014 text\uff0c\u4e2d\u6587", "plain \u2014 text\uff0c\u4e2d\u6587"),
    ],
)
def test_what_is_written_in_several_ways_is_one(given_text, expected):
    assert plain_text(given_text) == expected


@settings(max_examples=400, deadline=None)
@given(st.lists(st.one_of(ODD, st.text()), max_size=5))
def test_texts_with_letters_to_rewrite_are_found_by_their_bytes(values):
    """And are rewritten as by the regular expression over all of the text."""
    made, places = plain(texts(*values))
    assert made.to_pylist() == [plain_text(value) for value in values]
    assert set(places) == {row for row, value in enumerate(values) if plain_text(value) != value}


@settings(max_examples=400, deadline=None)
@given(ODD)
def test_places_lead_back_to_the_text_as_given(value):
    made, places = plain(texts("before", value, "after"))
    if 1 not in places:
        return
    form, where = made[1].as_py(), places[1]
    assert (where.start(0), where.stop(len(form.encode()))) == (0, len(value.encode()))
    ends = [len(form[:i].encode()) for i in range(len(form) + 1)]
    for begin in range(len(form)):
        for end in range(begin + 1, min(begin + 5, len(form)) + 1):
            low, high = where.start(ends[begin]), where.stop(ends[end])
            piece = value.encode()[low:high].decode()
            assert _same(form[begin:end]) in _same(plain_text(piece)) or "\uff0c" in piece


def _same(text: str) -> str:
    """Without what tells apostrophes apart: whether a mark is one depends on what stands beside it."""
    return "".join("'" if c in "`\u00b4\u2018\u02bc\uff40\uff07" else c for c in text)


def test_no_text_is_copied_where_there_is_nothing_to_rewrite():
    given_texts = texts("plain", "\u201cquotes\u201d \u2014 don\u2019t", "中文，标点。")
    assert plain(given_texts)[0] is given_texts
