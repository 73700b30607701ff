"""Line edits: what each test removes, equal to plain Python for any text and any rules."""

from __future__ import annotations

import unicodedata
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill import schema
from corpusmill.kernels.edits import spans as spans
from corpusmill.kernels.edits.lines import line_edits
from corpusmill.kernels.edits.rules import EditRule, make_edit
from corpusmill.kernels.words.table import word_table
from tests.corpusmill.kernels import reference, reference_edits
from tests.corpusmill.kernels.texts import column, texts


def edit(test: str, name: str = "", **given: Any) -> EditRule:
    return make_edit({"name": name or test, "test": test, "says": "x", **given})


def clean(text: str, *rules: EditRule) -> str:
    array = column([text])
    return spans.apply(array, line_edits(array, rules).column("spans"))[0].as_py()


def kinds(text: str, *rules: EditRule) -> list[tuple[str, str]]:
    """(what is removed, by which rule)."""
    data = text.encode()
    found = line_edits(column([text]), rules).column("spans")[0].as_py()
    return [(data[s["start"] : s["end"]].decode(), s["kind"]) for s in found]


MARKS = [".", "?", "!", '"']
RULES = st.one_of(
    st.just(edit("blanks")),
    st.builds(lambda n: edit("newlines", max=n), st.integers(1, 3)),
    st.builds(lambda n: edit("long_word", max_chars=n), st.integers(1, 8)),
    st.builds(lambda n, k: edit("few_words", min_words=n, keep_empty=k), st.integers(1, 4), st.booleans()),
    st.builds(
        lambda b, k, u: edit("no_end_mark", marks=MARKS, unless=u, blanks=b, keep_empty=k),
        st.booleans(),
        st.booleans(),
        st.sampled_from([[], ["..."], ["…", "!!"]]),
    ),
    st.builds(
        lambda p, at, w, m, u, c: edit("phrase", phrases=p, at=at, whole_words=w, max_words=m, unless=u, cut=c),
        st.sampled_from([["the"], ["mill", "MILL the"], ["a", "the m"], ["été"], ["...", "mill"], ["Don't stop"]]),
        st.sampled_from(["anywhere", "start", "end"]),
        st.booleans(),
        st.sampled_from([0, 1, 3]),
        st.sampled_from([[], ["{"], ["with"]]),
        st.sampled_from(["line", "phrase"]),
    ),
    st.builds(lambda r: edit("capitals", max_ratio=r), st.sampled_from([0, 0.2, 0.5])),
    st.builds(lambda r: edit("digits", max_ratio=r), st.sampled_from([0, 0.5, 0.999999])),
    st.just(edit("counter", units=["likes", "the"])),
    st.builds(
        lambda n, p: edit("citation", numbers=n, phrases=p),
        st.booleans(),
        st.sampled_from([["edit"], ["edit", "the", "citation needed"]]),
    ),
    st.builds(lambda e: edit("address", endings=e), st.sampled_from([[], ["com", "org", "the"]])),
    st.just(edit("repeated_line")),
)
PIECES = st.sampled_from(
    [
        *("[12]", "[]", "[edit]", "[the]", "[[1]]", "[citation needed]", "[٣]", "mill[1]", "java[2]script"),
        *("1.2k likes", "12 the", "¡5,000,000 Likes!", "3 likes more", "x 3 likes", "7b  the.", "٣ likes"),
        *(
            "http://a.b/c?d=e,",
            "(www.mill.org)",
            "mill.com",
            "mill.the",
            "1.2.3.4:80/x",
            "a@b.org.",
            "ftp://",
            "300.1.2",
        ),
        *(
            "The Mill",
            "THE MILL",
            "don't stop ",
            "with",
            "{",
            "été",
            "Été",
            ".",
            "...",
            "\n",
            "\n\n",
            "\n\n\n",
            " \n",
            "the ",
        ),
    ]
)


