"""What a record looks like in each of the two formats: WARC (all versions) and ARC 1 and 1.1.

An ARC record begins with one line, `URL IP date type [more fields] length`, and has a newline behind its content; its
head comes back under the names that a WARC record would have. ARC: archive.org/web/researcher/ArcFileFormat.php.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from corpusmill.readers.headers import HEAD_END, parse_fields

MAX_HEAD = 64 * 1024

_ARC_LINE = (
    rb"([A-Za-z][A-Za-z0-9+.\-]{1,31}:\S[^\n]{0,4000}?) (-|\d[\d.]{6,14}|[0-9A-Fa-f]*:[0-9A-Fa-f:.]{1,44}) (\d{8,20})"
    rb" ([^\n]{0,2000}?) ?(\S{1,16})\r?\n"
)


@dataclass(frozen=True)
class Dialect:
    """How records are distinguished from what is between them.

    Attributes:
        start: a record's first line, to be matched where one may begin or searched for.
        swallowed: the end of one record with the head of another behind it: what it looks like within a content.
        lookahead: bytes that `start` may need.
        ending: what stands behind a content.
        head_end: the end of a head whose start was matched.
        parse: headers of a head, names in lower case.
    """

    name: str
    start: re.Pattern[bytes]
    swallowed: re.Pattern[bytes]
    lookahead: int
    endings: tuple[bytes, ...]
    head_end: re.Pattern[bytes]
    parse: Callable[[bytes], dict[str, str]]


def _parse_arc(head: bytes) -> dict[str, str]:
    line = re.match(_ARC_LINE, head + b"\n")
    if line is None:
        return {}
    url, address, date, kind, length = (value.decode("utf-8", "replace") for value in line.groups())
    scheme = url.partition(":")[0].lower()
    types = {"filedesc": "filedesc", "http": "response", "https": "response"}
    return {
        "warc-type": types.get(scheme, "resource"),
        "warc-target-uri": url,
        "warc-date": _iso(date),
        "warc-ip-address": address,
        "content-type": kind.partition(" ")[0] if kind.count(" ") > 3 else kind,  # version 2 has more fields behind it
        "content-length": length,
    }


def _iso(date: str) -> str:
    """A date of 14 digits as WARC writes it; another as it stands."""
    if len(date) != 14:
        return date
    return f"{date[:4]}-{date[4:6]}-{date[6:8]}T{date[8:10]}:{date[10:12]}:{date[12:]}Z"


WARC = Dialect(
    name="WARC",
    start=re.compile(rb"WARC/\d\.\d{1,3}\r{0,2}\n"),
    swallowed=re.compile(rb"\r?\n\r?\n(?=WARC/\d\.\d{1,3}\r{0,2}\n)"),
    lookahead=16,
    endings=(b"\r\n\r\n", b"\n\n"),
    head_end=HEAD_END,
    parse=parse_fields,
)
ARC = Dialect(
    name="ARC",
    start=re.compile(rb"^" + _ARC_LINE, re.MULTILINE),
    swallowed=re.compile(rb"\n(?=" + _ARC_LINE + rb")"),
    lookahead=8192,
    endings=(b"\r\n", b"\n"),
    head_end=re.compile(rb"\r?\n"),
    parse=_parse_arc,
)
DIALECTS = (WARC, ARC)
