"""The fate of every record of an archive at the door: text to go on with, or one reason why not.

Order of the questions, cheapest first: is the record whole, is it a page that was found, is its URL allowed, can
its body be decoded, is it HTML or text, does its owner object, is it text at all.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal

from corpusmill.errors import MillError
from corpusmill.readers.bodies import decode_body
from corpusmill.readers.charset import decode
from corpusmill.readers.headers import media_type
from corpusmill.readers.owner import OBJECTS, SENDS, may_say_so, objects_by_header, objects_by_meta, sends_on
from corpusmill.readers.scan import survey
from corpusmill.readers.screen import Media, classify, is_blank, lies_about
from corpusmill.readers.text import clean_text
from corpusmill.readers.urls import UrlRules
from corpusmill.readers.warc import FileFacts, RawRecord, read_records

STAGE = "acquire"
_TEXT = Media("text", "text/plain")
_Place = tuple[int, int, str, str | None, str | None, int | None]  # offset, index, record_type, url, date, status
_ROBOTS_TXT = re.compile(r"https?://[^/]*/robots\.txt(?:[?#].*)?\Z", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """What is let in."""

    max_payload_bytes: int = 16 * 2**20
    """Decoded payloads above it end as too_large."""
    robots: Literal["respect", "ignore"] = "respect"
    """Whether an owner's noindex, noai or tdm-reservation counts."""
    urls: UrlRules | None = None
    """Hosts and words of URLs that are rejected."""
    timeout_s: float = 30.0
    """CPU seconds of a parser for one record (wikitext, LaTeX, licences)."""
    memory_mb: int = 1536
    """What its process may take above its start."""
    verify_digests: bool = False
    """Whether records are compared with the digests in their heads; a wrong one is counted, the record stays."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One content record and what came of it: `html` or `text`, or else `stage` and `reason`.

    Attributes:
        offset: byte offset of the record, as in schema.RECORDS.
        index: which record at that offset; identity needs it where one gzip member holds several.
        record_type: response, revisit, resource, conversion; of other sources row, page, file; `unknown` where the
            head cannot be read.
        mime: media type by bytes and header together.
        payload_bytes: after decoding; as stored where it was not decoded.
        payload_digest: first 16 bytes of the sha256 of the decoded payload.
        charset_origin: bom, header, meta, detected or default.
        repairs: characters that had to be replaced or dropped.
        html: text of a page, still to be extracted.
        text: text that needs no extraction.
        extractor: what made `text`: wet (a conversion record), text (a plain-text payload), or a source's name for it.
        source_id: the document's own name in its source: id of a row, path in a tree, place in a crawl.
        code_language: of a source file.
        licence: of a source file, as an SPDX expression; of a row, as it states it.
        date: in its form (`dates.instant`).
        title, author: of a row, as it states them; those of a page are found when it is extracted.
        columns: further columns of a row that the recipe names, as a JSON object.
        file: locator of the file it is in, where that is not the unit's own.
    """

    offset: int
    index: int
    record_type: str
    url: str | None
    date: str | None
    status: int | None = None
    mime: str | None = None
    payload_bytes: int = 0
    payload_digest: bytes | None = None
    charset: str | None = None
    charset_origin: str | None = None
    repairs: int = 0
    html: str | None = field(default=None, repr=False)
    text: str | None = field(default=None, repr=False)
    extractor: str | None = None
    source_id: str | None = None
    code_language: str | None = None
    licence: str | None = None
    title: str | None = None
    author: str | None = None
    columns: str | None = None
    file: str | None = None
    stage: str | None = None
    reason: str | None = None


def outcomes(
    source: str | Path | BinaryIO, options: ReadOptions | None = None, facts: FileFacts | None = None
) -> Iterator[Outcome]:
    """Exactly one outcome for every response, revisit, resource or conversion record, in file order.

    Args:
        source: a WARC or WET archive, compressed or not.
        options: bounds and policy.
        facts: filled with what else was met: other record types, broken places.
    """
    options = options or ReadOptions()
    limit, verify = options.max_payload_bytes, options.verify_digests
    facts = FileFacts() if facts is None else facts
    for record in read_records(source, max_payload_bytes=limit, verify_digests=verify, facts=facts):
        try:
            found = outcome(record, options, facts)
        except Exception as err:
            found = crashed(err, facts, offset=record.offset, index=record.index, record_type=record.type)
        yield found


