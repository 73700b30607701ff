"""Archives that others have written oddly: versions in small letters, interim answers, mixed containers, ARC heads."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest

from corpusmill.readers.containers.parts import record_start
from corpusmill.readers.outcomes import Outcome, outcomes
from corpusmill.readers.warc import FileFacts
from tests.corpusmill.readers.archives import PAGE, arc, arc_head, frames, lz4, members, page, pages, record

HTML = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8"


def read(data: bytes) -> tuple[list[Outcome], FileFacts]:
    facts = FileFacts()
    return list(outcomes(io.BytesIO(data), facts=facts)), facts


def numbers(data: bytes) -> list[str]:
    """The last part of each page's URL; what is no page as its reason."""
    return [one.reason or str(one.url).rpartition("/")[2] for one in read(data)[0]]


@pytest.mark.parametrize("name", ["B148-lower-case-version", "B149-interim-answers", "B150-plain-amid-members"])
def test_hostile_archives_give_all_their_pages(data_dir: Path, name: str) -> None:
    (path,) = (data_dir / "hostile").glob(f"{name}*")
    facts = FileFacts()
    found = list(outcomes(path, facts=facts))
    pages_in = {"B148": 4, "B149": 3, "B150": 6}[name[:4]]
    assert [f"{name[:4]}P{i + 1}-END" in str(one.html) for i, one in enumerate(found)] == [True] * pages_in
    assert facts.faults == []


@pytest.mark.parametrize("version", [b"warc/1.0", b"Warc/1.0", b"WARC/1.0 ", b"warc/1.1\t", b"WARC/0.17"])
@pytest.mark.parametrize("at", [[0], [1], [3], [0, 2], [0, 1, 2, 3]])
@pytest.mark.parametrize("pack", [b"".join, members, frames, lambda r: gzip.compress(b"".join(r))])
def test_a_version_in_any_letters_begins_a_record(pack, at: list[int], version: bytes) -> None:  # type: ignore[no-untyped-def]
    made = [one.replace(b"WARC/1.0", version, 1) if i in at else one for i, one in enumerate(pages(4))]
    found, facts = read(pack(made))
    assert [one.html for one in found] == [page(i).decode() for i in range(4)]
    assert facts.faults == []


def test_a_block_begins_at_a_version_in_small_letters() -> None:
    made = [one.replace(b"WARC/1.0", b"warc/1.0", 1) for one in pages(3)]
    second = len(made[0])
    assert record_start(io.BytesIO(b"".join(made)), 5) == second
    packed = [gzip.compress(one) for one in made]
    assert record_start(io.BytesIO(b"".join(packed)), 5) == len(packed[0])


INTERIM = [
    "HTTP/1.1 100 Continue",
    "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload",
    "HTTP/1.1 102 Processing",
    "HTTP/1.0 100 Continue\r\nContent-Type: text/plain\r\nContent-Encoding: br",
    "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 100 Continue",
    "HTTP/1.1 100 Continue\r\nX-F\xfc: 1",
    "HTTP/1.1 100",
    "HTTP/1.1 100 Continue\r\n\r\n\r\n",
    "HTTP/1.0 200 Connection established",
]


@pytest.mark.parametrize("interim", INTERIM)
def test_the_page_behind_an_interim_answer_is_read(interim: str) -> None:
    (one,), _ = read(record(head=f"{interim}\r\n\r\n{HTML}"))
    assert (one.status, one.html, one.mime) == (200, PAGE.decode(), "text/html")
    packed = record(payload=gzip.compress(PAGE), head=f"{interim}\r\n\r\n{HTML}\r\nContent-Encoding: gzip")
    assert read(packed)[0][0].html == PAGE.decode()
    (gone,), _ = read(record(head=f"{interim}\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Type: text/html"))
    assert (gone.status, gone.reason) == (404, "http_status")


def test_an_interim_answer_without_a_page_is_no_page() -> None:
    assert read(record(payload=b"", head="HTTP/1.1 100 Continue"))[0][0].reason == "http_status"
    assert read(record(payload=PAGE, head="HTTP/1.1 101 Switching Protocols"))[0][0].reason == "http_status"
    (one,), _ = read(record(payload=b"HTTP/1.1 404 is what a page may begin with", head="HTTP/1.1 200 OK"))
    assert one.reason is None
    assert str(one.text).startswith("HTTP/1.1 404")


PACKERS = {"gzip": gzip.compress, "zstd": lambda one: frames([one]), "lz4": lambda one: lz4([one])}


@pytest.mark.parametrize("pack", PACKERS)
@pytest.mark.parametrize("plain", ["010110", "100000", "011111", "101010", "000001", "111110", "001100"])
def test_plain_records_amid_members_and_members_amid_plain_ones(plain: str, pack: str) -> None:
    made = [one if where == "1" else PACKERS[pack](one) for one, where in zip(pages(6), plain, strict=True)]
    found, facts = read(b"".join(made))
    assert [one.html for one in found] == [page(i).decode() for i in range(6)]
    assert facts.faults == []
    assert len({(one.offset, one.index) for one in found}) == 6


