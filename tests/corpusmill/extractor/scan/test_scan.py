"""The scanner: lines, counts and containers without a DOM; time linear in the page."""

from __future__ import annotations

import ctypes
import mmap
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from corpusmill.extractor.scan import vocabulary as v
from corpusmill.extractor.scan.depth import deeper_than
from corpusmill.extractor.scan.scan import Box, Line, scan
from tests.corpusmill.extractor import mutations, samples
from tests.corpusmill.extractor.plain_scan import plain_scan


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


def differences(html: bytes) -> str:
    """Where the scanner and plain Python disagree; empty where they do not."""
    page, (text, lines, boxes, title_words) = scan(html), plain_scan(html)
    used = int(page.lines[-1, Line.STOP]) if len(page) else 0
    if page.lines.shape != lines.shape or page.boxes.shape != boxes.shape:
        return f"{len(page)} lines and {len(page.boxes)} containers, not {len(lines)} and {len(boxes)}"
    for names, found, wanted in ((Line, page.lines, lines), (Box, page.boxes, boxes)):
        for row, column in np.argwhere(found != wanted).tolist():
            return f"{names(column).name} of {names.__name__} {row}: {found[row, column]}, not {wanted[row, column]}"
    if page.text[:used].tobytes() != text:
        return f"text {page.text[:used].tobytes()!r}, not {text!r}"
    return "" if page.title_words == title_words else f"{page.title_words} words of the title, not {title_words}"


@settings(max_examples=300)
@given(mutations.pages)
def test_the_scanner_equals_plain_python(page: str) -> None:
    assert differences(page.encode("utf-8")) == ""


HARBOUR = (
    "<title>Of harbours &amp; ships</title><body class='page'><nav><ul><li><a href='/'>Home</a><li>News</ul></nav>"
    "<div id=mainContent class='post entry'><h1>Of harbours</h1><p>A ship, <b>two</b> ships. 中文。</p><table><tr>"
    "<th>Ship<td>12 m</table><pre>a\n  b</pre><math><annotation encoding='application/x-tex'>x</annotation></math>"
).encode()


@settings(max_examples=200)
@given(mutations.mutated(HARBOUR))
def test_on_broken_bytes_too(page: bytes) -> None:
    assert differences(page) == ""


def test_on_pages_of_every_archive(data_dir: Path) -> None:
    found = dict(samples.pages(data_dir, per_archive=3))
    assert len(found) > 30
    assert {name: wrong for name, page in found.items() if (wrong := differences(page))} == {}


def test_a_page_that_ends_with_its_memory_is_read_to_its_end_and_no_further() -> None:
    """Bytes are found 32 at a time, which may not touch memory that is not there."""
    memory = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(address + mmap.PAGESIZE), mmap.PAGESIZE, 0) == 0
    try:
        for page in (b"<p title='" + b"x" * 40, b"<script>" + b"a < b " * 9, b"<!-- " + b"-" * 37, b"<p>word &amp"):
            begin = address + mmap.PAGESIZE - len(page)
            ctypes.memmove(begin, page, len(page))
            there = (ctypes.c_char * len(page)).from_address(begin)
            assert (scan(there).lines == scan(page).lines).all()  # type: ignore[arg-type]
            assert deeper_than(there, 0) is deeper_than(page, 0)  # type: ignore[arg-type]
    finally:
        libc.mprotect(ctypes.c_void_p(address + mmap.PAGESIZE), mmap.PAGESIZE, 3)
