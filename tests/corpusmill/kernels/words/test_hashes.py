"""Hashes of words alone are those of the word table, whatever stands around a word."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from corpusmill.kernels.words.hashes import word_hashes
from corpusmill.kernels.words.scan import LETTERS, WIDE, byte_classes
from corpusmill.kernels.words.table import IS_WORD, word_table
from tests.corpusmill.kernels.texts import batches, column

PIECES = (
    *"ab1A '.,_-!\n\u00e9e\u0301\u00ad\u200b\u4e2d\u0e01\u0e34\u00b7\u2019\u201c\u00a0\uff21\u0660",
    *("\U0001d400", "abcdefgh", "sixteen letters", "a-word-of-seventeen", "z" * 17, "Z" * 63, "." * 64, "\u00e9" * 32),
)


def assert_the_same(texts: pa.LargeStringArray) -> None:
    offsets, hashes = word_hashes(texts)
    table = word_table(texts)
    assert offsets.tolist() == [0, *np.cumsum(table.word_counts()).tolist()]
    assert np.array_equal(hashes, table.folded[table.flags & IS_WORD > 0])


@settings(max_examples=800, deadline=None)
@given(st.lists(st.one_of(st.lists(st.sampled_from(PIECES), max_size=60).map("".join), st.text()), max_size=4))
def test_the_hashes_are_those_of_the_word_table(values: list[str]) -> None:
    assert_the_same(pa.array(values, pa.large_string()))


@settings(max_examples=300, deadline=None)
@given(batches(), st.integers(0, 3))
def test_slices_are_read_in_place(values: list[str], before: int) -> None:
    assert_the_same(column(values, before))


@pytest.mark.parametrize("size", range(60, 70))
def test_words_end_where_a_mask_ends(size: int) -> None:
    values = [("x" * size)[:-k] + "y " + "\u00e9" * k for k in range(1, 12)] + ["a" * size, "." * size + "b"]
    assert_the_same(pa.array(values, pa.large_string()))
    assert_the_same(pa.array([" ", *values, "it's"], pa.large_string()).slice(1, 5))


def test_texts_of_one_letter_words_and_scripts_without_spaces() -> None:
    """More words than every second byte has one need more room."""
    assert_the_same(pa.array(["", "a", "a b", "1,000.5 _x_ l'\u00e9t\u00e9", "\u4e2d\u6587" * 99], pa.large_string()))
    assert_the_same(pa.array(["a b c d e f", "a", "x", ""], pa.large_string()))
    assert_the_same(pa.array(["ab\u0301cd" * 50, "a\u4e2d" * 50], pa.large_string()))


def test_letters_and_digits_of_the_masks_are_those_of_the_unicode_table() -> None:
    classes = byte_classes()
    letters = [byte for byte in range(256) if chr(byte).isalnum() and byte < 0x80]
    assert np.flatnonzero(classes == LETTERS).tolist() == letters
    assert np.flatnonzero(classes == WIDE).tolist() == list(range(0x80, 0x100))


def test_real_pages(data_dir) -> None:
    """In many languages."""
    pages: list[str] = []
    for file in sorted((data_dir / "mini-crawl").glob("crawl-data/*/segments/*/wet/*.gz"))[:2]:
        with file.open("rb") as stream:
            records = (r for r in ArchiveIterator(stream) if r.rec_type == "conversion")
            pages += [record.content_stream().read().decode("utf-8") for record in records]
    assert len(pages) > 500
    assert_the_same(pa.array(pages, pa.large_string()))
