"""WARC and HTTP headers, read as forgivingly as browsers do.

Line ends may be LF, names in any case, lines folded or without a colon, values in any bytes. Nothing here raises.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from corpusmill.readers.scan import plain_http_head

HEAD_END = re.compile(rb"\n\r{0,2}\n")  # some writers end lines with two carriage returns; fields are stripped of them
_STATUS = re.compile(rb"(?:HTTP/\d(?:\.\d)?|ICY)[ \t]+(\d{3})(?!\d)")
_CONNECTED = re.compile(rb"[^\r\n]*connection established", re.IGNORECASE)

MAX_INTERIM = 10
MAX_HEAD = 256 * 1024  # bytes of an HTTP head that are looked at; browsers refuse less
MULTI = "\n"  # joins the values of a repeated header; cannot occur in one


class HttpHead:
    """Status line and headers of a response; a plain head is parsed only if asked for what is not known of it.

    Attributes:
        status: None where there is no readable status line.
        plain: says nothing about encodings, robots or reservations, and has one Content-Type at most.
    """

    __slots__ = ("_fields", "_head", "_type", "plain", "status")

    def __init__(self, status: int | None = None, fields: Mapping[str, str] | None = None) -> None:
        self.status, self.plain = status, fields is None
        self._fields: Mapping[str, str] | None = {} if fields is None else fields
        self._head = b""
        self._type: str | None = None

    @classmethod
    def of_plain(cls, status: int, head: bytes, content_type: str | None) -> HttpHead:
        """A head as `scan.plain_http_head` finds it."""
        self = cls.__new__(cls)
        self.status, self.plain, self._fields, self._head, self._type = status, True, None, head, content_type
        return self

    @property
    def fields(self) -> Mapping[str, str]:
        """Names in lower case; values of a repeated header joined by a newline, in order."""
        if self._fields is None:
            self._fields = parse_fields(self._head)
        return self._fields

    def get(self, name: str) -> str | None:
        """The first value of a header that is not blank."""
        value = self.fields.get(name)
        if value is None or MULTI not in value:
            return value
        return next((v for v in value.split(MULTI) if v), "")

    def all(self, name: str) -> list[str]:
        """Every value of a header."""
        value = self.fields.get(name)
        return [] if value is None else value.split(MULTI)

    @property
    def content_type(self) -> str | None:
        """The Content-Type that speaks about the body: the last that is one."""
        if self.plain:
            return self._type if media_type(self._type) else None
        return next(filter(media_type, reversed(self.all("content-type"))), None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HttpHead) and (self.status, self.fields) == (other.status, other.fields)

    def __hash__(self) -> int:
        return hash(self.status)

    def __repr__(self) -> str:
        return f"HttpHead({self.status}, {dict(self.fields)})"


class _Names(dict[str, str]):
    """Header names without blanks and in lower case; the first thousand are remembered."""

    def __missing__(self, name: str) -> str:
        lower = name.strip().lower()
        if len(self) < 1000:
            self[name] = lower
        return lower


_NAMES = _Names()


def parse_fields(head: bytes) -> dict[str, str]:
    """Header lines behind the first line of a head."""
    text = _text(head)
    if "\n " in text or "\n\t" in text:  # a folded line goes on with the value above
        return _parse_folded(text)
    fields: dict[str, str] = {}
    for line in text.split("\n")[1:]:
        name, colon, value = line.partition(":")
        if colon and (name := _NAMES[name]):
            fields[name] = f"{fields[name]}{MULTI}{value.strip()}" if name in fields else value.strip()
    return fields


def _parse_folded(text: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    name = ""
    for line in text.split("\n")[1:]:
        if line.startswith((" ", "\t")):
            if name:
                fields[name] = f"{fields[name]} {line.strip()}"
            continue
        name, colon, value = line.partition(":")
        name, value = _NAMES[name], value.strip()
        if not colon or not name:
            name = ""
        elif name in fields:
            fields[name] = f"{fields[name]}{MULTI}{value}"
        else:
            fields[name] = value
    return fields


def split_http(block: bytes) -> tuple[HttpHead, bytes]:
    """Head and body of an HTTP response; a block without a status line is all body.

    An interim answer (100 Continue, 103 Early Hints) or that of a proxy to CONNECT stands before the response itself.
    """
    http, body = _split(block)
    for _ in range(MAX_INTERIM):
        if http.status is None or not (http.status // 100 == 1 or (http.status == 200 and body.startswith(b"HTTP/"))):
            break
        final = body[:64].lstrip(b"\r\n")
        if not _STATUS.match(final) or (http.status == 200 and not _CONNECTED.match(block)):
            break
        block = body.lstrip(b"\r\n")
        http, body = _split(block)
    return http, body


def _split(block: bytes) -> tuple[HttpHead, bytes]:
    code, end, begin, type_begin, type_end = plain_http_head(block, MAX_HEAD)
    if code >= 0:
        content_type = block[type_begin:type_end].decode("ascii").strip() if type_end else None
        return HttpHead.of_plain(code, block[:end], content_type), block[begin:]
    status = _STATUS.match(block)
    if not status:
        return HttpHead(), block
    match = HEAD_END.search(block)
    end, begin = match.span() if match else (len(block), len(block))
    return HttpHead(int(status[1]), parse_fields(block[: min(end, MAX_HEAD)])), block[begin:]


@lru_cache(maxsize=1024)
def media_type(value: str | None) -> str | None:
    """`type/subtype` of a Content-Type, lower case, without parameters; None where it is not one."""
    if not value:
        return None
    name = value.partition(";")[0].strip().lower()
    return name if "/" in name and " " not in name else None


@lru_cache(maxsize=1024)
def charset_of(value: str | None) -> str | None:
    """The charset parameter of a Content-Type."""
    if not value:
        return None
    match = re.search(r"charset\s*=\s*[\"']?\s*([^\s\"';,]+)", value, re.IGNORECASE)
    return match[1] if match else None


def _text(head: bytes) -> str:
    try:
        return head.decode("utf-8")
    except UnicodeDecodeError:
        return head.decode("latin-1")