def crashed(err: Exception, facts: FileFacts, **place: Any) -> Outcome:
    """The outcome of a record on which its reader raised; what is no fault of the record is raised again.

    Args:
        err: what was raised.
        facts: where it is noted, by its type: messages may name memory or temporary files.
        place: fields of Outcome, of which `offset` and `record_type` are needed.

    Raises:
        OSError: a fault of the disk. MillError: of a server, the recipe or a module.
    """
    if isinstance(err, MillError) or (isinstance(err, OSError) and err.errno is not None):
        raise err
    facts.fault(place["offset"], "crashed", type(err).__name__)
    place = {"index": 0, "url": None, "date": None, **place}
    return Outcome(**place, stage="extract", reason="crashed")


def outcome(record: RawRecord, options: ReadOptions, facts: FileFacts) -> Outcome:
    """What comes of one record; `facts` count dates that have no form."""
    declared = _declared(record)
    url = _clean(record.url)
    date = facts.date("WARC-Date", record.date)
    place = (record.offset, record.index, record.type, url, date, record.http.status)
    reason = _early_reason(record) or (options.urls.reason(url) if options.urls else None)
    if reason is not None:
        return Outcome(*place, media_type(declared), len(record.payload), stage=STAGE, reason=reason)
    body = decode_body(record.payload, record.http, options.max_payload_bytes)
    if body.reason is not None:
        lie = lies_about(body.data) if body.reason in ("bad_encoding", "unsupported_encoding") else None
        if lie == "text/plain" and body.reason == "unsupported_encoding":
            lie = None  # it may be encoded as text
        mime, reason = (lie, "not_html") if lie else (media_type(declared), body.reason)
        return Outcome(*place, mime, len(record.payload), stage=STAGE, reason=reason)
    return _judged(place, record, body.data, declared, options)


def _early_reason(record: RawRecord) -> str | None:
    """What ends a record before its body is decoded."""
    status = record.http.status
    if record.fault:
        return record.fault
    if record.type == "revisit":
        return "revisit"
    if status is not None and status != 200:
        return "redirect" if 300 <= status < 400 else "http_status"
    return None


def _judged(place: _Place, record: RawRecord, payload: bytes, declared: str | None, options: ReadOptions) -> Outcome:
    """What comes of a record with a decoded payload."""
    size, digest = len(payload), hashlib.sha256(payload).digest()[:16]
    if is_blank(payload):
        return Outcome(*place, media_type(declared), size, digest, stage=STAGE, reason="empty_body")
    signs = survey(payload)
    is_wet = record.type == "conversion"
    media = _TEXT if is_wet else classify(payload, declared, signs)
    known = (*place, media.mime, size, digest)
    if media.kind == "other" or (media.kind == "text" and _is_robots_txt(record.url)):
        return Outcome(*known, stage=STAGE, reason="not_html")
    respect = options.robots == "respect"
    if respect and objects_by_header(record.http):
        return Outcome(*known, stage=STAGE, reason="robots_meta")
    page = decode(payload, declared, markup=media.kind == "html", signs=signs)
    if media.kind == "text":
        text = page.text.strip("\n")
        if not text.strip():
            return Outcome(*known, page.charset, page.origin, page.repairs, stage=STAGE, reason="empty_body")
        made = "wet" if is_wet else "text"
        return Outcome(*known, page.charset, page.origin, page.repairs, text=text, extractor=made)
    words = may_say_so(payload, signs)
    reason = None
    if words & OBJECTS and respect and objects_by_meta(page.text):
        reason = "robots_meta"
    elif words & SENDS and sends_on(page.text):
        reason = "redirect"
    if reason:
        return Outcome(*known, page.charset, page.origin, page.repairs, stage=STAGE, reason=reason)
    return Outcome(*known, page.charset, page.origin, page.repairs, page.text)


def _is_robots_txt(url: str | None) -> bool:
    return url is not None and _ROBOTS_TXT.match(url) is not None


def _declared(record: RawRecord) -> str | None:
    """The Content-Type that speaks about the payload: the last of the HTTP head's, or the record's own."""
    if record.http.status is None:
        declared = record.headers.get("content-type")
        return None if media_type(declared) == "application/http" else declared
    return record.http.content_type


def _clean(value: str | None) -> str | None:
    return clean_text(value)[0] if value is not None else None
