"""A record as it stands in its archive, and what is known about a file besides its records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal

from corpusmill.readers.dates import instant
from corpusmill.readers.digests import digest_is_wrong
from corpusmill.readers.headers import HttpHead, media_type, split_http
from corpusmill.readers.text import clean_text

CONTENT_TYPES = ("response", "revisit", "resource", "conversion")
"""Record types that hold a page or stand for one; all others are counted as `not_content`."""

MAX_FAULTS_LISTED = 100
MAX_COLUMNS, OTHER_COLUMNS = 1000, "(other columns)"
"""Columns of a file that are counted by name, and the name of what comes behind them."""
EXAMPLE_CHARS = 100
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
        needs: what takes too much memory, where it cannot be unpacked.
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
    needs: str = ""


@dataclass
class ColumnFacts:
    """A column of a file, or a field of its records.

    Attributes:
        type: as the file has it; empty where no value was seen.
        becomes: the field of documents that it fills; None: it is left out.
        values: how many there are.
        unreadable: those of them that have no form: they are null in documents.
        example: the first of these.
    """

    type: str
    becomes: str | None
    values: int = 0
    unreadable: int = 0
    example: str | None = None

    def unread(self, value: str) -> None:
        """Count a value that has no form."""
        self.unreadable += 1
        if self.example is None:
            self.example = clean_text(value[:EXAMPLE_CHARS])[0]

    def add(self, other: ColumnFacts) -> None:
        """Count what another part of the source has in this column."""
        self.type, self.example = self.type or other.type, other.example if self.example is None else self.example
        self.values, self.unreadable = self.values + other.values, self.unreadable + other.unreadable


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
    `cut_by_crawler` (WARC-Truncated); `template:NAME`, of wikitext, that gave no text; `memory:NEED`, of what would
    take too much to unpack; `rows:REASON`, that stand in one outcome."""

    columns: dict[str, ColumnFacts] = field(default_factory=dict)
    """Columns by name."""

    def too_much(self, needs: str) -> None:
        """Count what takes more memory to unpack than is given; what that is, as people read it."""
        self.counts[f"memory:{needs}"] += 1

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
        for name, column in other.columns.items():
            self.column(name, column.type, column.becomes).add(column)

    def column(self, name: str, kind: str, becomes: str | None) -> ColumnFacts:
        """The facts of a column, to be added to."""
        name = clean_text(name[:EXAMPLE_CHARS])[0]
        if name not in self.columns and len(self.columns) >= MAX_COLUMNS:
            name, kind, becomes = OTHER_COLUMNS, "", None
        found = self.columns.setdefault(name, ColumnFacts(kind, becomes))
        found.type = found.type or kind
        return found

    def date(self, name: str, text: str | None) -> str | None:
        """A date in its form (`dates.instant`); None, and counted, where it has none."""
        if not text:
            return None
        form, counted = instant(text), self.column(name, "string", "date")
        counted.values += 1
        if form is None:
            counted.unread(text)
        return form

    def as_dict(self) -> dict[str, object]:
        """For a receipt."""
        return {
            "bytes": self.bytes,
            "not_content": dict(sorted(self.not_content.items())),
            "faults": list(self.faults),
            "counts": dict(sorted(self.counts.items())),
            "columns": {name: asdict(column) for name, column in sorted(self.columns.items())},
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
