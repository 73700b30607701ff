"""Pages by index: the lines of a CDXJ file that a recipe selects, and their records by ranged reads of WARC files.

Records keep the identity they have when their WARC file is read whole. Those near one another are read at once, in the
order of file and offset; the places selected from one index file are held in memory (some 200 bytes each).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any
from urllib.parse import urlsplit

from corpusmill.config import Select
from corpusmill.readers.numbers import whole_number
from corpusmill.readers.outcomes import Outcome, ReadOptions, crashed, outcomes
from corpusmill.readers.warc import FileFacts
from tasks.acquire.fetch.transport import Fetched
from tasks.acquire.streams import lines, pieces
from tasks.acquire.texts import cell, ended

VERSION = 2
IS_INDEX = re.compile(r"(^|/)cdx-\d+\.gz$")
MAX_LINE = 2**20
MAX_RECORD = 2**30
MAX_OFFSET = 10**15
GAP_BYTES, SPAN_BYTES = 64 * 1024, 8 * 2**20

ReadRange = Callable[[str, int, int], bytes]
"""(locator, first byte, how many) -> bytes."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a record is, and what the index says of it."""

    file: str
    offset: int
    length: int
    url: str | None
    date: str | None


def read(
    file: Fetched, select: Select, read_range: ReadRange, options: ReadOptions, facts: FileFacts
) -> Iterator[Outcome]:
    """One outcome for every page selected, and for every line that cannot be read.

    Raises:
        Unavailable: a WARC file that the index names is away.
    """
    facts.bytes = file.size
    places: set[Place] = set()
    for line in lines(pieces(file.path), MAX_LINE):
        if line.damage:
            line.damage.note(line.offset, facts)
        entry = None if line.fault else _entry(line.data)
        place = _place(entry) if entry else None
        if place is None or entry is None:
            if line.data or line.fault:
                yield ended(line.fault or "bad_row", offset=line.offset, record_type="unknown", payload_bytes=line.size)
        elif not is_selected(entry, select):
            facts.not_content["not_selected"] += 1
        elif place in places:
            facts.not_content["listed_twice"] += 1
        else:
            places.add(place)
    for group in groups(sorted(places, key=lambda at: (at.file, at.offset, at.length, at.url or "", at.date or ""))):
        begin = group[0].offset
        data = read_range(group[0].file, begin, max(p.offset + p.length for p in group) - begin)
        for place in group:
            try:
                outcome = _outcome(place, data[place.offset - begin :][: place.length], options, facts)
            except Exception as err:
                outcome = crashed(err, facts, offset=place.offset, record_type="unknown", file=place.file)
            yield outcome


def is_selected(entry: dict[str, Any], select: Select) -> bool:
    """Whether the page of an index line meets every list that is given."""
    if select.statuses and str(entry.get("status")) not in map(str, select.statuses):
        return False
    if select.mimes and (entry.get("mime-detected") or entry.get("mime")) not in select.mimes:
        return False
    if select.languages and str(entry.get("languages") or "").partition(",")[0] not in select.languages:
        return False
    return not select.domains or _host_is_in(str(entry.get("url")), select.domains)


def groups(places: Sequence[Place]) -> Iterator[list[Place]]:
    """Places that are read at once: of one file, with small gaps, not too much together."""
    group: list[Place] = []
    for place in places:
        if group and not (
            place.file == group[0].file
            and place.offset <= group[-1].offset + group[-1].length + GAP_BYTES
            and place.offset + place.length <= group[0].offset + SPAN_BYTES
        ):
            yield group
            group = []
        group.append(place)
    if group:
        yield group


def _entry(line: bytes) -> dict[str, Any] | None:
    """The JSON of an index line, behind key and timestamp."""
    begin = line.find(b"{")
    try:
        entry = json.loads(line[begin:].decode("utf-8")) if begin >= 0 else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict):
        return None
    head = line[:begin].split()
    return {"timestamp": head[-1].decode("ascii", "replace") if head else None, **entry}


def _place(entry: dict[str, Any]) -> Place | None:
    file = cell(entry.get("filename")) or ""
    offset, length = whole_number(str(entry.get("offset", "")), MAX_OFFSET), whole_number(str(entry.get("length", "")))
    if not file or file != entry["filename"] or file.startswith("/") or ".." in file.split("/") or "\\" in file:
        return None
    if offset is None or not length or length > MAX_RECORD:
        return None
    return Place(file, offset, length, cell(entry.get("url")), cell(entry.get("timestamp")))


def _host_is_in(url: str, domains: Sequence[str]) -> bool:
    try:
        host = (urlsplit(url).hostname or "").lower().rstrip(".")
    except ValueError:
        return False
    return any(host == domain or host.endswith(f".{domain}") for domain in domains)


def _outcome(place: Place, data: bytes, options: ReadOptions, facts: FileFacts) -> Outcome:
    """What comes of the bytes of one record."""
    own = FileFacts()
    known: dict[str, Any] = {"file": place.file, "source_id": f"{place.file}:{place.offset}"}
    found = next(outcomes(BytesIO(data), options, own), None) if data else None
    for name, count in own.counts.items():
        facts.counts[name] += count
    for name, column in own.columns.items():
        facts.column(name, column.type, column.becomes).add(column)
    if found is None:  # a request, or nothing at all, where the index promises a page
        reason = "truncated" if len(data) < place.length else "damaged"
        date = facts.date("timestamp", place.date)
        return ended(reason, offset=place.offset, record_type="unknown", url=place.url, date=date, **known)
    return replace(found, offset=place.offset + found.offset, **known)
