"""Transfer and content encodings, true and false ones, and their bounds."""

from __future__ import annotations

import gzip
import zlib

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from corpusmill.readers.bodies import decode_body, join_chunks
from corpusmill.readers.headers import HttpHead
from tests.corpusmill.readers.archives import PAGE

PACKED = {
    "gzip": gzip.compress(PAGE),
    "x-gzip": gzip.compress(PAGE[:50]) + gzip.compress(PAGE[50:]),
    "deflate": zlib.compress(PAGE),
    "br": brotli.compress(PAGE),
    "zstd": zstandard.ZstdCompressor().compress(PAGE),
}


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def head(**fields: str) -> HttpHead:
    return HttpHead(200, {name.replace("_", "-"): value for name, value in fields.items()})


@pytest.mark.parametrize("name", PACKED)
def test_content_encodings_are_undone(name: str) -> None:
    assert decode_body(PACKED[name], head(content_encoding=name.upper()), 10**6).data == PAGE


def test_deflate_without_its_head_and_encodings_in_a_row() -> None:
    assert decode_body(raw_deflate(PAGE), head(content_encoding="deflate"), 10**6).data == PAGE
    twice = brotli.compress(gzip.compress(PAGE))
    assert decode_body(twice, head(content_encoding="gzip, br"), 10**6).data == PAGE


@pytest.mark.parametrize("outer", ["gzip", "zstd"])
@pytest.mark.parametrize("admitted", [0, 1, 2])
def test_bodies_that_are_packed_more_often_than_their_header_admits(outer: str, admitted: int) -> None:
    pack = {"gzip": gzip.compress, "zstd": zstandard.ZstdCompressor().compress}[outer]
    fields = {"content_type": "text/html; charset=utf-8"}
    if admitted:
        fields["content_encoding"] = ", ".join([outer] * admitted)
    assert decode_body(pack(pack(PAGE)), head(**fields), 10**6).data == PAGE


def test_an_archive_to_download_stays_packed() -> None:
    data = gzip.compress(PAGE)
    assert decode_body(data, head(content_type="application/gzip"), 10**6).data == data
    assert decode_body(data, head(), 10**6).data == data


def test_another_encoding_than_the_one_promised() -> None:
    assert decode_body(PACKED["zstd"], head(content_encoding="gzip"), 10**6).data == PAGE
    assert decode_body(PACKED["gzip"], head(content_encoding="br"), 10**6).data == PAGE


def test_an_encoding_of_the_transfer() -> None:
    data = PACKED["gzip"]
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data)
    assert decode_body(chunked, head(transfer_encoding="gzip, chunked"), 10**6).data == PAGE


def test_growth_is_bounded() -> None:
    bomb = brotli.compress(bytes(12 * 2**20))
    assert len(bomb) < 1000
    assert decode_body(bomb, head(content_encoding="br"), 16 * 2**20).reason == "too_large"
    assert decode_body(PACKED["gzip"], head(content_encoding=", ".join(["gzip"] * 99)), 10**6).reason


def _zstd(page: bytes, window_log: int) -> bytes:
    parameters = zstandard.ZstdCompressionParameters(window_log=window_log)
    packed = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return packed.compress(page) + packed.flush()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("zstd", _zstd(PAGE, 25)),
        ("zstd", _zstd(PAGE, 31)),
        ("gzip", _zstd(PAGE, 31)),
        ("identity", _zstd(PAGE, 28)),
        ("br", b"\x11\x1e" + bytes(20)),
        ("br", b"\x11\x19" + bytes(20)),
    ],
    ids=["zstd, 32 MiB", "zstd, 2 GiB", "zstd called gzip", "zstd unsaid", "br, 1 GiB", "br, 32 MiB"],
)
def test_an_encoding_that_asks_for_too_much_memory_is_too_large(name: str, data: bytes) -> None:
    http = head(content_encoding=name, content_type="text/html")
    assert decode_body(data, http, 16 * 2**20).reason == "too_large"


def test_a_long_page_whose_length_is_known_is_read() -> None:
    page = PAGE + b"".join(b"<p>%d</p>" % (i * i) for i in range(700_000))
    assert 8 * 2**20 < len(page) < 16 * 2**20
    packed = zstandard.ZstdCompressor(write_content_size=True).compress(page)
    assert decode_body(packed, head(content_encoding="zstd"), 16 * 2**20).data == page


