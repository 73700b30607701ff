"""Metadata, and text out of JSON-LD and embedded state."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusmill.extractor.meta import Meta, meta
from corpusmill.extractor.model.embedded import MIN_TEXT_WORDS, article_body, embedded_text, state_text
from corpusmill.extractor.modes import extract

BODY = "The visible page is built by a script, but the text stands here as well. " * 5
PARAGRAPHS = [
    f"Paragraph {i} goes on for a while, as paragraphs do, about the harbour and its boats." for i in range(6)
]


def test_metadata() -> None:
    page = (
        "<html lang='en-GB'><head><title>A page | Site</title><meta property='og:title' content='A &amp; > page'>"
        "<meta name=author content='N. N.'><link rel=canonical href='/a'>"
        "<meta property='article:published_time' content='2024-05-06T07:08:09Z'></head>"
        "<body><a rel='license' href='https://creativecommons.org/licenses/by/4.0/'>CC BY</a></body></html>"
    )
    assert meta(page, "https://x.example/b?c") == Meta(
        "A & > page", "N. N.", "2024-05-06", "https://x.example/a", "en-gb",
        "https://creativecommons.org/licenses/by/4.0/",
    )  # fmt: skip


def test_a_page_that_says_nothing() -> None:
    assert meta("") == meta("<p>text</p>") == Meta()


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<title>Only\n a   title</title>", Meta(title="Only a title")),
        ("<meta property='article:author' content='https://facebook.example/x'>", Meta()),
        ("<meta name=date content=2024-13-45><time datetime=2024-02-03>", Meta(published="2024-02-03")),
        ("<html lang='zh_Hant_TW'>", Meta(declared_language="zh-hant-tw")),
        ("<html lang='{{ lang }}'>", Meta()),
        ("<link rel=canonical href='javascript:x'>", Meta()),
        ("<link rel=canonical href='http://[bad'>", Meta()),
        ("<p>the license is <a href=/terms>here</a>", Meta()),
        ("<meta name=author content='it's>ours'><title>T</title>", Meta(title="T", author="it")),
    ],
)
def test_odd_metadata(page: str, expected: Meta) -> None:
    assert meta(page) == expected


def test_metadata_and_text_from_json_ld() -> None:
    page = (
        '<body><div id=root></div><script type="application/ld+json">{"@graph": [{"@type": "NewsArticle", '
        f'"headline": "H", "author": [{{"name": "A"}}, "B"], "datePublished": "2023-01-02", '
        f'"articleBody": "{BODY}"}}]}}'
        "</script></body>"
    )
    assert meta(page) == Meta("H", "A, B", "2023-01-02")
    assert article_body(page) == BODY.strip()
    assert extract(page, "fast").text == BODY.strip()
    assert article_body("<script type='application/ld+json'>{broken</script>") == ""


def test_text_from_embedded_state() -> None:
    state = {
        "props": {
            "menu": [{"label": "Home"}, {"label": "About us"}],
            "article": {"title": "Boats", "blocks": [{"kind": "p", "html": f"<p>{text}</p>"} for text in PARAGRAPHS]},
            "next": [{"teaser": "Another story is about trains, which are longer than boats and louder, too."}],
            "script": "function (a) { return a.b; } " * 30,
        }
    }
    for script in (
        f'<script id="__NEXT_DATA__" type="application/json">{json.dumps(state)}</script>',
        f"<script>window.__INITIAL_STATE__ = {json.dumps(state)}; window.x = 1</script>",
    ):
        page = f"<body><div id=root></div>{script}</body>"
        assert state_text(page).split("\n\n") == PARAGRAPHS
        assert (extract(page, "fast").text or "").split("\n\n") == PARAGRAPHS


def test_the_visible_page_comes_first() -> None:
    visible = "".join(f"<p>Sentence {i} goes on for a while, as sentences do, about the weather.</p>" for i in range(9))
    state = json.dumps({"text": [f"{text} {text}" for text in PARAGRAPHS]})
    page = f'<body><main>{visible}</main><script type="application/json">{state}</script></body>'
    assert "harbour" not in (extract(page, "fast").text or "")


@pytest.mark.parametrize(
    "script",
    [
        "<script type=application/json>{broken</script>",
        "<script type=application/json>" + "[" * 100_000 + "</script>",
        "<script type=application/json>no end",
        "<script>__STATE__ = {a: undefined}</script>",
        '<script type="application/json">{"a": "Too few words for a text of its own, even as a sentence."}</script>',
    ],
)
def test_state_that_says_nothing(script: str) -> None:
    assert embedded_text(f"<body>{script}</body>") == ""
    assert MIN_TEXT_WORDS > 20


@pytest.mark.parametrize(
    "piece",
    ["<meta content='", '<link rel="', "<script type=application/ld+json>", "__STATE__={", "license<a ", "<time ",
     "<html a=", "https://", "<script type='application/json'", "<meta name=a content=b>", "<title>"],
)  # fmt: skip
def test_time_is_linear(piece: str) -> None:
    """Twenty times the page takes about twenty times as long, not four hundred."""
    meta(piece), embedded_text(piece)
    start = time.process_time()
    page = piece * (400_000 // len(piece))
    meta(page)
    embedded_text(page)
    assert time.process_time() - start < 3


@given(st.text(alphabet="<>=\"' metalinkrtyp/{}[]:,\\_SCRIPTld+json\n\x00\ud800", max_size=300))
def test_nothing_raises(page: str) -> None:
    for found in (meta(page, "http://x.example/"), meta(page)):
        for name in Meta.__dataclass_fields__:
            value = getattr(found, name)
            assert value is None or value.encode("utf-8")
    embedded_text(page)
