"""How a rejected text is shown: as the lines that it has, since rules are about lines."""

from __future__ import annotations

import pytest

from corpusmill.dataset.rejects import EXCERPT_LINES, WIDTH, excerpt


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\u2028"])
def test_lines_of_a_text_are_shown_as_lines(end):
    assert excerpt(f"{end}Menu{end}  Home{end}{end}{end}The end.{end}") == [
        "  | Menu",
        "  |   Home",
        "  |",
        "  | The end.",
    ]


def test_long_lines_are_wrapped_and_many_are_cut_off_with_a_mark():
    shown = excerpt("word " * 60 + "\nnext")
    assert max(map(len, shown)) <= WIDTH
    assert shown[-1] == "  | next"
    assert excerpt("a\n" * EXCERPT_LINES) == ["  | a"] * EXCERPT_LINES
    assert excerpt("a\n" * (EXCERPT_LINES + 1)) == [*["  | a"] * (EXCERPT_LINES - 1), "  | a ..."]
    assert len(excerpt("word " * 100_000)) == EXCERPT_LINES


def test_nothing_drives_the_terminal():
    assert excerpt("a\x1b[31mb\x07\n\x9bc\td") == ["  | a [31mb", "  |  c d".rstrip()]
    assert excerpt("") == excerpt(" \n ") == []
