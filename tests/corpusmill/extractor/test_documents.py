"""Rows of the documents table say what their page says of itself; texts that were no page leave it open."""

from __future__ import annotations

import pyarrow as pa

from corpusmill import schema
from corpusmill.extractor.meta import Meta
from corpusmill.extractor.modes import Extraction
from corpusmill.readers.outcomes import Outcome
from tasks.acquire import SourceUnit
from tasks.extract import Row

HTML = (
    "<html lang=en><head><title>Boats</title><meta name=author content='A. B.'><link rel=canonical href=/boats>"
    "<meta property=article:published_time content=2024-05-06></head><body><p>Text</p>"
    "<a rel=license href=https://creativecommons.org/licenses/by/4.0/>by</a></body></html>"
)
UNIT = SourceUnit("crawl", "s", "a.warc.gz")
PLACE = {"payload_digest": b"0" * 16, "payload_bytes": 9}


def row_of(outcome: Outcome, extraction: Extraction | None) -> dict[str, object]:
    row = Row(UNIT, outcome, extraction).document()
    return pa.RecordBatch.from_pylist([row], schema=schema.DOCUMENTS).to_pylist()[0]


def test_a_page_says_what_it_is() -> None:
    page = Outcome(7, 0, "response", "https://x.example/a", None, html=HTML, **PLACE)  # type: ignore[arg-type]
    row = row_of(page, Extraction("Text", "lines"))
    assert {name: row[name] for name in Meta.__dataclass_fields__} == {
        "title": "Boats",
        "author": "A. B.",
        "published": "2024-05-06",
        "canonical": "https://x.example/boats",
        "declared_language": "en",
        "licence_link": "https://creativecommons.org/licenses/by/4.0/",
    }
    assert row["licence"] is None


def test_a_text_that_was_no_page_leaves_it_open() -> None:
    text = Outcome(7, 0, "row", None, None, text="Text", extractor="jsonl", **PLACE)  # type: ignore[arg-type]
    assert {row_of(text, None)[name] for name in Meta.__dataclass_fields__} == {None}