@pytest.mark.parametrize("length", [50, 5_000, 50_000_000, "odd"])
def test_a_lying_length_amid_members_costs_no_other_page(length: int | str) -> None:
    made = pages(5)
    made[1] = record("http://example.org/1", page(1), length=length)
    mixed = [made[0], made[1], gzip.compress(made[2]), made[3], gzip.compress(made[4])]
    found, _ = read(b"".join(mixed))
    assert {"0", "2", "3", "4"} <= {str(one.url).rpartition("/")[2] for one in found if one.html}
    assert len(found) == 5


def test_text_of_a_page_that_looks_like_a_member_stays_in_its_page() -> None:
    payload = PAGE + b"<!--" + gzip.compress(b"no record") + b"-->"
    assert numbers(record("http://example.org/0", payload) + gzip.compress(pages(2)[1])) == ["0", "1"]


HEADS = [
    "http://o.example/o 1.2.3.4 20010101000000  LEN",
    "http://o.example/o 1.2.3.4 20010101000000 LEN",
    "http://o.example/o  20010101000000 text/html LEN",
    "http://o.example/o 20010101000000 text/html LEN",
    "http://o.example/o null 20010101000000 text/html LEN",
    "http://o.example/o 0 20010101000000 text/html LEN",
    "http://o.example/o host.example 20010101000000 text/html LEN",
    "http://o.example/o 1.2.3.4:80 20010101000000 text/html LEN",
    "http://o.example/o [2001:db8::1] 20010101000000 text/html LEN",
    "http://o.example/o 1.2.3.4 010101 text/html LEN",
    "http://o.example/o 1.2.3.4 0 text/html LEN",
    "http://o.example/o 1.2.3.4 - text/html LEN",
    "http://o.example/o 1.2.3.4 2001-01-01T00:00:00Z text/html LEN",
    "http://o.example/o\t1.2.3.4\t20010101000000\ttext/html\tLEN",
    "http://o.example/o 1.2.3.4 20010101000000 text/html LEN ",
    "http://o.example/o  1.2.3.4  20010101000000  text/html;  charset=utf-8  LEN",
    "http://o.example/a b/o 1.2.3.4 20010101000000 text/html LEN",
]


@pytest.mark.parametrize("pack", [b"".join, members])
@pytest.mark.parametrize("head", HEADS)
def test_odd_heads_of_arc_records_are_read(head: str, pack) -> None:  # type: ignore[no-untyped-def]
    content = f"{HTML}\r\n\r\n".encode() + page(1)
    odd = f"{head.replace('LEN', str(len(content)))}\n".encode() + content + b"\n"
    made = [arc_head(), arc("http://a.example/0", page(0)), odd, odd, arc("http://a.example/2", page(2))]
    found, facts = read(pack(made))
    assert [str(one.url).rpartition("/")[2] for one in found] == ["0", "o", "o", "2"]
    assert [one.html for one in found[1:3]] == [page(1).decode()] * 2
    assert facts.faults == []


@pytest.mark.parametrize(
    "line",
    [
        "filedesc://IA-001102.arc 0 19960923142103 text/plain 76",
        "filedesc://t.arc  19960923142103 text/plain 76",
        "filedesc://t.arc 0.0.0.0 19960923 text/plain 5",
        "filedesc://t.arc 0.0.0.0 19960923142103 76",
    ],
)
@pytest.mark.parametrize("pack", [b"".join, members])
def test_odd_first_heads_of_arc_files_are_read(line: str, pack) -> None:  # type: ignore[no-untyped-def]
    first = f"{line}\n1 0 Alexa Internet\nURL IP-address Archive-date Content-type Archive-length\n\n".encode()
    assert numbers(pack([first, arc("http://a.example/0"), arc("http://a.example/1")])) == ["0", "1"]


OTHERS = {
    b"\x89PNG\r\n\x1a\n" + bytes(range(200)): "image/png",
    b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n" + bytes(99): "application/pdf",
    b'{"a": [1, 2, 3]}': "application/json",
    b"User-agent: *\nDisallow: /\n": "text/plain",
    b"\xff\xd8\xff\xe0" + bytes(99): "image/jpeg",
    b"PK\x03\x04" + bytes(99): "application/zip",
    b"<?xml version='1.0'?><rss></rss>": None,
}


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate", "zstd", "x-gzip", "gzip, br"])
@pytest.mark.parametrize("payload", OTHERS)
def test_a_payload_that_was_never_encoded_and_is_no_page_is_not_html(payload: bytes, encoding: str) -> None:
    mime = OTHERS[payload]
    (one,), _ = read(record(payload=payload, head=f"HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}"))
    assert (one.reason, one.mime) == ("not_html", mime or "application/xml")


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_payload_that_was_encoded_and_is_broken_is_bad_encoding(encoding: str) -> None:
    broken = {"gzip": gzip.compress(PAGE)[:12] + b"\xfa\x5a\0" * 60, "zstd": frames([PAGE])[:8] + b"\xff" * 99}[
        encoding
    ]
    (one,), _ = read(record(payload=broken, head=f"{HTML}\r\nContent-Encoding: {encoding}"))
    assert one.reason == "bad_encoding"
