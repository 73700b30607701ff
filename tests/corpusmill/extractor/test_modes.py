"""Modes of extraction: what they keep, and what they refuse before parsing."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.extractor.modes import MODES, Mode, extract
from corpusmill.extractor.scan.depth import deeper_than
from corpusmill.readers.text import clean_text

ARTICLE = "".join(
    f"<p>Paragraph {i} says something at length about one subject, so that it counts.</p>" for i in range(12)
)
PAGE = (
    "<html><head><title>T</title></head><body><nav><a href=/>Home</a> <a href=/a>Imprint</a></nav>"
    f"<article><h1>A heading</h1>{ARTICLE}</article><footer>All rights reserved</footer></body></html>"
)


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_keeps_the_article(mode: Mode) -> None:
    found = extract(PAGE, mode)
    assert found.reason is None
    assert found.text is not None
    assert all(f"Paragraph {i} says" in found.text for i in range(12))
    assert ("Imprint" in found.text) is (mode == "plain")
    assert found.extractor == {"auto": "lines", "fast": "lines", "union": "fusion"}.get(mode, mode)
    assert found.text == found.text.strip() == clean_text(found.text)[0]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "page", ["", "  ", "<html></html>", "<!-- only this -->", "<script>var x = '<p>no</p>'</script>"]
)
def test_pages_without_text_say_so(page: str, mode: Mode) -> None:
    assert extract(page, mode).reason == "no_text"


def test_control_characters_of_entities_do_not_reach_the_text() -> None:
    found = extract(PAGE.replace("Paragraph 3", "Para&#0;&#7;&#x1b;graph&#xD800; 3"), "auto")
    assert clean_text(found.text or "") == (found.text, 0)


def test_auto_finds_an_article_in_a_container_with_a_misleading_name() -> None:
    hidden = f"<html><body><div class='sidebar'><div>{ARTICLE}</div></div><main><p>Hello.</p></main></body></html>"
    assert "Paragraph 5" not in (extract(hidden, "resiliparse").text or "")
    assert "Paragraph 5" in (extract(hidden, "auto").text or "")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["B20-deep-nesting.html", "B20-deep-lists.html"])
def test_deep_pages_are_extracted_or_too_deep(data_dir: Path, name: str, mode: Mode) -> None:
    page = (data_dir / "hostile" / name).read_text(encoding="utf-8")
    assert extract(page, mode).reason == "too_deep"
    generous = extract(page, mode, max_depth=20_000)
    if mode == "trafilatura":
        assert generous.reason == "too_deep"  # libxml2 gives up in silence; an empty success would be a lie
    else:
        assert "B20-BEGIN" in (generous.text or "")
        assert "B20-END" in (generous.text or "")


def test_a_wide_table_is_extracted(data_dir: Path) -> None:
    page = gzip.decompress((data_dir / "hostile" / "B21-wide-table.html.gz").read_bytes()).decode("utf-8")
    found = extract(page, "auto")
    assert "B21-BEGIN" in (found.text or "")
    assert "B21-END" in (found.text or "")
    assert len(found.text or "") > 390_000


def test_empty_and_wrong_bodies_have_no_text(data_dir: Path) -> None:
    from corpusmill.readers.outcomes import outcomes

    pages = [one.html for one in outcomes(data_dir / "hostile" / "B22-empty-and-wrong-bodies.warc.gz") if one.html]
    found = [extract(page, "auto") for page in pages]
    assert [one.reason for one in found] == ["no_text", "no_text", None]
    assert "B22OK-BEGIN" in (found[2].text or "")
    assert "B22OK-END" in (found[2].text or "")


@pytest.mark.parametrize(
    ("page", "deeper"),
    [
        ("<div>" * 2001, True),
        ("<div>" * 1900 + "</div>" * 1900 + "<div>" * 1900, False),
        ("<div></b>" * 5000, True),
        ("<span><div></span>" * 5000, True),
        ("<ul><li>" * 1500, True),
        ("<p>" * 9000 + "<br>" * 9000 + "<img src=x>" * 9000 + "<a href=x>" * 9000, False),
        ("<DIV>x</dIv>" * 9000, False),
        ("<tr><td>" * 9000, False),
        ("<" * 100_000, False),
    ],
)
def test_depth_is_bounded_from_the_tags(page: str, deeper: bool) -> None:
    assert deeper_than(page.encode(), 2000) is deeper


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.sampled_from(("flip", "drop", "double", "tag")), st.floats(0, 1), st.integers(1, 200)), max_size=6
    ),
    st.sampled_from(MODES),
)
def test_mutated_pages_never_raise(mutations: list[tuple[str, float, int]], mode: Mode) -> None:
    page = PAGE
    for kind, place, amount in mutations:
        at = int(place * len(page))
        if kind == "flip":
            page = page[:at] + chr(amount) + page[at + 1 :]
        elif kind == "drop":
            page = page[:at] + page[at + amount :]
        elif kind == "double":
            page = page[:at] + page[at : at + amount] * 3 + page[at + amount :]
        else:
            page = page[:at] + "<table><form><svg></p><!--"[: amount % 27] + page[at:]
    found = extract(page, mode)
    assert (found.text is None) is (found.reason is not None)
    assert found == extract(page, mode)


TOKEN = re.compile(r"[぀-ヿ㐀-鿿가-힯]|[^\W぀-ヿ㐀-鿿가-힯]+")


def word_f1(text: str, truth: str) -> float:
    """Word F1 of the scoring definition."""
    out, want = Counter(TOKEN.findall(text.lower())), Counter(TOKEN.findall(truth.lower()))
    total = sum(out.values()) + sum(want.values())
    return 2 * sum((out & want).values()) / total if total else 1.0


def test_auto_reaches_its_score_on_hand_made_truth(data_dir: Path) -> None:
    """Article extraction benchmark, the half given here, which the model was trained on (trafilatura 0.961, Resiliparse
    0.938)."""
    folder = data_dir / "extraction" / "article-extraction-benchmark"
    scores = []
    with gzip.open(folder / "truth.jsonl.gz", "rt", encoding="utf-8", newline="\n") as lines:
        for row in map(json.loads, lines):
            html = gzip.decompress((folder / "html" / f"{row['id']}.html.gz").read_bytes()).decode("utf-8", "replace")
            scores.append(word_f1(extract(html, "auto").text or "", row["text"]))
    assert len(scores) == 85
    assert sum(scores) / len(scores) > 0.95
