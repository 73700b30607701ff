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
# Blanks of any number, addresses and dates of other forms or none; it counts only where a record has to begin.
_ARC_LOOSE = (
    rb"([A-Za-z][A-Za-z0-9+.\-]{1,31}:\S[^\n]{0,1000}?)[ \t]{1,4}(?:("
    rb"-|\?|0|null|\[?[0-9A-Fa-f]*:[0-9A-Fa-f:.]{1,44}\]?|[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,9}(?::\d{1,5})?"
    rb")[ \t]{1,4})?(-|0|\d{6,20}|\d{4}-\d\d-\d\d\S{0,20})[ \t]{1,4}"
    rb"(?:([^\n]{0,100}?)[ \t]{1,4})?(\d{1,15})[ \t]{0,4}\r?\n"
)
_VERSION = rb"[Ww][Aa][Rr][Cc]/\d\.\d{1,3}[ \t]{0,8}\r{0,2}\n"


@dataclass(frozen=True)
class Dialect:
    """How records are distinguished from what is between them.

    Attributes:
        start: a record's first line, to be searched for.
        begins: the same, to be matched where one has to begin; it may be looser.
        swallowed: the end of one record with the head of another behind it: what it looks like within a content.
        lookahead: bytes that `begins` may need.
        ending: what stands behind a content.
        head_end: the end of a head that begins so.
        parse: headers of a head, names in lower case.
    """

    name: str
    start: re.Pattern[bytes]
    begins: re.Pattern[bytes]
    swallowed: re.Pattern[bytes]
    lookahead: int
    endings: tuple[bytes, ...]
    head_end: re.Pattern[bytes]
    parse: Callable[[bytes], dict[str, str]]


def _parse_arc(head: bytes) -> dict[str, str]:
    line = re.match(_ARC_LINE, head + b"\n") or re.match(_ARC_LOOSE, head + b"\n")
    if line is None:
        return {}
    url, address, date, kind, length = (value.decode("utf-8", "replace") for value in line.groups(b""))
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
    """A date of 14 digits as WARC writes it; another as it stands, nothing where it says nothing."""
    if len(date) != 14 or not date.isdigit():
        return date if len(date) > 1 else ""
    return f"{date[:4]}-{date[4:6]}-{date[6:8]}T{date[8:10]}:{date[10:12]}:{date[12:]}Z"


WARC = Dialect(
    name="WARC",
    start=re.compile(_VERSION),
    begins=re.compile(_VERSION),
    swallowed=re.compile(rb"\r?\n\r?\n(?=" + _VERSION + rb")"),
    lookahead=24,
    endings=(b"\r\n\r\n", b"\n\n"),
    head_end=HEAD_END,
    parse=parse_fields,
)
ARC = Dialect(
    name="ARC",
    start=re.compile(rb"^" + _ARC_LINE, re.MULTILINE),
    begins=re.compile(_ARC_LINE + rb"|" + _ARC_LOOSE),
    swallowed=re.compile(rb"\n(?=" + _ARC_LINE + rb")"),
    lookahead=8192,
    endings=(b"\r\n", b"\n"),
    head_end=re.compile(rb"\r?\n"),
    parse=_parse_arc,
)
DIALECTS = (WARC, ARC)