@settings(max_examples=150)
@given(
    st.lists(st.one_of(texts(8), st.lists(PIECES, max_size=12).map("".join)), max_size=4),
    st.lists(RULES, min_size=1, max_size=6),
    st.integers(0, 1),
)
def test_edits_equal_plain_python(values: list[str], rules: list[EditRule], before: int) -> None:
    rules = [EditRule(f"r{i}", r.test, r.settings) for i, r in enumerate(rules)]
    values = [unicodedata.normalize("NFC", text) for text in values]
    array = column(values, before)
    got = line_edits(array, rules)
    assert got.schema == schema.EDITS
    for text, row, left in zip(
        values, got.to_pylist(), spans.apply(array, got.column("spans")).to_pylist(), strict=True
    ):
        pieces, expected = reference_edits.edited(text, rules)
        assert left == expected
        kind_at = {at: s["kind"] for s in row["spans"] for at in range(s["start"], s["end"])}
        for start, _, kind in pieces:
            assert kind in ("", kind_at[start])
        assert row["removed_words"] == reference_edits.removed_words(text, pieces)
        total = len(reference.words(text))
        assert row["removed_word_ratio"] == (row["removed_words"] / total if total else 0.0)
        ends = [0]
        for s in row["spans"]:
            assert ends[-1] <= s["start"] < s["end"] <= len(text.encode())
            ends.append(s["end"])


@settings(max_examples=60)
@given(st.lists(PIECES, max_size=12).map("".join), st.lists(RULES, min_size=1, max_size=6))
def test_edits_are_those_of_the_text_however_it_is_encoded(text: str, rules: list[EditRule]) -> None:
    rules = [EditRule(f"r{i}", r.test, r.settings) for i, r in enumerate(rules)]
    array = column([unicodedata.normalize(form, text) for form in ("NFC", "NFD")])
    got = line_edits(array, rules)
    composed, decomposed = got.to_pylist()
    assert [s["kind"] for s in composed["spans"]] == [s["kind"] for s in decomposed["spans"]]
    assert composed["removed_words"] == decomposed["removed_words"]
    one, other = spans.apply(array, got.column("spans")).to_pylist()
    assert unicodedata.normalize("NFC", one) == unicodedata.normalize("NFC", other)


@pytest.mark.parametrize(
    ("line", "again"),
    [
        ("Die Mühle steht still.", "Die Mu\u0308hle steht still."),
        ("방앗간은 조용하다.", unicodedata.normalize("NFD", "방앗간은 조용하다.")),
        ("か\u3099らがら回る水車。", "がらがら回る水車。"),
        ("A\u030angström at the mill", "\u212bngström at the mill"),
    ],
)
def test_a_line_that_is_repeated_in_another_encoding_goes(line: str, again: str) -> None:
    text = f"{line}\nAnother line.\n{again}\nThe end."
    assert clean(text, edit("repeated_line")) == f"{line}\nAnother line.\nThe end."
    assert kinds(text, edit("repeated_line")) == [(f"{again}\n", "repeated_line")]


def test_a_removed_line_takes_its_break_and_a_removed_tail_the_one_before() -> None:
    short = edit("few_words", min_words=3)
    assert clean("one two three\nshort\nfour five six\n", short) == "one two three\nfour five six\n"
    assert clean("one two three\nshort\n\nend", short) == "one two three"
    assert clean("short\none two three", short) == "one two three"
    assert clean("one two three\n", short) == "one two three\n"
    assert clean("short\nend", short) == ""
    assert clean("", short) == ""


def test_each_removal_is_counted_for_the_first_rule_that_makes_it() -> None:
    rules = (edit("few_words", min_words=3), edit("no_end_mark", marks=MARKS))
    text = "Two words\nThree words here\nThree words here.\nEnd\nno"
    assert kinds(text, *rules) == [
        ("Two words\n", "few_words"),
        ("Three words here\n", "no_end_mark"),
        ("\nEnd\nno", "few_words"),
    ]


def test_later_rules_see_the_line_without_what_earlier_ones_cut() -> None:
    cite, script = edit("citation"), edit("phrase", phrases=["javascript"])
    assert clean("Enable java[1]script now.\nA line [2].", cite, script) == "A line ."
    assert clean("Enable java[1]script now.\nA line [2].", script, cite) == "Enable javascript now.\nA line ."
    assert clean("one two [3]", edit("few_words", min_words=3), cite) == "one two "
    assert clean("one two [3]", cite, edit("few_words", min_words=3)) == ""


def test_a_line_with_an_exempting_phrase_stays() -> None:
    rule = edit("phrase", phrases=["privacy policy"], unless=["{", "lorem ipsum"])
    text = "Our Privacy Policy.\nOur privacy policy {x}.\nLorem Ipsum and privacy policy."
    assert clean(text, rule) == "Our privacy policy {x}.\nLorem Ipsum and privacy policy."


