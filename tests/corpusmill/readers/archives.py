"""Small archives made for tests, record by record, in every container."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Sequence

import zstandard
from fastwarc.stream_io import Lz4Writer

PAGE = b"<!DOCTYPE html><html><head><title>T</title></head><body><p>A page with a sentence on it.</p></body></html>"


def record(
    url: str = "http://example.org/",
    payload: bytes = PAGE,
    *,
    kind: str = "response",
    head: str = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8",
    length: int | str | None = None,
    more: Sequence[str] = (),
) -> bytes:
    """One record as it stands in a plain file; `length` lies about its content; `more` header lines."""
    content = head.encode("utf-8") + b"\r\n\r\n" + payload if head else payload
    lines = [
        "WARC/1.0",
        f"WARC-Type: {kind}",
        f"WARC-Target-URI: {url}",
        "WARC-Date: 2026-01-02T03:04:05Z",
        "Content-Type: application/http; msgtype=response" if head else "Content-Type: text/plain",
        f"Content-Length: {len(content) if length is None else length}",
        *more,
    ]
    return "\r\n".join(lines).encode("utf-8") + b"\r\n\r\n" + content + b"\r\n\r\n"


def true_length(one: bytes) -> int:
    """Bytes of the content of a record."""
    return len(one.partition(b"\r\n\r\n")[2]) - 4


def pages(count: int) -> list[bytes]:
    """Records of pages that differ."""
    return [record(f"http://example.org/{i}", page(i)) for i in range(count)]


def page(number: int) -> bytes:
    """The page of a record of `pages`."""
    return PAGE.replace(b"sentence", b"sentence number %d, long enough" % number)


def arc(
    url: str, payload: bytes = PAGE, *, kind: str = "text/html", length: int | None = None, end: str = "\n"
) -> bytes:
    """One record of an ARC file; version 1.1 differs in its first record alone."""
    content = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n" + payload
    stated = len(content) if length is None else length
    return f"{url} 192.0.2.7 20260102030405 {kind} {stated}{end}".encode() + content + b"\n"


def arc_head(version: str = "1 0", end: str = "\n") -> bytes:
    """The record that begins an ARC file."""
    body = f"{version} Example Crawl\nURL IP-address Archive-date Content-type Archive-length\n"
    if version == "1 1":
        body += "\n<?xml version='1.0'?><arcmetadata><software>test http://example.org/</software></arcmetadata>\n"
    head = f"filedesc://test.arc 0.0.0.0 20260102030400 text/plain {len(body)}{end}"
    return f"{head}{body}\n".encode()


def members(records: Sequence[bytes]) -> bytes:
    """Records as a .warc.gz, one gzip member each."""
    return b"".join(gzip.compress(one, mtime=0) for one in records)


def frames(records: Sequence[bytes], *, checksum: bool = True, dictionary: bytes | None = None) -> bytes:
    """Records as a .warc.zst, one frame each; with the dictionary, if there is one, in front."""
    given = zstandard.ZstdCompressionDict(dictionary) if dictionary else None
    packer = zstandard.ZstdCompressor(write_checksum=checksum, dict_data=given)
    data = b"".join(packer.compress(one) for one in records)
    if dictionary is None:
        return data
    return b"\x5d\x2a\x4d\x18" + len(dictionary).to_bytes(4, "little") + dictionary + data


def dictionary(records: Sequence[bytes]) -> bytes:
    """A dictionary trained on records."""
    return zstandard.train_dictionary(4096, list(records)).as_bytes()


def lz4(records: Sequence[bytes]) -> bytes:
    """Records as a .warc.lz4, one frame each."""
    parts = []
    for one in records:
        out = io.BytesIO()
        writer = Lz4Writer(out)
        writer.write(one)
        writer.close()
        parts.append(out.getvalue())
    return b"".join(parts)


def with_dictionary(records: Sequence[bytes]) -> bytes:
    """Records as a .warc.zst with a dictionary of its own."""
    return frames(records, dictionary=dictionary(pages(300)))


CONTAINERS: dict[str, Callable[[Sequence[bytes]], bytes]] = {
    "plain": b"".join,
    "gzip": members,
    "zstd": frames,
    "zstd-dictionary": with_dictionary,
    "lz4": lz4,
    "one-member": lambda records: gzip.compress(b"".join(records), mtime=0),
    "one-frame": lambda records: frames([b"".join(records)]),
}
