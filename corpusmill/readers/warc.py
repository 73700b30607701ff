"""Records of WARC and WET archives, sound or broken.

What can be read is read: a record that is cut or damaged comes back with its fault, and reading goes on at the next
gzip member, or the next record of a plain file. Contents are bounded before they are held. Containers other than gzip
(zstd, LZ4) are left to FastWARC.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal

from corpusmill.readers.headers import HEAD_END, HttpHead, media_type, parse_fields, split_http
from corpusmill.readers.members import GZIP_MAGIC, File, Junk, Member, Sequential, holds_record, members, open_file

CONTENT_TYPES = ("response", "revisit", "resource", "conversion")
"""Record types that hold a page or stand for one; all others are counted as `not_content`."""

MAX_HEAD = 64 * 1024
MAX_FAULTS_LISTED = 100
ALIGNMENT_CHECKED = 16  # records; who cuts members elsewhere than records does so from the beginning

NO_HTTP = HttpHead()

RecordFault = Literal["truncated", "damaged", "too_large"]
_SWALLOWED = re.compile(rb"\r?\n\r?\n(?=WARC/\d\.\d{1,3}\r?\n)")
CAREFUL = (GZIP_MAGIC, b"WARC/")
MAGICS = (*CAREFUL, b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18")  # zstd, LZ4
COUNTED_TYPES = ("warcinfo", "request", "metadata", "continuation")


@dataclass(frozen=True, slots=True)
class RawRecord:
    """One record as it stands in the archive.

    Attributes:
        offset: byte offset in the file: of the gzip member where compressed (as in a CDX index), else of the record.
        index: which record of that member it is.
        type: WARC-Type in lower case; `unknown` where the head cannot be read.
        headers: WARC headers, names in lower case.
        http: status and headers of an HTTP response; empty for other content.
        payload: what follows the HTTP head, still encoded; empty where there is a fault.
        fault: why the record is not whole.
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


@dataclass
class FileFacts:
    """What reading says about a file besides its content records; filled while it is read."""

    bytes: int = 0
    not_content: Counter[str] = field(default_factory=Counter)
    """Records of other types, by type."""
    faults: list[dict[str, int | str]] = field(default_factory=list)
    """Where the file is broken: {"offset", "reason"}, the first hundred."""
    counts: Counter[str] = field(default_factory=Counter)
    """`empty_file`, `truncated`, `damaged` (places), `wrong_length` (repaired), `cut_by_crawler` (WARC-Truncated)."""

    def fault(self, offset: int, reason: str) -> None:
        """Note a broken place."""
        self.counts[reason] += 1
        if len(self.faults) < MAX_FAULTS_LISTED:
            self.faults.append({"offset": offset, "reason": reason})

    def as_dict(self) -> dict[str, object]:
        """For a receipt."""
        return {
            "bytes": self.bytes,
            "not_content": dict(sorted(self.not_content.items())),
            "faults": list(self.faults),
            "counts": dict(sorted(self.counts.items())),
        }


def read_records(
    source: str | Path | BinaryIO, *, max_payload_bytes: int = 16 * 2**20, facts: FileFacts | None = None
) -> Iterator[RawRecord]:
    """Content records of an archive in file order; broken ones with their fault.

    Args:
        source: a path or a binary stream.
        max_payload_bytes: longer contents come back empty with fault `too_large`.
        facts: filled with what else was met.

    Raises:
        OSError: the file cannot be opened or read; never for what stands in it.
    """
    facts = FileFacts() if facts is None else facts
    limit = max_payload_bytes + MAX_HEAD
    with open_file(source) as file:
        facts.bytes = file.size
        magic = next((m for m in MAGICS if file.read_at(0, len(m)) == m), None)
        if file.size == 0:
            facts.fault(0, "empty_file")
            return
        given: tuple[int, int] = (0, 0)
        if magic is not None:
            given = yield from _sound_records(file, magic, limit, facts)
        if magic in (*CAREFUL, None):
            yield from _careful_records(file, *given, limit, facts)


def _careful_records(file: File, start: int, skipped: int, limit: int, facts: FileFacts) -> Iterator[RawRecord]:
    """Records from the unit at `start` on, without the first `skipped`."""
    number = 0
    for unit in members(file, start):
        for record in _unit_records(unit, limit, facts):
            number += 1
            if number > skipped:
                yield from _counted(record, facts)


def _unit_records(unit: Member | Junk, limit: int, facts: FileFacts) -> Iterator[RawRecord]:
    if isinstance(unit, Junk):
        yield RawRecord(unit.offset, 0, "unknown", fault="damaged")
        return
    index = 0
    while unit.skip_padding():
        yield _read_record(unit, unit.offset if unit.compressed else unit.tell(), index, limit, facts)
        index += unit.compressed
    if index == 0 and unit.compressed and unit.fault:
        yield RawRecord(unit.offset, 0, "unknown", fault=unit.fault)


def _counted(record: RawRecord, facts: FileFacts) -> Iterator[RawRecord]:
    """The record, if it holds content or nobody can say; else it is counted only."""
    if record.fault in ("truncated", "damaged"):
        facts.fault(record.offset, record.fault)
    if record.type in CONTENT_TYPES or (record.type == "unknown" and record.fault):
        if "warc-truncated" in record.headers:
            facts.counts["cut_by_crawler"] += 1
        yield record
    else:
        facts.not_content[record.type] += 1


