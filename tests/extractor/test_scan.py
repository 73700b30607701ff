"""The scanner: lines, counts and containers without a DOM; time linear in the page."""

from __future__ import annotations

import time

import pytest

from corpusmill.extractor import vocabulary as v
from corpusmill.extractor.scan import Box, Line, scan


def texts(html: str) -> list[str]:
    page = scan(html.encode())
    return [page.text[a:b].tobytes().decode() for a, b in page.lines[:, :2].tolist()]


@pytest.mark.parametrize(
    ("html", "lines"),
    [
        ("", []),
        ("plain words", ["plain words"]),
        ("<p>one<p>two</p>three", ["one", "two", "three"]),
        ("a  <b>bold</b>\n\n word", ["a bold word"]),
        ("a<br>b<br/>c", ["a", "b", "c"]),
        ("<ul><li>one<li>two</ul>", ["one", "two"]),
        ("<table><tr><td>a<td>b</tr><tr><th>c</th></table>", ["a", "b", "c"]),
        ("<script>if (a<b) '<p>no</p>'</script>yes", ["yes"]),
        ("<style>p{}</style><svg><text>no</text></svg>yes", ["yes"]),
        ("<svg>never closed <p>yes", ["never closed", "yes"]),
        ("<!-- no <p>no</p> -->yes<!doctype html>", ["yes"]),
        ("a < b and <3", ["a < b and <3"]),
        ('<p title="a > b">yes</p>', ["yes"]),
        ("&nbsp;x&amp;y&nbsp;", ["x&amp;y"]),
        ("<pre>def f():\n    return 1\n</pre>", ["def f():\n    return 1\n"]),
        ("<pre>a<div>b</div></pre>", ["a\nb\n"]),
        ("x <math><mi>y</mi><annotation encoding='application/x-tex'>y^2</annotation></math> z", ["x $y^2$ z"]),
        ("<script type='math/tex'>a<b</script> then", ["$a<b$ then"]),
        ("é ü 中文", ["é ü 中文"]),
    ],
)
def test_lines_of_a_page(html: str, lines: list[str]) -> None:
    assert [one.rstrip() for one in texts(html)] == [one.rstrip() for one in lines]


def test_counts_of_a_line() -> None:
    page = scan("<title>Some Words</title><p>Two words, <a href=x>a link</a> and 12. 中文字 end!</p>".encode())
    line = page.lines[0]
    assert page.title_words == 2
    assert line[Line.WORDS] == 10
    assert line[Line.LINK_WORDS] == 2
    assert line[Line.LINKS] == 1
    assert line[Line.COMMAS] == 1
    assert line[Line.ENDS] == 2
    assert line[Line.DIGITS] == 2
    assert line[Line.TITLE_WORDS] == 1
    assert line[Line.KIND] == v.KINDS.index("p")


def test_containers_and_their_roles() -> None:
    page = scan(b"<body><div class='sideBar'><p>a</p></div><article id=x><p>b</p></article><p>c</p></body>")
    inside = [page.boxes[line[Line.CONTAINER]] for line in page.lines]
    assert inside[0][Box.ROLES] & v.ROLE_BITS["aside"]
    assert inside[1][Box.ROLES] & v.ROLE_BITS["article"]
    assert not inside[2][Box.ROLES] & v.ROLE_BITS["article"]
    assert [int(b) for b in inside[1][[Box.FIRST_LINE, Box.LAST_LINE]]] == [1, 2]


def test_hidden_elements_are_marked() -> None:
    page = scan(b"<div style='display: none'>a</div><div hidden>b</div><div aria-hidden=true>c</div><div>d</div>")
    hidden = [bool(page.boxes[line[Line.CONTAINER]][Box.ROLES] & v.HIDDEN) for line in page.lines]
    assert hidden == [True, True, True, False]


@pytest.mark.parametrize(
    "piece",
    [
        "<div>", "</div>", "<p>", "<br>a", "<ul><li><div>", "<", "<a href=x>", "<!-- ", "<svg>", "<math>", "<title>",
        "<span class='katex katex-html'>", "<table><tr><td>", "<script>", "word ", "&amp", "<pre>", "<td>", "<x-y>",
    ],
)  # fmt: skip
def test_time_is_linear_in_the_page(piece: str) -> None:
    scan(b"<p>compiled</p>")
    start = time.process_time()
    scan(piece.encode() * 300_000)
    assert time.process_time() - start < 2.0


def test_a_million_attributes_and_a_long_paragraph() -> None:
    start = time.process_time()
    assert len(scan(b"<div " + b"a=1 class=b " * 10**6 + b">x")) == 1
    assert len(scan(b"<p>" + b"word and more. " * 700_000)) == 1
    assert len(scan(b"<div>" * 10**6 + b"x")) == 1
    assert time.process_time() - start < 3.0
