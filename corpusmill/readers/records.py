"""A record as it stands in its archive, and what is known about a file besides its records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from corpusmill.readers.digests import digest_is_wrong
from corpusmill.readers.headers import HttpHead, media_type, split_http

CONTENT_TYPES = ("response", "revisit", "resource", "conversion")
"""Record types that hold a page or stand for one; all others are counted as `not_content`."""

MAX_FAULTS_LISTED = 100
NO_HTTP = HttpHead()

RecordFault = Literal["truncated", "damaged", "too_large"]


@dataclass(frozen=True, slots=True)
class RawRecord:
    """One record as it stands in the archive.

    Attributes:
        offset: byte offset in the file: of the member where compressed (as in a CDX index), else of the record.
        index: which record of that member it is.
        type: WARC-Type in lower case; `unknown` where the head cannot be read.
        headers: WARC headers, names in lower case; those of ARC by the names that WARC has for them.
        http: status and headers of an HTTP response; empty for other content.
        payload: what follows the HTTP head, still encoded; empty where there is a fault.
        fault: why the record is not whole.
        wrong_digest: a digest in its head is not that of its content; looked at only if asked for.
    """

    offset: int
    index: int
    type: str
    url: str | None = None
    date: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    http: HttpHead = NO_HTTP
    payload: bytes = b""
    fault: RecordFault | None = None
    wrong_digest: bool = False


@dataclass
class FileFacts:
    """What reading says about a file besides its content records; filled while it is read."""

    bytes: int = 0
    not_content: Counter[str] = field(default_factory=Counter)
    """Records of other types, by type."""
    faults: list[dict[str, int | str]] = field(default_factory=list)
    """Where the file is broken: {"offset", "reason"} and perhaps "error", the first hundred."""
    counts: Counter[str] = field(default_factory=Counter)
    """`empty_file`, `truncated`, `damaged`, `crashed`, `wrong_digest` (places), `wrong_length` (repaired),
    `cut_by_crawler` (WARC-Truncated); `template:NAME`, of wikitext, that gave no text."""

    def fault(self, offset: int, reason: str, error: str = "") -> None:
        """Note a broken place; `error` is the kind of what was raised there."""
        self.counts[reason] += 1
        if len(self.faults) < MAX_FAULTS_LISTED:
            self.faults.append({"offset": offset, "reason": reason, **({"error": error} if error else {})})

    def add(self, other: FileFacts, file: str) -> None:
        """Add what was met in one file of several."""
        self.bytes += other.bytes
        self.not_content.update(other.not_content)
        self.counts.update(other.counts)
        for fault in other.faults[: MAX_FAULTS_LISTED - len(self.faults)]:
            self.faults.append({"file": file, **fault})

    def as_dict(self) -> dict[str, object]:
        """For a receipt."""
        return {
            "bytes": self.bytes,
            "not_content": dict(sorted(self.not_content.items())),
            "faults": list(self.faults),
            "counts": dict(sorted(self.counts.items())),
        }


@dataclass(frozen=True)
class Reading:
    """How a file is read: no more than `limit` bytes of a content are held; digests are verified, or not."""

    limit: int
    verify: bool
    facts: FileFacts

    def record(
        self, offset: int, index: int, headers: Mapping[str, str], content: bytes, fault: RecordFault | None
    ) -> RawRecord:
        """A record of its head and content."""
        kind = first(headers, "warc-type").lower()
        url = first(headers, "warc-target-uri").strip("<>") or None
        date = first(headers, "warc-date") or None
        if not kind or (url is None and kind in CONTENT_TYPES):
            fault = fault or "damaged"  # a page without a URL cannot be traced to its owner
        if fault:
            return RawRecord(offset, index, kind or "unknown", url, date, headers, fault=fault)
        http, payload = NO_HTTP, content
        if kind in ("response", "revisit") and _is_http(headers, content):
            http, payload = split_http(content)
        wrong = self.verify and digest_is_wrong(headers, http, content, payload)
        return RawRecord(offset, index, kind, url, date, headers, http, payload, wrong_digest=wrong)


def first(headers: Mapping[str, str], name: str) -> str:
    """The first value of a header; empty where there is none."""
    return headers.get(name, "").partition("\n")[0]


def _is_http(headers: Mapping[str, str], content: bytes) -> bool:
    return content.startswith(b"HTTP/") or media_type(headers.get("content-type")) == "application/http"
