"""Text digests: equal to plain Python, blind to case, white space and punctuation, and to nothing else."""

from __future__ import annotations

import hashlib

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.kernels.duplicates.text_digest import text_digest
from tests.corpusmill.kernels import reference
from tests.corpusmill.kernels.texts import batches, column

NAMES = st.text(st.characters(whitelist_categories=("Lu", "Ll"), max_codepoint=0x24F), min_size=1, max_size=6)
BETWEEN = st.sampled_from([" ", "\n", " -- ", ", ", "! ", "\u00a0", "\r\n\r\n", " (", ") ", "… ", ": \u2028"])


def digests(*values: str) -> list[bytes]:
    return text_digest(column(list(values))).to_pylist()


@settings(max_examples=60)
@given(batches(), st.integers(0, 2))
def test_digests_equal_plain_python(values: list[str], before: int) -> None:
    got = text_digest(column(values, before))
    assert got.type == pa.binary(16)
    assert got.to_pylist() == [reference.text_digest(text) for text in values]


def recased(name: str, data: st.DataObject) -> str:
    """The name in upper case or as it is; some letters do not come back from upper case."""
    return name.upper() if data.draw(st.booleans()) and name.upper().lower() == name.lower() else name


@settings(max_examples=60)
@given(st.lists(NAMES.filter(lambda name: "\u0130" not in name), min_size=1, max_size=8), st.data())
def test_texts_that_differ_in_blanks_case_and_punctuation_are_equal(names: list[str], data: st.DataObject) -> None:
    def written() -> str:
        cased = [
            name.upper() if data.draw(st.booleans()) and name.upper().lower() == name.lower() else name
            for name in names
        ]
        return data.draw(BETWEEN) + "".join(name + data.draw(BETWEEN) for name in cased)

    assert len(set(digests(written(), written(), " ".join(names)))) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("the mill", "the mills"),
        ("a b", "ab"),
        ("3.14", "314"),
        ("a b", "b a"),
        ("...", "!!!"),
        ("", "..."),
        ("日本", "日 木"),
    ],
)
def test_other_texts_differ(one: str, other: str) -> None:
    assert len(set(digests(one, other))) == 2


def test_apostrophes_and_invisible_characters_do_not_matter() -> None:
    assert len(set(digests("don't stop", "DON’T stop", "do\u00adn't\ufeff stop."))) == 1


def test_a_text_without_words_is_taken_as_it_stands() -> None:
    assert digests("", "  \n", "\t") == [hashlib.sha256(b"").digest()[:16]] * 3
    assert digests(" *** \n") == [hashlib.sha256(b"***").digest()[:16]]


def test_the_digest_is_that_of_the_folded_words() -> None:
    assert digests("The Mill's 3.14 WHEELS — Straße, ΟΔΟΣ!") == [
        hashlib.sha256("the mills 3.14 wheels straße οδοσ".encode()).digest()[:16]
    ]


def test_folds_that_are_longer_than_their_character_fit() -> None:
    text = "Ⱥ" * 100_000  # two bytes become three
    assert digests(text) == [hashlib.sha256(("ⱥ" * 100_000).encode()).digest()[:16]]


def test_an_empty_column_has_no_digests() -> None:
    assert len(text_digest(column([]))) == 0
