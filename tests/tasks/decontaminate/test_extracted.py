"""Planted items of the sample crawl in the text that is screened in a build: what extraction leaves of the pages."""

from __future__ import annotations

import re
from collections import Counter

import pyarrow as pa
import pytest

from corpusmill.extractor.modes import extract
from corpusmill.kernels.screen import screen
from corpusmill.readers.outcomes import outcomes
from tests.corpusmill.kernels.screen.test_screen import STYLES, benchmark_items, read_lines, wet

__all__ = ["benchmark_items", "wet"]  # fixtures

WHOLE = 0.9
"""Share of an item's words on its page from which they survived extraction."""


@pytest.fixture(scope="module")
def extracted(data_dir) -> dict[str, str]:
    """URL -> text by mode `auto` of every page with planted items and of every look-alike."""
    crawl = data_dir / "mini-crawl"
    wanted = {row["url"] for row in read_lines(crawl / "planted.jsonl")} | _lookalikes(data_dir)
    found: dict[str, str] = {}
    for file in sorted(crawl.glob("crawl-data/*/segments/*/warc/*.gz")):
        for page in outcomes(file):
            if page.url in wanted and page.url not in found and page.html:
                found[page.url] = extract(page.html, "auto").text
    assert set(found) == wanted
    return found


def test_planted_items_are_found_in_extracted_text_as_in_the_plain_text_of_the_crawl(
    benchmark_items, wet, extracted, data_dir
):
    """By style, on items whose words survive extraction: all but reworded ones survive, and the same are found."""
    questions, pages = {item: text for _, item, text in benchmark_items}, dict(reversed(wet))
    found = _found(benchmark_items, extracted)
    should = [p for p in read_lines(data_dir / "mini-crawl" / "planted.jsonl") if p["ngram_screen_should_find"]]
    surviving, lost = [], []
    for p in should:
        on_page = _words(questions[p["item"]]) & _words(pages[p["url"]])
        left = on_page & _words(extracted[p["url"]])
        (surviving if len(left) >= WHOLE * len(on_page) else lost).append(p)
    assert [(p["how"], p["item"]) for p in lost] == [("numbers-and-names-changed", "HumanEval/9")]
    totals = Counter(p["how"] for p in surviving)
    held = Counter(p["how"] for p in surviving if (p["url"], p["item"]) in found)
    styles = {**STYLES, "numbers-and-names-changed": (10, 22)}  # without the one that was lost
    assert {how: (held[how], totals[how]) for how in totals} == styles
    texts = {url: pages[url] for url in extracted}
    assert found == _found(benchmark_items, texts), "what extraction takes away hides no item, and shows none"


def test_none_of_the_25_look_alikes_is_flagged_in_extracted_text(benchmark_items, extracted, data_dir):
    pages = {url: extracted[url] for url in _lookalikes(data_dir)}
    assert len(pages) == 25
    assert all(len(text) > 200 for text in pages.values())
    assert not _found(benchmark_items, pages)


def _lookalikes(data_dir) -> set[str]:
    truth = read_lines(data_dir / "mini-crawl" / "truth.jsonl.gz")
    return {row["url"] for row in truth if row.get("kind") == "lookalike"}


def _found(items, pages: dict[str, str]) -> set[tuple[str, str]]:
    names = list(dict.fromkeys(benchmark for benchmark, _, _ in items))
    sources = [screen.Source(name, [(i, t) for b, i, t in items if b == name], 13, 8) for name in names]
    table = screen.screen(pa.array(pages.values(), pa.large_string()), screen.build_index(sources))
    rows, found = (table.column(name).to_pylist() for name in ("row", "item"))
    urls = list(pages)
    return {(urls[row], item) for row, item in zip(rows, found, strict=True)}


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower().replace("'", "").replace("\u2019", "")))