@pytest.mark.parametrize("name", [*PACKED, "x-made-up", "utf-8", "none"])
def test_a_page_that_is_not_packed_as_promised_is_taken_as_it_is(name: str) -> None:
    assert decode_body(PAGE, head(content_encoding=name), 10**6).data == PAGE


@pytest.mark.parametrize("name", PACKED)
def test_garbage_is_bad_encoding(name: str) -> None:
    garbage = PACKED[name][:12] + b"\xfa\x5a\x00" * 60
    assert decode_body(garbage, head(content_encoding=name), 10**6).reason == "bad_encoding"


def test_an_unknown_encoding_is_unsupported() -> None:
    assert decode_body(b"\x01\x02\x03" * 9, head(content_encoding="x-made-up"), 10**6).reason == "unsupported_encoding"


@pytest.mark.parametrize("name", ["gzip", "deflate", "zstd"])
def test_a_body_that_breaks_off_keeps_what_came(name: str) -> None:
    text = "".join(f"<p>line {i} of a longer page {i * i}</p>" for i in range(30_000)).encode()
    packed = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstandard.ZstdCompressor().compress}[name](text)
    body = decode_body(packed[: len(packed) // 2], head(content_encoding=name), 10**7)
    assert body.cut
    assert len(body.data) > 0.3 * len(text)
    assert text.startswith(body.data)


@pytest.mark.parametrize("name", PACKED)
def test_the_bound_holds_before_anything_is_held(name: str) -> None:
    bomb = {
        "br": lambda: brotli.compress(bytes(10**8), quality=1),
        "zstd": lambda: zstandard.ZstdCompressor().compress(bytes(10**8)),
        "deflate": lambda: zlib.compress(bytes(10**8), 1),
    }.get(name, lambda: gzip.compress(bytes(10**8), 1))()
    assert decode_body(bomb, head(content_encoding=name), 10**5).reason == "too_large"


def test_exactly_the_bound_is_permitted() -> None:
    assert decode_body(PACKED["gzip"], head(content_encoding="gzip"), len(PAGE)).data == PAGE
    assert decode_body(PACKED["gzip"], head(content_encoding="gzip"), len(PAGE) - 1).reason == "too_large"


@pytest.mark.parametrize(
    ("chunked", "joined", "cut"),
    [
        (b"4\r\nWiki\r\n5;name=x\r\npedia\r\n0\r\n\r\n", b"Wikipedia", False),
        (b"4\nWiki\n5 \npedia\n0\n\n", b"Wikipedia", False),
        (b"4\r\nWiki\r\n0\r\nX-Trailer: yes\r\n\r\n", b"Wiki", False),
        (b"4\r\nWiki\r\n5\r\npedi", b"Wikipedi", True),
        (b"4\r\nWiki\r\nzz\r\nrest", b"Wiki", True),
        (b"zz\r\n<html>page", b"<html>page", False),
        (b"<html>page", b"<html>page", False),
        (b"2024\r\nwas a year", b"2024\r\nwas a year", False),
        (b"ffff\r\n<html>cut", b"<html>cut", True),
        (b"", b"", False),
    ],
)
def test_chunks_are_joined(chunked: bytes, joined: bytes, cut: bool) -> None:
    assert join_chunks(chunked) == (joined, cut)


def test_chunked_and_packed() -> None:
    data = PACKED["gzip"]
    chunked = b"%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n" % (9, data[:9], len(data) - 9, data[9:])
    assert decode_body(chunked, head(transfer_encoding="Chunked", content_encoding="gzip"), 10**6).data == PAGE


@given(st.binary(max_size=300), st.sampled_from([*PACKED, "odd"]), st.booleans(), st.integers(0, 200))
def test_any_bytes_give_a_body_or_a_reason(payload: bytes, name: str, chunked: bool, cut: int) -> None:
    http = head(content_encoding=name, **({"transfer_encoding": "chunked"} if chunked else {}))
    for data in (payload, PACKED.get(name, b"")[:cut] + payload):
        body = decode_body(data, http, 500)
        assert len(body.data) <= 500
        assert body.reason in (None, "unsupported_encoding", "bad_encoding", "too_large")
