"""The word table: spans, hashes, flags; equal to plain Python for any text, and the same for ever."""

from __future__ import annotations

import hashlib
import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.kernels.bytes import unicode_table
from corpusmill.kernels.bytes.unicode_table import LIMIT, Kind
from corpusmill.kernels.words.table import HAS_LETTER, HAS_NON_PUNCTUATION, IS_WORD, slices, word_table
from tests.corpusmill.kernels import reference
from tests.corpusmill.kernels.texts import batches, column, texts


def spelled(text: str) -> list[str]:
    """The tokens of one text."""
    table, data = word_table(column([text])), text.encode()
    return [data[a:b].decode() for a, b in zip(table.start, table.stop, strict=True)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't stop -- the well-known U.S. mill_1!", "Don't stop -- the well - known U . S . mill_1 !"),
        ("'quoted' rock'n'roll it''s", "' quoted ' rock'n'roll it '' s"),
        ("1,000.50 3.14. v2.0 a.b 5,x", "1,000.50 3.14 . v2.0 a . b 5 , x"),
        ("wait... no…… ...", "wait ... no …… ..."),
        ("日本語 カー か\u3099", "日 本 語 カ ー か\u3099"),
        ("한국어", "한 국 어"),
        ("ภาษาไทย", "ภ า ษ า ไ ท ย"),
        ("Straße co\u00adop naïve", "Straße co\u00adop naïve"),
        ("עברית צה״ל", "עברית צה״ל"),
        ("a\u200bb \ufeffc \u0301", "a b c \u0301"),
        ("👍🏽 ❤️ !!! ),", "👍 🏽 ❤️ !!! ) ,"),
        ("l'été l·l _x_ __", "l'été l·l _ x _ __"),
    ],
)
def test_words_are_cut_as_documented(text: str, expected: str) -> None:
    assert spelled(text) == expected.split(" ")


@settings(max_examples=200)
@given(batches(), st.integers(0, 3))
def test_word_table_equals_plain_python(values: list[str], before: int) -> None:
    table = word_table(column(values, before))
    assert len(table) == len(values)
    for d, text in enumerate(values):
        expected = reference.tokens(text)
        rows = slice(table.offsets[d], table.offsets[d + 1])
        data = text.encode()
        got = [data[a:b].decode() for a, b in zip(table.start[rows], table.stop[rows], strict=True)]
        assert got == [token for token, _ in expected]
        assert table.chars[rows].tolist() == [len(token) for token in got]
        assert table.exact[rows].tolist() == [reference.hash_bytes(token.encode()) for token in got]
        assert table.folded[rows].tolist() == [reference.folded_hash(token, word) for token, word in expected]
        assert table.flags[rows].tolist() == [reference.flags(token, word) for token, word in expected]
        assert table.word_counts()[d] == len(reference.words(text))


@settings(max_examples=50)
@given(texts())
def test_a_text_gives_the_same_words_wherever_it_lies(text: str) -> None:
    alone, among = word_table(column([text])), word_table(column(["x" * 3, text, "y"], before=2))
    rows = slice(among.offsets[1], among.offsets[2])
    assert alone.folded.tolist() == among.folded[rows].tolist()
    assert alone.start.tolist() == among.start[rows].tolist()


def test_every_ascii_character_between_others_equals_plain_python() -> None:
    pairs = [(chr(code), other) for code in range(0x80) for other in ("", ".", "'", "é", "#")]
    for text in ("".join(f"{a}{b}x{b}{a} {b}1{a}2" for a, b in pairs[k:]) for k in range(5)):
        assert spelled(text) == [token for token, _ in reference.tokens(text)]


def test_case_apostrophes_and_invisible_characters_leave_no_trace_in_the_folded_hash() -> None:
    folded = word_table(column(["Don't DON’T dont do\u00adnt"])).folded
    assert len(set(folded.tolist())) == 1
    assert len(set(word_table(column(["ΟΔΟΣ οδος οδοσ"])).folded.tolist())) == 1
    assert len(set(word_table(column(["3.14 314 3,14"])).folded.tolist())) == 3


def test_hashes_of_all_short_words_differ() -> None:
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    words = [a + b + c for a in letters for b in letters for c in letters] + [f"word{i}" for i in range(100_000)]
    table = word_table(column([" ".join(words)]))
    assert len(np.unique(table.folded)) == len(words)
    assert len(np.unique(table.folded >> np.uint64(32))) > 0.9999 * len(words)