def _read_record(member: Member, offset: int, index: int, limit: int, facts: FileFacts) -> RawRecord:
    head = _take_head(member)
    headers = parse_fields(head) if head is not None else {}
    length = _length(headers)
    if length is None:
        member.skip_to_record()
        return _record(offset, index, headers, b"", member.fault or "damaged")
    content = member.take(min(length, limit))
    held = len(content) + member.skip(length - limit)
    fault: RecordFault | None = "too_large" if length > limit else None
    if held < length:
        if member.fault or not member.compressed:
            fault = member.fault or "truncated"
        else:  # the member is whole: the length was wrong, and the member's end is the record's
            content = content.removesuffix(b"\r\n\r\n")
            facts.counts["wrong_length"] += 1
    else:
        gap = member.take_padding()
        if not member.fill(1):
            fault = member.fault or fault
        elif fault or member.at_record():
            pass
        elif cut := _SWALLOWED.search(content):
            member.back(content[cut.end() :] + gap)  # the length was too long and took the head of the next record
            content = content[: cut.start()]
            facts.counts["wrong_length"] += 1
        elif index == 0 and member.ends_badly():
            fault = member.fault  # a member of one record, and its checksum does not vouch for it
    return _record(offset, index, headers, content, fault)


def _record(
    offset: int, index: int, headers: Mapping[str, str], content: bytes, fault: RecordFault | None
) -> RawRecord:
    kind = _first(headers, "warc-type").lower()
    url = _first(headers, "warc-target-uri").strip("<>") or None
    date = _first(headers, "warc-date") or None
    if not kind or (url is None and kind in CONTENT_TYPES):
        fault = fault or "damaged"  # a page without an address cannot be traced to its owner
    if fault:
        return RawRecord(offset, index, kind or "unknown", url, date, headers, fault=fault)
    http, payload = NO_HTTP, content
    if kind in ("response", "revisit") and _is_http(headers, content):
        http, payload = split_http(content)
    return RawRecord(offset, index, kind, url, date, headers, http, payload)


def _take_head(member: Member) -> bytes | None:
    """The head of the record at hand, passed over with its blank line; None where there is none."""
    if not member.at_record():
        return None
    size, join = 1024, False
    while True:
        whole = member.fill(size, join)
        end = HEAD_END.search(member.buffer, member.position, member.position + MAX_HEAD)
        if end:
            head = member.buffer[member.position : end.start()]
            member.position = end.end()
            return head
        if size >= MAX_HEAD or (join and not whole):
            member.position += 1  # so that the search for the next record leaves this one
            return None
        size, join = size * 4, not whole


def _length(headers: Mapping[str, str]) -> int | None:
    value = _first(headers, "content-length")
    return int(value) if value.isascii() and value.isdigit() and len(value) < 16 else None


def _first(headers: Mapping[str, str], name: str) -> str:
    return headers.get(name, "").partition("\n")[0]


def _is_http(headers: Mapping[str, str], content: bytes) -> bool:
    return media_type(headers.get("content-type")) == "application/http" or content.startswith(b"HTTP/")


def _sound_records(
    file: File, magic: bytes, limit: int, facts: FileFacts
) -> Generator[RawRecord, None, tuple[int, int]]:
    """Records by FastWARC, as long as there is no doubt about them.

    FastWARC takes half the time, but passes over cut records, wrong lengths and garbage in silence. So a record is
    given only when the one behind it has been read too, and the last ones are left to the careful reader.

    Returns:
        where the careful reader has to begin, and how many records it has to leave out there.
    """
    from fastwarc.warc import ArchiveIterator

    given = 0
    held: RawRecord | None = None
    last = 0
    whole = False
    try:
        for found in ArchiveIterator(file.path or Sequential(file), parse_http=False, fsspec_args=False):
            record = _from_fastwarc(found, limit)
            if record is None or (held is not None and record.offset <= held.offset):
                break
            if file.read_at(record.offset, len(magic)) != magic:
                break  # not the beginning of a member: the member holds several records
            if given < ALIGNMENT_CHECKED and not _begins_at(file, record.offset):
                break  # members are cut elsewhere than records are
            if held is not None:
                yield from _counted(held, facts)
                given, last = given + 1, held.offset
            held = record
        else:
            whole = True
    except (OSError, UnicodeError):
        pass
    if magic not in CAREFUL:  # we cannot look ourselves
        if held is not None:
            yield from _counted(held, facts)
        if not whole:
            yield from _counted(RawRecord(held.offset if held else 0, 1, "unknown", fault="damaged"), facts)
    return (last, min(given, 1)) if _begins_at(file, last) else (0, given)


def _begins_at(file: File, offset: int) -> bool:
    """Whether a record begins with the gzip member at `offset`; plain and other files have no such trouble."""
    return file.read_at(offset, 3) != GZIP_MAGIC or holds_record(file, offset)


def _from_fastwarc(found: Any, limit: int) -> RawRecord | None:
    """The same record as the careful reader makes, or None where there is doubt."""
    kind, length = str(found.record_type), found.content_length
    if kind not in CONTENT_TYPES:
        named = (
            kind in COUNTED_TYPES or (found.headers.get("WARC-Type") or "").lower() == kind
        )  # a type called "unknown"
        return RawRecord(found.stream_pos, 0, kind) if named else None
    content = found.reader.read(min(length, limit))
    pairs = found.headers.items_bytes()
    headers = {name.decode().lower(): value.decode() for name, value in pairs}
    if len(content) < min(length, limit) or len(headers) < len(pairs):
        return None
    return _record(found.stream_pos, 0, headers, content, "too_large" if length > limit else None)
