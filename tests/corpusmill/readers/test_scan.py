"""The compiled passes say what plain Python says."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corpusmill.readers.charset import _CODECS, decode
from corpusmill.readers.headers import HEAD_END, MAX_HEAD, HttpHead, parse_fields, split_http
from corpusmill.readers.owner import may_say_so
from corpusmill.readers.scan import CONTROLS, HIGH, RETURNS, high_bytes, high_runs, mostly_utf8, survey
from corpusmill.readers.screen import classify

UTF8_PARTS = st.sampled_from(
    [b"a", b" ", "ü".encode(), "漢".encode(), "😀".encode(), "\ufffd".encode()]
    + [
        bytes([byte])
        for byte in (0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC1, 0xC2, 0xE0, 0xED, 0xEF, 0xF0, 0xF4, 0xF5, 0xFF)
    ]
)
HEADS = st.lists(
    st.sampled_from(
        [
            b"HTTP/1.1 200 OK",
            b"\r\n",
            b"\n",
            b"\r\r\n",
            b"\r",
            b" ",
            b"\t",
            b":",
            b"Content-Type",
            b"content-encoding",
            b"X-Robots-Tag",
            b"text/html; charset=x",
            b"Date: x",
            b"\xe9",
            b"\x0b",
            b"gzip",
            b"tdm-reservation: 1",
        ]
    ),
    max_size=14,
).map(lambda parts: b"HTTP/1.1 200 OK" + b"".join(parts))
PAGES = st.lists(
    st.sampled_from(
        [
            b"<html",
            b"<!DOCTYPE html",
            b">",
            b" ",
            b"\n",
            b"\xef\xbb\xbf",
            b"<HEAD>",
            b"</HeAd",
            b"<meta name=robots ",
            b"content=NoIndex>",
            b"refresh",
            b"\x00",
            b"\r",
            b"\xe9",
            b"<?xml version='1.0'?>",
            b" " * 1020,
            b"{}",
            b"x",
        ]
    ),
    max_size=9,
).map(b"".join)
TYPES = st.sampled_from((None, "text/html", "text/plain", "application/xml", "application/octet-stream", "a/b"))


@given(st.one_of(st.binary(max_size=300), st.text(max_size=80).map(lambda text: text.encode("utf-8", "replace"))))
def test_bytes_are_of_the_kinds_that_a_survey_names(data: bytes) -> None:
    signs = survey(data)
    assert bool(signs & CONTROLS) == any(byte < 32 and byte not in b"\t\n\r" for byte in data)
    assert bool(signs & RETURNS) == (b"\r" in data)
    assert bool(signs & HIGH) == (not data.isascii())
    runs = sum(map(len, re.findall(rb"[\x80-\xff]{3,}", data)))
    assert high_runs(data) == (sum(byte > 127 for byte in data), runs)
    assert {i + 128 for i, used in enumerate(high_bytes(data)) if used} == {byte for byte in data if byte > 127}


@given(st.lists(UTF8_PARTS, max_size=30).map(b"".join))
@example(b"\xe0")
@example("ü".encode() * 5 + b"\xff")
def test_broken_utf_8_is_told_from_another_charset_as_python_would(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    assert mostly_utf8(data) == (len(data) - len(text) > 4 * text.count("\ufffd"))


@given(HEADS, st.sampled_from((b"", b"\r\n\r\n<html>", b"\n\nbody", b"\r\n\r\n\n\n")))
def test_a_plain_head_is_what_the_full_parser_makes_of_it(head: bytes, rest: bytes) -> None:
    block = head + rest
    status = re.match(rb"HTTP/\d\.\d (\d{3})(?!\d)", block)
    end = HEAD_END.search(block)
    http, body = split_http(block)
    assert status is not None or http.status is None
    if status:
        expected = HttpHead(200, parse_fields(block[: min(end.start() if end else len(block), MAX_HEAD)]))
        assert (http, body) == (expected, block[end.end() :] if end else b"")
        assert http.content_type == expected.content_type
        if http.plain:
            assert not expected.fields.keys() & {
                "content-encoding",
                "transfer-encoding",
                "x-robots-tag",
                "tdm-reservation",
            }


@given(PAGES, TYPES)
def test_what_is_known_of_a_page_changes_no_answer(page: bytes, declared: str | None) -> None:
    if not page.strip(b" \n\r\x00\xef\xbb\xbf"):
        return
    signs = survey(page)
    assert classify(page, declared, signs) == classify(page, declared)
    assert decode(page, declared, signs=signs) == decode(page, declared)
    assert may_say_so(page, signs) == may_say_so(page)


@pytest.mark.parametrize(
    "codec", sorted({*_CODECS.values(), "cp1252", "cp1251", "koi8-r", "euc_jp", "cp949", "cp1256"})
)
def test_no_charset_makes_controls_of_other_bytes(codec: str) -> None:
    """A text is cleaned only where its bytes hold controls."""
    if codec.startswith("iso2022"):
        return  # its escapes are controls
    sound = [bytes([byte]) for byte in range(0x20, 0x100)]
    pairs = [bytes([a, b]) for a in range(0x80, 0x100) for b in range(0x20, 0x100)]
    for data in sound + pairs:
        text = data.decode(codec, "ignore")
        assert not any(char < " " or "\ud800" <= char < "\ue000" for char in text), data