def test_hashes_stay_as_they_are() -> None:
    """Golden: a change here changes stored signatures; raise the VERSION of the stages that count words."""
    text = "The Mill's 3.14 wheels — Straße ΟΔΟΣ 日本 ภาษา l·l… don’t 🙂"
    table = word_table(column([text]))
    digest = hashlib.sha256(b"".join(a.tobytes() for a in (table.folded, table.exact, table.flags))).hexdigest()
    assert digest[:16] == "348f9717346bcd6b"


@pytest.mark.parametrize("text", ["(),.;" * 50, "a,b;c(" * 40, "中" * 90 + "!?" * 90, "x", "!"])
def test_texts_with_a_token_a_byte_have_room(text: str) -> None:
    table = word_table(pa.array([text, "", text], pa.large_string()))
    expected = reference.tokens(text)
    spans = [(text.encode()[a:b].decode()) for a, b in zip(table.start, table.stop, strict=True)]
    assert len(spans) == 2 * len(expected)
    assert spans[: len(expected)] == spans[len(expected) :]
    assert "".join(spans) == 2 * text


def test_empty_columns_and_empty_texts_have_no_tokens() -> None:
    assert len(word_table(column([]))) == 0
    table = word_table(column(["", " \n", "\u200b\u200b", "\ufeff"], before=1))
    assert table.offsets.tolist() == [0] * 5


@pytest.mark.parametrize("wrong", [pa.array(["a"]), pa.array([None, "a"], pa.large_string()), ["a"]])
def test_other_columns_are_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match="text must"):
        word_table(wrong)


def test_a_document_beyond_int32_is_refused_before_it_is_read() -> None:
    offsets = pa.py_buffer(np.array([0, 2**31], np.int64).tobytes())
    data = pa.py_buffer(np.empty(2**31, np.uint8))  # never touched, so it takes no memory
    with pytest.raises(ValueError, match="text must have less than 2147483648 bytes a document"):
        word_table(pa.Array.from_buffers(pa.large_string(), 1, [None, offsets, data]))


def test_slices_cover_a_column_once_and_keep_long_documents_whole() -> None:
    array = column(["a" * 600_000, "b", "c" * 4_000_000, "", "d" * 1_200_000, "e"], before=1)
    parts = list(slices(array))
    assert [(first, len(part)) for first, part in parts] == [(0, 2), (2, 1), (3, 1), (4, 1), (5, 1)]
    assert [text for _, part in parts for text in part.to_pylist()] == array.to_pylist()


def test_a_cut_utf8_sequence_is_one_stray_character_and_reads_nothing_beyond_it() -> None:
    array = pa.Array.from_buffers(
        pa.large_string(), 2, [None, pa.py_buffer(np.array([0, 3, 4], np.int64).tobytes()), pa.py_buffer(b"ab\xe6a")]
    )
    table = word_table(array)
    assert (table.start.tolist(), table.stop.tolist()) == ([0, 2, 0], [2, 3, 1])


def test_the_table_is_what_unicodedata_says_of_every_character_it_agrees_to_know() -> None:
    """Unicode 14.0 in the file; an interpreter with a later version only adds characters."""
    table = unicode_table.load_table()
    for code in range(LIMIT):
        if unicodedata.category(chr(code)) != "Cn" and int(table[code]) != unicode_table.entry_from_unicodedata(code):
            assert unicodedata.unidata_version != "14.0.0", hex(code)
            assert Kind(int(table[code]) >> 21 & 7) == Kind.SYMBOL, hex(code)


def test_the_table_stays_as_it_is() -> None:
    assert hashlib.sha256(unicode_table.load_table().tobytes()).hexdigest()[:16] == "fb3bfb3a06bc6cf1"


def test_folding_twice_is_folding_once() -> None:
    for code in range(LIMIT):
        folded = unicode_table.entry_of(code) & unicode_table.FOLD_MASK
        assert unicode_table.entry_of(folded) & unicode_table.FOLD_MASK == folded or folded == 0


def test_flags_say_letter_punctuation_and_word() -> None:
    text = "abc 12 ! • １ 日"
    assert dict(zip(spelled(text), word_table(column([text])).flags.tolist(), strict=True)) == {
        "abc": HAS_LETTER | HAS_NON_PUNCTUATION | IS_WORD,
        "12": HAS_NON_PUNCTUATION | IS_WORD,
        "!": 0,
        "•": HAS_NON_PUNCTUATION,
        "１": IS_WORD,  # datatrove's list of punctuation holds the full-width 1
        "日": HAS_LETTER | HAS_NON_PUNCTUATION | IS_WORD,
    }
