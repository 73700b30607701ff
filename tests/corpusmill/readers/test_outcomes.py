"""The fate of records: hostile archives and the mini-crawl against their stated outcomes."""

from __future__ import annotations

import gzip
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from corpusmill.extractor.modes import extract
from corpusmill.readers.outcomes import Outcome, ReadOptions, outcomes
from corpusmill.readers.text import clean_text
from corpusmill.readers.warc import FileFacts
from tasks.stages import REASONS
from tests.corpusmill.readers.archives import PAGE, members, pages, record

HTML = "HTTP/1.1 200 OK\r\nContent-Type: text/html"


def reasons(archive: Path | bytes, **options: Any) -> list[str | None]:
    source = io.BytesIO(archive) if isinstance(archive, bytes) else archive
    return [one.reason for one in outcomes(source, ReadOptions(**options))]


def marked(outcome: Outcome) -> bool:
    """Whether both marks of a hostile page are in its HTML."""
    html = outcome.html or ""
    return "-BEGIN" in html and "-END" in html


@pytest.mark.parametrize(
    ("name", "kept", "ended"),
    [
        ("B01-truncated-last-member", 3, ["truncated"]),
        ("B02-one-member", 3, []),
        ("B04-chunked", 3, []),
        ("B07-content-encodings", 4, ["unsupported_encoding"]),
        ("B08-header-bytes", 4, []),
        ("B14-charset-conflicts", 6, []),
        ("B19-utf16-bom", 4, []),
        ("B22-empty-and-wrong-bodies", 1, ["empty_body"] * 2 + ["not_html"] * 3),
    ],
)
def test_hostile_archives_end_as_stated(data_dir: Path, name: str, kept: int, ended: list[str]) -> None:
    found = list(outcomes(data_dir / "hostile" / f"{name}.warc.gz"))
    assert sum(map(marked, found)) == kept
    assert [one.reason for one in found if one.reason] == ended
    for one in filter(marked, found):
        assert one.html is not None
        assert "name=x" not in one.html.replace('"', "")
        assert not one.html.startswith("\ufeff")
        assert clean_text(one.html) == (one.html, 0)


def test_a_truncated_file_is_reported_with_the_place(data_dir: Path) -> None:
    facts = FileFacts()
    list(outcomes(data_dir / "hostile" / "B01-truncated-last-member.warc.gz", facts=facts))
    assert facts.faults == [{"offset": 2996, "reason": "truncated"}]


def test_charsets_that_conflict_are_decided_by_the_bytes(data_dir: Path) -> None:
    found = list(outcomes(data_dir / "hostile" / "B14-charset-conflicts.warc.gz"))
    for one in found[:4]:
        assert "Brücke über den Fluß" in (one.html or "")
        assert "Möwen" in (one.html or "")
    assert "この川は山の間から" in (found[4].html or "")
    assert "Река течёт через старый город" in (found[5].html or "")
    assert [(one.charset, one.charset_origin) for one in found] == [
        ("windows-1252", "detected"),
        ("utf-8", "detected"),
        ("utf-8", "detected"),
        ("windows-1252", "detected"),
        ("shift_jis", "meta"),
        ("windows-1251", "header"),
    ]


def test_utf_16_is_read_with_and_without_a_mark(data_dir: Path) -> None:
    found = list(outcomes(data_dir / "hostile" / "B19-utf16-bom.warc.gz"))
    assert all("ünïcode" in (one.html or "") for one in found)
    assert [one.charset for one in found] == ["utf-16le", "utf-16be", "utf-16le", "utf-8"]


@pytest.fixture(scope="module")
def crawl(data_dir: Path) -> list[tuple[dict[str, Any], Outcome]]:
    """Every record of the mini-crawl: what is true of it, and its outcome."""
    root = data_dir / "mini-crawl"
    with gzip.open(root / "truth.jsonl.gz", "rt", encoding="utf-8", newline="\n") as lines:
        truth = {(row["warc"], row["offset"]): row for row in map(json.loads, lines)}
    found = {}
    for locator in sorted({warc for warc, _ in truth}):
        for one in outcomes(root / locator):
            assert (locator, one.offset) not in found
            found[locator, one.offset] = one
    assert found.keys() == truth.keys()
    return [(truth[key], found[key]) for key in truth]


def test_every_listed_record_has_exactly_one_outcome(crawl: list[tuple[dict[str, Any], Outcome]]) -> None:
    assert sum("/warc/" in row["warc"] for row, _ in crawl) == 4396
    for row, one in crawl:
        assert (one.url, one.date) == (row["url"], row["date"])
        assert [one.html, one.text, one.reason].count(None) == 2
        assert (one.stage, one.reason) == (None, None) or REASONS[one.reason or ""].row == one.stage == "acquire"


