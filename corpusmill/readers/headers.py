"""WARC and HTTP headers, read as forgivingly as browsers do.

Line ends may be LF, names in any case, lines folded or without a colon, values in any bytes. Nothing here raises.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

HEAD_END = re.compile(rb"\n\r{0,2}\n")  # some writers end lines with two carriage returns; fields are stripped of them
_STATUS = re.compile(rb"(?:HTTP/\d(?:\.\d)?|ICY)[ \t]+(\d{3})(?!\d)")

MAX_HEAD = 256 * 1024  # bytes of an HTTP head that are looked at; browsers refuse less
MULTI = "\n"  # joins the values of a repeated header; cannot occur in one


@dataclass(frozen=True, slots=True)
class HttpHead:
    """Status line and headers of a response.

    Attributes:
        status: None where there is no readable status line.
        fields: names in lower case; values of a repeated header joined by a newline, in order.
    """

    status: int | None = None
    fields: Mapping[str, str] = field(default_factory=dict)

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


def parse_fields(head: bytes) -> dict[str, str]:
    """Header lines behind the first line of a head."""
    fields: dict[str, str] = {}
    name = ""
    for line in _text(head).split("\n")[1:]:
        if line.startswith((" ", "\t")):  # a folded line goes on with the value above
            if name:
                fields[name] = f"{fields[name]} {line.strip()}"
            continue
        name, colon, value = line.partition(":")
        name, value = name.strip().lower(), value.strip()
        if not colon or not name:
            name = ""
        elif name in fields:
            fields[name] = f"{fields[name]}{MULTI}{value}"
        else:
            fields[name] = value
    return fields


def split_http(block: bytes) -> tuple[HttpHead, bytes]:
    """Head and body of an HTTP response; a block without a status line is all body."""
    status = _STATUS.match(block)
    if not status:
        return HttpHead(), block
    end = HEAD_END.search(block)
    head, body = (block[: end.start()], block[end.end() :]) if end else (block, b"")
    return HttpHead(int(status[1]), parse_fields(head[:MAX_HEAD])), body


@lru_cache(maxsize=1024)
def media_type(value: str | None) -> str | None:
    """`type/subtype` of a Content-Type, lower case, without parameters; None where it is not one."""
    if not value:
        return None
    name = value.partition(";")[0].strip().lower()
    return name if "/" in name and " " not in name else None


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
