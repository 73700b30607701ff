"""Plain text and books."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tasks.acquire.text import without_marks
from tests.tasks.acquire.reading import outcomes, reasons

BOOK = """The Project Gutenberg eBook of A Book

This eBook is for the use of anyone anywhere

*** START OF THE PROJECT GUTENBERG EBOOK A BOOK ***

Chapter 1

It begins.

*** END OF THE PROJECT GUTENBERG EBOOK A BOOK ***

Licence and all that.
"""


def test_one_file_is_one_document(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"Caf\xe9 cr\xe8me\r\nand \x0b tea\r\n")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(BOOK.encode()))
    (tmp_path / "c.txt").write_bytes("ÜTF-16 text, some words of it".encode("utf-16"))
    (tmp_path / "d.txt").write_bytes(b"\0\1\2binary")
    (tmp_path / "e.txt").write_bytes(b" \n\t\n")
    (tmp_path / "f.txt.gz").write_bytes(gzip.compress(BOOK.encode())[:-30])
    (tmp_path / "g.txt.gz").write_bytes(gzip.compress(b"word " * 5_000_000, 1))
    (tmp_path / "h.md").write_bytes(b"not asked for")
    found = outcomes("text", tmp_path)
    assert [o.reason for o in found] == [None, None, None, "not_html", "empty_body", "truncated", "too_large"]
    assert found[0].text == "Café crème\nand \n tea"
    assert found[1].text == "Chapter 1\n\nIt begins."
    assert found[2].text == "ÜTF-16 text, some words of it"
    assert {o.extractor for o in found if o.text} == {"text"}
    assert [o.source_id for o in found[:2]] == ["a.txt", "b.txt.gz"]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("no marks\n*** stars ***", "no marks\n*** stars ***"),
        ("say *** START OF THE PROJECT GUTENBERG EBOOK *** inside", None),
        ("x\n***START OF THIS PROJECT GUTENBERG EBOOK A***\nbody\nEnd of Project Gutenberg's A\ny", "\nbody\n"),
        ("x\n*** START OF THE PROJECT GUTENBERG EBOOK A ***\nbody, no end", "\nbody, no end"),
        ("only an end\n*** END OF THE PROJECT GUTENBERG EBOOK A ***\ny", None),
        ("a\n*END*THE SMALL PRINT! FOR PUBLIC DOMAIN ETEXTS*Ver.04.29.93*END*\nbody", "\nbody"),
        ("line\n" * 1500 + "*** START OF THE PROJECT GUTENBERG EBOOK A ***\nlate", None),
    ],
)
def test_heads_and_feet_go_only_where_they_are_marked(text: str, kept: str | None) -> None:
    assert without_marks(text) == (text if kept is None else kept)


def test_texts_of_people(data_dir: Path) -> None:
    found = outcomes("text", data_dir / "train")
    assert reasons(found) == {None: 2}
    assert len(found[0].text or "") == 1_115_394 - 1
