"""The line model: what it keeps, the structure of its text, its evaluator, metadata."""

from __future__ import annotations

import numpy as np
import pytest

from corpusmill.extractor.model.assemble import assemble
from corpusmill.extractor.model.features import NAMES, features
from corpusmill.extractor.model.lines import chosen, judge
from corpusmill.extractor.model.load import MODEL, Trees, load_model
from corpusmill.extractor.modes import extract
from corpusmill.extractor.page import Page
from corpusmill.extractor.scan.scan import scan

PROSE = "".join(f"<p>Sentence {i} goes on for a while, as sentences do, about the harbour.</p>" for i in range(15))


def text_of(html: str, *, markdown: bool = False) -> str:
    page = scan(html.encode())
    return assemble(page, np.ones(len(page), np.bool_), markdown=markdown)


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<h1>T</h1><p>a</p><p>b<br>c</p>", "T\n\na\n\nb\nc"),
        ("<ul><li>a<li>b<ul><li>c</ul></ul>", "- a\n- b\n- c"),
        ("<table><tr><th>a<th>b<tr><td>1<td>2</table>", "a\tb\n1\t2"),
        ("<pre>if x:\n    y\n</pre>", "if x:\n    y"),
        ("<dl><dt>a<dd>b</dl>", "a\nb"),
        ("<p>R&amp;D &lt;x&gt; caf&eacute;</p>", "R&D <x> café"),
    ],
)
def test_structure_in_text(html: str, text: str) -> None:
    assert text_of(html) == text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<h2>T</h2><p>a</p>", "## T\n\na"),
        ("<ol><li>a<li>b</ol>", "1. a\n2. b"),
        ("<table><tr><th>a<th>b<tr><td>1<td>2</table>", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
        ("<pre>x\n  y</pre>", "```\nx\n  y\n```"),
    ],
)
def test_structure_in_markdown(html: str, text: str) -> None:
    assert text_of(html, markdown=True) == text


def test_layout_tables_are_no_tables() -> None:
    assert "\t" not in text_of(f"<table><tr><td>{PROSE}</td><td>side</td></tr></table>")


def test_formulas_come_once_as_tex() -> None:
    katex = (
        "<p>So <span class='katex'><span class='katex-mathml'><math><mi>x</mi>"
        "<annotation encoding='application/x-tex'>x^2</annotation></math></span>"
        "<span class='katex-html' aria-hidden='true'><span>x</span><span>2</span></span></span> holds.</p>"
    )
    assert text_of(katex) == "So $x^2$ holds."


def test_the_article_is_kept_and_the_rest_is_not() -> None:
    html = (
        "<body><nav><ul><li><a href=/>Home</a><li><a href=/b>News</a></ul></nav>"
        f"<main><h1>Harbours</h1>{PROSE}</main><footer>All rights reserved</footer></body>"
    )
    lines = judge(Page(html))
    assert lines.text().startswith("Harbours")
    assert "Sentence 14" in lines.text()
    assert "Home" not in lines.text()
    assert "rights" not in lines.text()
    assert lines.confidence > 0.8


def test_kept_lines_make_the_expected_f1_greatest() -> None:
    page = scan(b"<p>a b c d e f</p><p>g h</p><p>i j k</p>")
    words = np.array([6.0, 2.0, 3.0])
    p = np.array([0.9, 0.2, 0.5])
    keep, expected = chosen(page, p)

    def f1(kept: tuple[bool, ...]) -> float:
        return 2 * (words * p)[list(kept)].sum() / (words[list(kept)].sum() + (words * p).sum())

    options = {(True, b, c): f1((True, b, c)) for b in (False, True) for c in (False, True)}
    assert tuple(keep.tolist()) == max(options, key=options.__getitem__)
    assert expected == pytest.approx(max(options.values()))


def test_trees_send_a_row_left_at_the_threshold() -> None:
    trees = Trees(
        np.array([0, -4], np.int32),
        np.array([1, 0], np.uint8),
        np.array([0.5, 2.0], np.float32),
        np.array([[-1, 1], [-2, -3]], np.int32),
        np.array([1.0, 2.0, 4.0, 0.25]),
    )
    x = np.array([[0, 0.5], [2, 0.6], [3, 0.6]], np.float32)
    assert trees.raw(x).tolist() == [1.25, 2.25, 4.25]


def test_the_shipped_model_is_small_and_fits_the_features() -> None:
    model = load_model()
    assert MODEL.stat().st_size <= 600_000
    assert set(model.trees) == {"lines", "gate", "verdict"}
    assert model.trees["lines"].feature.max() < len(NAMES)
    assert len(NAMES) < 256
    assert len(model.digest) == 64


def test_features_are_finite() -> None:
    for html in (b"", b"x", b"<p>a</p>" * 50, b"<div><table><tr><td>" * 400 + b"x", b"<a href=x>y</a>" * 300):
        assert np.isfinite(features(scan(html))).all()


def test_forum_text_behind_noscript_is_found() -> None:
    page = f"<body><div id=app></div><noscript><div class=topic-body>{PROSE}</div></noscript></body>"
    assert "Sentence 9" in (extract(page, "fast").text or "")
