"""What payloads are, and what owners say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusmill.readers.headers import HttpHead, media_type, parse_fields, split_http
from corpusmill.readers.owner import may_say_so, objects_by_header, objects_by_meta, sends_on
from corpusmill.readers.screen import classify, is_blank
from tests.corpusmill.readers.archives import PAGE


@pytest.mark.parametrize(
    ("payload", "declared", "kind", "mime"),
    [
        (PAGE, "text/html; charset=utf-8", "html", "text/html"),
        (PAGE, None, "html", "text/html"),
        (PAGE, "application/octet-stream", "html", "text/html"),
        (PAGE, "text/plain", "html", "text/html"),
        (b"  <!-- a licence -->\n<html><p>x", None, "html", "text/html"),
        (b"just words", "text/html", "html", "text/html"),
        (b"just words", "text/plain", "text", "text/plain"),
        (b"just words", None, "text", "text/plain"),
        (b'<?xml version="1.0"?><!DOCTYPE html><html>', "application/xhtml+xml", "html", "application/xhtml+xml"),
        (b'<?xml version="1.0"?>\n<html xmlns="x">', "text/xml", "other", "text/xml"),
        (b'<?xml version="1.0"?><table><tr>', "text/html", "html", "text/html"),
        (b'<?xml version="1.0"?><rss version="2.0">', "text/html", "other", "application/xml"),
        (b"<rss>", "application/rss+xml", "other", "application/rss+xml"),
        (b"%PDF-1.4 ...", "text/html", "other", "application/pdf"),
        (b"\x89PNG\r\n\x1a\n....", "text/html", "other", "image/png"),
        (b"\xff\xd8\xff\xe0....", None, "other", "image/jpeg"),
        (b"MZ is a sort of cheese", "text/html", "html", "text/html"),
        (b'{"a": [1, 2]}', "text/html", "other", "application/json"),
        (b"[1] is a footnote, not JSON]", "text/html", "html", "text/html"),
        (b"body { color: red }", "text/css", "other", "text/css"),
        (b"\x01\x02\x03\x04\x05\x06\x07\x08\x00\x0e" * 9, "text/html", "other", "application/octet-stream"),
        ("\ufeff<html><p>ü".encode("utf-16-le"), "text/html", "html", "text/html"),
        (PAGE, "not a type", "html", "text/html"),
        (PAGE, "image/jpeg", "other", "image/jpeg"),
    ],
)
def test_bytes_and_header_together(payload: bytes, declared: str | None, kind: str, mime: str) -> None:
    found = classify(payload, declared)
    assert (found.kind, found.mime) == (kind, mime)


@pytest.mark.parametrize(
    ("payload", "blank"), [(b"", True), (b" \r\n\t\x00" * 3000, True), (b" " * 5000 + b"x", False)]
)
def test_blank_payloads(payload: bytes, blank: bool) -> None:
    assert is_blank(payload) is blank


@given(st.binary(max_size=200), st.sampled_from((None, "text/html", "text/plain", "a/b", "application/xml")))
def test_any_payload_is_classified(payload: bytes, declared: str | None) -> None:
    assert classify(payload, declared).kind in ("html", "text", "other")


@pytest.mark.parametrize(
    ("value", "objects"),
    [
        ("noindex", True),
        ("all, NOAI", True),
        ("none", True),
        ("noarchive, nosnippet", False),
        ("max-snippet: 20, noindex", True),
        ("unavailable_after: 25 Jun 2030", False),
        ("otherbot: noindex, none", False),
        ("noimageai", False),
    ],
)
def test_robots_directives(value: str, objects: bool) -> None:
    assert objects_by_header(HttpHead(200, {"x-robots-tag": value})) is objects
    if ":" not in value:
        assert objects_by_meta(f"<html><head><META content='{value}' name=robots></head>") is objects


def test_tdm_reservations_count_and_other_places_do_not() -> None:
    assert objects_by_header(HttpHead(200, {"tdm-reservation": "1"}))
    assert not objects_by_header(HttpHead(200, {"tdm-reservation": "0"}))
    assert objects_by_meta('<head><meta name="tdm-reservation" content="1">')
    assert not objects_by_meta("<head><!-- <meta name=robots content=noindex> --></head>")
    assert not objects_by_meta("<head></head><body><textarea><meta name=robots content=noindex></textarea>")
    assert may_say_so(b"<meta name=ROBOTS content=NoIndex>")
    assert not may_say_so(PAGE)


@pytest.mark.parametrize(
    ("content", "extra", "sends"),
    [
        ("0; url=https://example.org/", "", True),
        ("3;URL='/next'", "", True),
        ("600; url=/same", "", False),
        ("5", "", False),
        ("0; url=/x", "a long page " * 600, False),
    ],
)
def test_pages_that_only_send_on(content: str, extra: str, sends: bool) -> None:
    assert sends_on(f'<html><head><meta http-equiv="Refresh" content="{content}"></head>{extra}') is sends


def test_a_refresh_for_browsers_without_scripts_does_not_count() -> None:
    assert not sends_on("<head><noscript><meta http-equiv=refresh content='0; url=/nojs'></noscript></head>")


def test_odd_heads_are_read() -> None:
    block = b"HTTP/1.1 200\nA: 1\n two\nB no colon\nC:x\nc: y\nD\xe9: \xff\n\nbody"
    http, body = split_http(block)
    assert (http.status, body) == (200, b"body")
    assert http.get("a") == "1 two"
    assert http.all("c") == ["x", "y"]
    assert split_http(b"no head")[0].status is None
    assert split_http(b"HTTP/1.1 200 OK\r\nA: b") == (HttpHead(200, {"a": "b"}), b"")
    assert parse_fields(b"WARC/1.0\r\nX: 1") == {"x": "1"}
    assert media_type("Text/HTML; x=y") == "text/html"
