"""What a payload really is: a page, plain text, or something else.

The media type comes from the bytes and the HTTP header together; a header alone convinces nobody, and WARC headers
that repeat an earlier guess are not needed. Sniffing follows the browsers' rules (mimesniff.spec.whatwg.org) where
they matter here.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Literal

from corpusmill.readers.headers import media_type
from corpusmill.readers.scan import CONTROLS, HTML, SNIFFED, survey

Kind = Literal["html", "text", "other"]

ROOT_SEARCHED = 16 * 1024  # a licence in a comment may stand before the root of an XHTML page

_BINARY = (
    (b"%PDF-", "application/pdf"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF8", "image/gif"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"BM", "image/bmp"),
    (b"\x00\x00\x01\x00", "image/x-icon"),
    (b"OggS", "application/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"\x7fELF", "application/octet-stream"),
    (b"MZ", "application/octet-stream"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"{\\rtf", "application/rtf"),
    (b"%!PS-Adobe-", "application/postscript"),
    (b"\xd0\xcf\x11\xe0", "application/x-ole-storage"),
    (b"\x00asm", "application/wasm"),
    (b"SQLite format 3\x00", "application/vnd.sqlite3"),
)
ENCODED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
"""How bodies begin that gzip and zstd have made."""
_TEXTUAL_MAGIC = (b"BM", b"MZ", b"ID3", b"GIF8")  # could begin a text too: only with a control byte behind

_HTML_TAG = re.compile(
    rb"<(?:!doctype\s+html|html|head|body|title|meta|script|style|div|p|h[1-6]|table|br|a|b|span|center|font|link|iframe|article"
    rb"|main|section|header|nav|ul|ol|form|img|frameset|base|noscript)(?=[\s/>])",
    re.IGNORECASE,
)
_XML_DECLARATION = re.compile(rb"<\?xml\s[^>]*>", re.IGNORECASE)
_COMMENTS_AND_BLANKS = re.compile(rb"(?:\s+|<!--.*?-->|<\?xml-stylesheet[^>]*>)*", re.DOTALL)
_HTML_ROOT = re.compile(rb"<(?:!doctype\s+html|html|\w+:html)\b", re.IGNORECASE)
_BLANK = b" \t\r\n\f\v\x00\xef\xbb\xbf\xff\xfe"
_CONTROL_BYTES = bytes([*range(0x00, 0x09), 0x0B, *range(0x0E, 0x1B), *range(0x1C, 0x20)])

_HTML_TYPES = ("text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml", "application/xhtml")
_VAGUE_TYPES = ("application/octet-stream", "application/unknown", "unknown/unknown", "*/*", "application/x-unknown")


@dataclass(frozen=True, slots=True)
class Media:
    """What a payload is: whether to extract, take as text, or leave; and its media type."""

    kind: Kind
    mime: str


def classify(payload: bytes, declared: str | None, signs: int | None = None) -> Media:
    """Judge a payload by its bytes and by its HTTP Content-Type.

    Args:
        payload: the decoded body, not blank.
        declared: the Content-Type header.
        signs: what `survey` says of the payload, where that is known.
    """
    mime = media_type(declared)
    if signs is not None and signs & HTML and not signs & CONTROLS:
        return _by_type(mime, payload, b"", True)
    head = payload[:SNIFFED].removeprefix(b"\xef\xbb\xbf").lstrip()
    if (binary := _binary_type(head)) is not None:
        return Media("other", binary)
    controls = signs is None or signs & CONTROLS
    if payload[:2] in (b"\xff\xfe", b"\xfe\xff") or (controls and _looks_wide(payload[:SNIFFED])):
        head = head.replace(b"\x00", b"")
    elif controls and _is_binary(head):
        return Media("other", mime if mime and not mime.startswith("text/") else "application/octet-stream")
    if head.startswith(b"<?xml") and not _is_page(
        payload[:ROOT_SEARCHED], _HTML_TAG if mime in _HTML_TYPES else _HTML_ROOT
    ):
        return Media("other", mime if mime and mime.endswith("xml") and mime not in _HTML_TYPES else "application/xml")
    return _by_type(mime, payload, head, _HTML_TAG.match(_without_lead(head)) is not None)


def _by_type(mime: str | None, payload: bytes, head: bytes, looks_html: bool) -> Media:
    """What a payload is that neither is binary nor XML of some other kind."""
    if mime in _HTML_TYPES:
        if not looks_html and _is_json(payload):
            return Media("other", "application/json")
        return Media("html", "text/html" if mime == "text/html" else "application/xhtml+xml")
    if mime is None or mime in _VAGUE_TYPES:
        if looks_html or _HTML_TAG.search(head):
            return Media("html", "text/html")
        if mime is None:
            return Media("other", "application/json") if _is_json(payload) else Media("text", "text/plain")
        return Media("other", mime)
    if mime == "text/plain":
        return Media("html", "text/html") if looks_html else Media("text", mime)
    return Media("other", mime)


def lies_about(payload: bytes) -> str | None:
    """The media type of a payload that its encoding's decoder refuses, if its bytes show that it was never encoded."""
    head = payload[:SNIFFED].removeprefix(b"\xef\xbb\xbf").lstrip()
    if is_blank(payload) or payload.startswith(ENCODED):
        return None
    if (binary := _binary_type(head)) is not None:
        return binary
    if survey(payload) & CONTROLS:
        return None
    return "application/json" if _is_json(payload) else "application/xml" if head.startswith(b"<") else "text/plain"


def is_blank(payload: bytes) -> bool:
    """Whether there is nothing but white space, zero bytes and a byte order mark."""
    return not payload[:64].strip(_BLANK) and not payload[:4096].strip(_BLANK) and not payload.strip(_BLANK)


def _binary_type(head: bytes) -> str | None:
    if head.startswith(b"<") and head[4:8] != b"ftyp":  # as nearly all do, and none of those below
        return None
    for magic, mime in _BINARY:
        if head.startswith(magic) and (magic not in _TEXTUAL_MAGIC or _is_binary(head[:64])):
            return mime
    if head.startswith(b"RIFF") and head[8:12] in (b"WEBP", b"WAVE", b"AVI "):
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}[head[8:12]]
    return "video/mp4" if head[4:8] == b"ftyp" else None


def _is_binary(head: bytes) -> bool:
    controls = len(head) - len(head.translate(None, _CONTROL_BYTES))
    return controls * 10 > len(head)


def _looks_wide(head: bytes) -> bool:
    return head.count(0) * 3 >= len(head) > 8 and b"<" in head[:64]


def _without_lead(head: bytes) -> bytes:
    """The head behind an XML declaration, comments and blanks."""
    declaration = _XML_DECLARATION.match(head)
    head = head[declaration.end() :] if declaration else head
    lead = _COMMENTS_AND_BLANKS.match(head)
    return head[lead.end() :] if lead else head


def _is_page(head: bytes, root: re.Pattern[bytes]) -> bool:
    return root.match(_without_lead(head.removeprefix(b"\xef\xbb\xbf").lstrip())) is not None


def _is_json(payload: bytes) -> bool:
    text = payload.strip()
    if text[:1] + text[-1:] not in (b"{}", b"[]"):
        return False
    if len(text) > 2**20:
        return text[1:64].lstrip()[:1] in (b'"', b"{", b"[")
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