def test_outcomes_agree_with_the_truth(crawl: list[tuple[dict[str, Any], Outcome]]) -> None:
    """Confusion of stated fate and outcome; the only stranger is an article that really says noindex."""
    expected = {name: name for name in ("http_status", "redirect", "revisit", "empty_body")} | {"mime": "not_html"}
    confusion: Counter[tuple[str, str | None]] = Counter()
    for row, one in crawl:
        if row["expect"] == "policy":
            fate = "robots_meta"
        elif row["expect"] == "drop":
            fate = expected.get(row["reason"], "not_html" if row["reason"] == "robots.txt" else "page")
        elif row["kind"] == "legacy-feed":
            fate = "not_html"
        else:
            fate = "page"
        confusion[fate, one.reason] += 1
    assert confusion == {
        ("page", None): 4211,
        ("empty_body", None): 2,  # elements without text: extraction ends them
        ("page", "robots_meta"): 1,
        ("empty_body", "empty_body"): 2,
        ("http_status", "http_status"): 36,
        ("redirect", "redirect"): 23,
        ("revisit", "revisit"): 30,
        ("not_html", "not_html"): 137,
        ("robots_meta", "robots_meta"): 18,
    }


def test_policy_ignore_lets_objecting_pages_in(crawl: list[tuple[dict[str, Any], Outcome]], data_dir: Path) -> None:
    locator = next(row["warc"] for row, _ in crawl if row["expect"] == "policy")
    path = data_dir / "mini-crawl" / locator
    assert "robots_meta" in reasons(path)
    assert "robots_meta" not in reasons(path, robots="ignore")


def test_old_charsets_are_read_right(crawl: list[tuple[dict[str, Any], Outcome]]) -> None:
    """A transcoded page has the very text of its UTF-8 twin; several fetches of one address may be twins."""
    texts: dict[str, set[str | None]] = {}
    for row, one in crawl:
        if one.html:
            texts.setdefault(row["url"], set()).add(extract(one.html, "plain").text)
    old = [(row, one) for row, one in crawl if row["kind"] == "legacy-charset" and one.html]
    right = [extract(one.html or "", "plain").text in texts[row["transcoded_from"]] for row, one in old]
    assert len(right) == 179
    assert right.count(False) <= 1  # one wave dash, which browsers read as U+FF5E in Shift_JIS
    origins = Counter(one.charset_origin for _, one in old)
    assert origins["header"] > 40
    assert origins["meta"] > 20
    assert origins["detected"] > 40


def test_wet_files_need_no_extraction(data_dir: Path) -> None:
    path = next((data_dir / "mini-crawl" / "crawl-data").rglob("*.warc.wet.gz"))
    found = list(outcomes(path))
    assert len(found) > 100
    assert all(one.text and one.extractor == "wet" and one.record_type == "conversion" for one in found)


def test_no_sample_archive_raises(data_dir: Path) -> None:
    files = [p for p in (data_dir / "warc-samples").rglob("*") if p.is_file()]
    assert len(files) > 70
    for path in files:
        for one in outcomes(path):
            assert [one.html, one.text, one.reason].count(None) == 2, path


@pytest.mark.parametrize(
    ("head", "payload", "reason"),
    [
        ("HTTP/1.1 404 Not Found\r\nContent-Type: text/html", PAGE, "http_status"),
        ("HTTP/1.1 301 Moved\r\nLocation: /x", b"", "redirect"),
        ("HTTP/1.1 206 Partial Content", PAGE, "http_status"),
        (HTML, b" \r\n\x00", "empty_body"),
        (HTML + "\r\nX-Robots-Tag: noindex", PAGE, "robots_meta"),
        (HTML + "\r\nX-Robots-Tag: googlebot: noindex", PAGE, None),
        (HTML + "\r\nContent-Encoding: gzip", gzip.compress(PAGE), None),
        (
            HTML + "\r\nContent-Encoding: gzip",
            b"\x1f\x8b\x08" + b"x" * 99,
            "bad_encoding",
        ),
        (
            HTML + "\r\nContent-Encoding: x-odd",
            b"\x01\x02\x03",
            "unsupported_encoding",
        ),
        ("HTTP/1.1 200 OK\r\nContent-Encoding: gzip", gzip.compress(bytes(3_000_000)), "too_large"),
        (HTML, b"%PDF-1.7\n...", "not_html"),
        ("HTTP/1.1 200 OK", PAGE, None),
        ("HTTP/1.0 200", PAGE, None),
    ],
)
def test_reason_of_a_record(head: str, payload: bytes, reason: str | None) -> None:
    data = members([record(payload=payload, head=head)])
    assert reasons(data, max_payload_bytes=2_000_000) == [reason]


def test_a_page_without_address_is_damaged() -> None:
    data = record().replace(b"WARC-Target-URI: http://example.org/\r\n", b"")
    assert reasons(members([data])) == ["damaged"]


def test_plain_text_needs_no_extraction() -> None:
    head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain"
    (one,) = outcomes(io.BytesIO(members([record(payload=b"Just\r\ntext.\n", head=head)])))
    assert (one.text, one.extractor, one.html) == ("Just\ntext.", "text", None)


def test_identical_input_gives_identical_outcomes() -> None:
    data = members(pages(20))
    assert list(outcomes(io.BytesIO(data))) == list(outcomes(io.BytesIO(data)))