def test_phrases_are_cut_with_the_blank_beside_them_and_a_line_that_is_nothing_else_goes() -> None:
    more = edit("phrase", phrases=["read more..."], at="end", cut="phrase", max_words=10)
    assert clean("The mill turns. Read more...\nread more...\nRead more... and more", more) == (
        "The mill turns.\nRead more... and more"
    )
    assert clean(" ".join("abcdefghijk") + " read more...", more).endswith("read more...")
    sign = edit("phrase", phrases=["sign-in"], at="start", cut="phrase")
    assert clean("Sign-in to read\nPlease sign-in", sign) == "to read\nPlease sign-in"


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("3 likes", True),
        ("1.2K Likes!", True),
        ("« 12,345 shares »", True),
        ("12 likes and more", False),
        ("some 12 likes", False),
        ("12likes", False),
        ("12 unlikes", False),
        ("likes", False),
    ],
)
def test_counters_are_a_number_and_a_unit_alone(text: str, gone: bool) -> None:
    assert clean(text, edit("counter", units=["likes", "shares"])) == ("" if gone else text)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("see https://mill.example/a?b=c, or write", "see, or write"),
        ("see (www.mill.example) or mill.org.", "see () or."),
        ("the end.In time, version 1.2.3 at 10.0.0.1:80/x", "the end.In time, version 1.2.3 at"),
        ("mail a@mill.org now", "mail now"),
        ("e.g. mill.orgs and org", "e.g. mill.orgs and org"),
    ],
)
def test_addresses_go_with_the_blanks_before_them(text: str, left: str) -> None:
    assert clean(text, edit("address", endings=["org", "in"])) == left


def test_later_copies_of_a_line_go_whatever_their_case() -> None:
    text = "The Mill\n\n the mill \n\nThe miller\nTHE MILL\n"
    assert clean(text, edit("repeated_line")) == "The Mill\n\n\nThe miller"


def test_line_feeds_beyond_so_many_go() -> None:
    assert clean("a\n\n\n\nb\n\nc\n\n\n\nd", edit("newlines", max=2)) == "a\n\nb\n\nc\n\nd"


def test_blanks_go_at_the_ends_of_lines_and_breaks_at_the_ends_of_the_text() -> None:
    assert clean("\n \n  a b \n\n\tc　\n \n\n", edit("blanks")) == "a b\n\nc"


def test_capitals_and_digits_are_shares_of_a_lines_characters() -> None:
    assert clean("ABcd\nABCd\nÉÉé\n\nend", edit("capitals", max_ratio=0.5)) == "ABcd\n\nend"
    assert clean("123\n12³\n12a", edit("digits", max_ratio=0.999999)) == "12a"


def test_many_long_documents_need_more_room_than_there_is_at_first() -> None:
    text = "\n".join("x [1] y [2] z [3]" for _ in range(2000))
    array = column([text, "", text])
    got = line_edits(array, [edit("citation")], word_table(array))
    assert [len(row["spans"]) for row in got.to_pylist()] == [6000, 0, 6000]
    assert got.column("removed_words").to_pylist() == [6000, 0, 6000]
    assert got.column("removed_word_ratio").to_pylist() == [0.5, 0, 0.5]


def test_a_line_with_very_many_cuts_by_two_rules_takes_time_in_proportion() -> None:
    text = "[1] see http://mill.example/a " * 50_000
    rules = (edit("address"), edit("citation"))
    assert clean(text, *rules) == " see " * 50_000
    got = line_edits(column([text]), rules).column("spans")[0].as_py()
    assert len(got) == 100_000
    assert [s["start"] for s in got] == sorted(s["start"] for s in got)


def test_words_of_other_texts_are_refused() -> None:
    with pytest.raises(ValueError, match="1 texts and words of 2"):
        line_edits(column(["a"]), [edit("blanks")], word_table(column(["a", "b"])))
    with pytest.raises(ValueError, match="64 are possible"):
        line_edits(column(["a"]), [edit("blanks")] * 65)
    with pytest.raises(ValueError, match="text must"):
        line_edits(pa.array(["a"]), [edit("blanks")])
