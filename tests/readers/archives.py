"""Small archives made for tests, record by record."""

from __future__ import annotations

import gzip
from collections.abc import Sequence

PAGE = b"<!DOCTYPE html><html><head><title>T</title></head><body><p>A page with a sentence on it.</p></body></html>"


def record(
    url: str = "http://example.org/",
    payload: bytes = PAGE,
    *,
    kind: str = "response",
    head: str = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8",
    length: int | None = None,
) -> bytes:
    """One record as it stands in a plain file; `length` lies about its content."""
    content = head.encode("utf-8") + b"\r\n\r\n" + payload if head else payload
    lines = [
        "WARC/1.0",
        f"WARC-Type: {kind}",
        f"WARC-Target-URI: {url}",
        "WARC-Date: 2026-01-02T03:04:05Z",
        "Content-Type: application/http; msgtype=response" if head else "Content-Type: text/plain",
        f"Content-Length: {len(content) if length is None else length}",
    ]
    return "\r\n".join(lines).encode("utf-8") + b"\r\n\r\n" + content + b"\r\n\r\n"


def pages(count: int) -> list[bytes]:
    """Records of pages that differ."""
    return [
        record(f"http://example.org/{i}", PAGE.replace(b"sentence", b"sentence number %d, long enough" % i))
        for i in range(count)
    ]


def members(records: Sequence[bytes]) -> bytes:
    """Records as a .warc.gz, one gzip member each."""
    return b"".join(gzip.compress(one, mtime=0) for one in records)
