"""Our own reader of records: slower than FastWARC, but it gives back what damage leaves and says what it met.

A record whose length lies costs itself at most. Too long: it took in the head of the next record, which is found in
its content and given back. Too short: what is left of it up to the next record is added to it, if it ends as a record
does. A length that cannot be read: the record goes to the next one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from corpusmill.readers.containers.members import Archive, Junk, Member, first_unit, members
from corpusmill.readers.dialects import ARC, MAX_HEAD
from corpusmill.readers.headers import split_http
from corpusmill.readers.numbers import whole_number
from corpusmill.readers.records import CONTENT_TYPES, FileFacts, RawRecord, Reading, RecordFault, first

MAX_LENGTH = 10**15
"""What says that it is longer has no length that can be read."""
MAX_REST = 256 * 1024
"""How much of a record behind its stated length is added to it."""


def careful_records(archive: Archive, start: int, skipped: int, reading: Reading) -> Iterator[RawRecord]:
    """Records from the unit at `start` on, without the first `skipped`."""
    number = 0
    for unit in members(archive, start):
        for record in _unit_records(unit, reading):
            number += 1
            if number > skipped and is_content(record, reading.facts):
                yield record


def is_content(record: RawRecord, facts: FileFacts) -> bool:
    """Whether a record holds content or nobody can say; else it is counted. What is wrong with it is noted."""
    if record.fault in ("truncated", "damaged"):
        facts.fault(record.offset, record.fault)
    if record.needs:
        facts.too_much(record.needs)
    if record.wrong_digest:
        facts.fault(record.offset, "wrong_digest")
    if record.type in CONTENT_TYPES or (record.type == "unknown" and record.fault):
        if "warc-truncated" in record.headers:
            facts.counts["cut_by_crawler"] += 1
        return True
    facts.not_content[record.type] += 1
    return False


def _unit_records(unit: Member | Junk, reading: Reading) -> Iterator[RawRecord]:
    if isinstance(unit, Junk):
        yield RawRecord(unit.offset, 0, "unknown", fault="damaged")
        return
    index = 0
    while unit.skip_padding() and not unit.at_unit():
        yield _Record(unit, unit.offset if unit.compressed else unit.tell(), index, reading).read()
        index += unit.compressed
    if index == 0 and unit.compressed and unit.fault:
        yield RawRecord(unit.offset, 0, "unknown", fault=unit.fault, needs=unit.needs)


class _Record:
    """Reading of one record at hand."""

    def __init__(self, member: Member, offset: int, index: int, reading: Reading) -> None:
        self.member, self.offset, self.index, self.reading = member, offset, index, reading
        self.dialect = member.archive.dialect

    def read(self) -> RawRecord:
        member = self.member
        head = self._take_head()
        headers = self.dialect.parse(head) if head is not None else {}
        length = _length(headers)
        if length is None:
            return self._without_length(headers)
        begin = member.tell()
        limit = self.reading.limit
        content = member.take(min(length, limit))
        held = len(content) + member.skip(length - limit)
        fault: RecordFault | None = "too_large" if length > limit else None
        if held < length:
            if self._gives_back(content, b"", begin, held):
                return self._cut(headers, content)
            if member.fault or (not member.compressed and not _body_is_whole(content)):
                fault = member.fault or "truncated"
            else:  # the member is whole: the length was wrong, and the member's end is the record's
                content = self._without_ending(content)
                self._note_length()
            return self._record(headers, content, fault)
        gap = member.take_padding()
        if not member.fill(1):
            fault = member.fault or fault
        elif member.at_record() and (self.dialect is not ARC or (content + gap).endswith(b"\n")):
            pass  # what follows the first letter of an ARC record looks like one too
        elif self._gives_back(content, gap, begin, held):
            return self._cut(headers, content)
        elif fault:
            pass
        elif self.index == 0 and member.ends_badly():
            fault = member.fault  # a member of one record, and its checksum does not vouch for it
        elif not gap:
            content += self._rest()
        return self._record(headers, content, fault)

    def _record(self, headers: Mapping[str, str], content: bytes, fault: RecordFault | None) -> RawRecord:
        return self.reading.record(self.offset, self.index, headers, content, fault)

    def _note_length(self) -> None:
        self.reading.facts.counts["wrong_length"] += 1

    def _take_head(self) -> bytes | None:
        """The head of the record at hand, passed over with its blank line; None where there is none."""
        member = self.member
        if not member.at_record():
            return None
        size, join = 1024, False
        while True:
            whole = member.fill(size, join)
            end = self.dialect.head_end.search(member.buffer, member.position, member.position + MAX_HEAD)
            if end:
                head = member.buffer[member.position : end.start()]
                member.position = end.end()
                return head
            if size >= MAX_HEAD or (join and not whole):
                member.position += 1  # so that the search for the next record leaves this one
                return None
            size, join = size * 4, not whole

    def _without_length(self, headers: Mapping[str, str]) -> RawRecord:
        """A record that does not say where it ends: at the next one, if that is near and the address is known."""
        member = self.member
        if first(headers, "warc-target-uri"):
            content = member.take_to_record(min(self.reading.limit, MAX_REST))
            if content is not None and not member.fault:
                self._note_length()
                return self._record(headers, self._without_ending(content), None)
        member.skip_to_record()
        return self._record(headers, b"", member.fault or "damaged")

    def _gives_back(self, content: bytes, gap: bytes, begin: int, held: int) -> bool:
        """Whether the head of another record is found in what was read of this one; then it is at hand again."""
        member, peek = self.member, self.member.peek()
        if len(content) == held:
            cut = self._swallowed(content + gap + peek, begin)
            if cut is None or cut[1] >= len(content) + len(gap):
                return False
            member.back((content + gap)[cut[1] :])
            self._content = content[: cut[0]]
            return True
        cut = self._swallowed(content, begin)
        if not member.rewind(begin + (cut[1] if cut else max(0, len(content) - self.dialect.lookahead))):
            return False
        self._content = content[: cut[0]] if cut else None
        if cut is None:
            member.skip_to_record()
        return True

    def _swallowed(self, data: bytes, begin: int) -> tuple[int, int] | None:
        """Where in a content the record really ends, and where the one begins that it took in."""
        match = self.dialect.swallowed.search(data)
        found = (match.start(), match.end()) if match else None
        if self.member.compressed:
            return found
        unit = first_unit(self.member.archive, data, begin, 0, found[0] if found else len(data))
        return found if unit is None else (len(self._without_ending(data[:unit])), unit)

    def _cut(self, headers: Mapping[str, str], content: bytes) -> RawRecord:
        """The record without what it took of the next one."""
        self._note_length()
        if self._content is None:
            return self._record(headers, b"", "too_large")
        return self._record(headers, self._content.removesuffix(b"\r"), None)

    _content: bytes | None = None

    def _rest(self) -> bytes:
        """What stands between a length that is too short and the next record, if it ends as a record does."""
        rest = self.member.take_to_record(MAX_REST)
        if rest is None:
            return b""
        shortened = self._without_ending(rest)
        if len(shortened) == len(rest):
            self.member.back(rest)
            return b""
        self._note_length()
        return shortened

    def _without_ending(self, content: bytes) -> bytes:
        ending = next((e for e in self.dialect.endings if content.endswith(e)), b"")
        return content[: len(content) - len(ending)]


def _body_is_whole(content: bytes) -> bool:
    """Whether a response has all the bytes that its own head promises, whatever the record's head says."""
    http, body = split_http(content)
    promised = whole_number(http.get("content-length") or "")
    return promised is not None and 0 < promised <= len(body)


def _length(headers: Mapping[str, str]) -> int | None:
    return whole_number(first(headers, "content-length"), MAX_LENGTH)
