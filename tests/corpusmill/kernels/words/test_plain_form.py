"""The plain form of texts: what is written in several ways becomes one, and places lead back to the text as given."""

from __future__ import annotations

import random
import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.kernels.words import composing
from corpusmill.kernels.words.plain_form import plain, plain_text

ODD = st.text(
    st.sampled_from(
        "ab1 '.,\u00e9e\u0301\u0323o\u0308\uff21\uff42\uff11\uff40\uff07\uff0c\uff3f"
        "\ufb01\ufb06\U0001d400\u2018\u02bc`\u00b4\u4e2d\u0438_\u1112\u1161\u11ab\u304b\u3099\u0921\u093c"
    )
)
COMPOSING = "".join(random.Random(4).sample([chr(c) for c in np.flatnonzero(composing.flags())], 400))
COMPOSING += "\u0301\u0323\u0327\u1161\u1162\u11a8\u3099\u093c\u0958\u05c1\u05b8\u0653" * 20


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


@settings(max_examples=600, deadline=None)
@given(st.lists(st.text(st.sampled_from(COMPOSING + "abe \u00e9\u1100\u1102\u304b\u0915\u05d0\u4e2d.1\n")), max_size=4))
def test_texts_have_normal_form_c(values):
    """Where nothing else is rewritten: whatever order of marks, Hangul, kana, Indic vowels, ideographs."""
    for sparse in (composing.SPARSE, 0, 1 << 30):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(composing, "SPARSE", sparse)
            made, _ = plain(texts(*values))
        assert made.to_pylist() == [unicodedata.normalize("NFC", value) for value in values]


@pytest.mark.parametrize(
    "text",
    [
        "Der M\u00fcller \u00f6ffnete fr\u00fch die T\u00fcr",
        "Ti\u1ebfng Vi\u1ec7t \u0111\u1eb7t n\u1ec1n t\u1ea3ng",
        "\ud55c\uad6d\uc5b4 \ubb38\uc11c",
        "\u30ac\u30ae\u30b0\u30b2\u30b4 \u30d1\u30d4\u30d7",
        "\u0622\u0623\u0624\u0625\u0626 \u0645\u064f\u062f\u0651\u064e\u0629",
        "\u0958\u0929\u0931 \u09cb\u09cc \u0bca\u0d4b",
        "\u1f71\u1f04 \u2126 \u212b \u212a",
        "\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd",
        "\uf900\ufa0d \U0002f800",
    ],
)
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_all_forms_of_a_text_have_one_plain_form(text, form):
    made, _ = plain(texts(text, unicodedata.normalize(form, text)))
    assert made[0] == made[1]


def test_composing_characters_are_those_of_unicode():
    second = {*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)}  # of Hangul, by arithmetic
    parts = [unicodedata.decomposition(chr(code)).split() for code in range(0x110000)]
    second |= {int(part[1], 16) for part in parts if len(part) == 2 and not part[0].startswith("<")}
    expected = {
        code
        for code in (*range(0xD800), *range(0xE000, 0x110000))
        if code in second or unicodedata.combining(chr(code)) or not unicodedata.is_normalized("NFC", chr(code))
    }
    found = set(np.flatnonzero(composing.flags()).tolist())
    assert found <= expected
    assert all(composing._LATER.match(chr(code)) for code in expected - found), "of a Unicode that is newer than 14.0"


@pytest.mark.parametrize("later", ["", " \u0ece"])
def test_texts_are_composed_alike_with_and_without_later_characters(later):
    text = unicodedata.normalize("NFD", "Tiếng Việt, 한국어, \u0958, ガ") + later
    assert composing.composed_text(text) == unicodedata.normalize("NFC", text)


def test_apostrophes_after_a_composed_letter_are_apostrophes():
    made, _ = plain(texts("café´s", "cafe\u0301´s"))
    assert made.to_pylist() == ["café's"] * 2
