"""Dumps of MediaWiki: one page a document, its wikitext without templates, tables, references and file links.

Pages are found in the bytes by `<page>`, which stands nowhere else (text is escaped), and parsed one by one: a page
that is damaged is lost alone. Plain and bzip2 dumps are cut into blocks; in bzip2 at the streams, of which
`pages-articles-multistream` has one per hundred pages. `offset` is that of the page (plain) or of its stream.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from xml.etree import ElementTree

from corpusmill.config import MediaWiki
from corpusmill.readers.containers.parts import SCAN, Part
from corpusmill.readers.numbers import signed_number
from corpusmill.readers.outcomes import Outcome, ReadOptions, crashed
from corpusmill.readers.parsers.wikitext import page_text
from corpusmill.readers.warc import FileFacts
from tasks.acquire.bounded import bounded
from tasks.acquire.fetch.transport import Fetched
from tasks.acquire.streams import BZIP2, READ_BYTES, Damage, decompressed, pieces
from tasks.acquire.texts import cell, document, ended
from tasks.acquire.tree.listing import listed
from tasks.acquire.tree.names import PACKED
from tasks.acquire.units import SourceUnit

VERSION = 2
LIBRARIES = ("mwparserfromhell",)
CUT = r"\.xml(-[a-z0-9]+)?(\.bz2)?$"
NAMES = re.compile(rf"\.xml(-[a-z0-9]+)?{PACKED}", re.IGNORECASE)
HEAD_BYTES = 2**20
MAX_NAMES = 1000  # of dropped templates in a file's facts; the others are counted together
STREAM = re.compile(rb"BZh[1-9]1AY&SY")
OPEN, CLOSE = b"<page>", b"</page>"
DEFAULT_NAMESPACES = {6: ("file", "image"), 14: ("category",)}
"""Names of the namespaces whose links show nothing a reader would read, besides those that the dump states."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some bytes of a dump.

    Attributes:
        offset: of the piece itself (`exact`), or of the bzip2 stream it is from.
        mine: whether pages that begin in it belong to the unit.
        damage: why reading does not go on here.
    """

    offset: int
    data: bytes = b""
    exact: bool = True
    mine: bool = True
    damage: Damage | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """The bytes from `<page>` to `</page>`; none where it is too large or reading ended in it."""

    offset: int
    index: int
    size: int
    data: bytes = b""
    damage: Damage | None = None


def plan(name: str, config: MediaWiki, seed: int) -> list[SourceUnit]:
    """Every dump below the root that fits the pattern, plain and bzip2 ones in blocks."""
    return listed(name, config, seed, "mediawiki", reads=NAMES, cut=CUT)


def reading(config: MediaWiki) -> dict[str, object]:
    """What is let in."""
    return {"version": VERSION, "namespaces": sorted(config.namespaces)}


def read(
    unit: SourceUnit, file: Fetched, config: MediaWiki, options: ReadOptions, facts: FileFacts
) -> Iterator[Outcome]:
    """One outcome for every page that begins in the unit."""
    facts.bytes = file.size
    wiki = _Wiki(file.path)
    with file.path.open("rb") as stream:
        for page in pages(dump_pieces(stream, unit.begin, unit.end), 4 * options.max_payload_bytes):
            if page.damage:
                page.damage.note(page.offset, facts)
            try:
                outcome = _outcome(page, wiki, config, options, facts)
            except Exception as err:
                outcome = crashed(err, facts, **_place(page))
            yield outcome


def dump_pieces(file: BinaryIO, begin: int, end: int | None) -> Iterator[Piece]:
    """The bytes of a dump from a block's beginning on, and behind its end what a page may run on into."""
    head = file.read(3)
    file.seek(0)
    if head == BZIP2:
        yield from _streams(file, begin, end)
        return
    file.seek(begin)
    position = begin
    try:
        for data in decompressed(file) if begin == 0 else iter(lambda: file.read(READ_BYTES), b""):
            inside = len(data) if end is None else max(0, min(len(data), end - position))
            if inside:
                yield Piece(position, data[:inside])
            if inside < len(data):
                yield Piece(position + inside, data[inside:], mine=False)
            position += len(data)
    except Damage as err:
        yield Piece(position, damage=err)


def _streams(file: BinaryIO, begin: int, end: int | None) -> Iterator[Piece]:
    size = file.seek(0, io.SEEK_END)
    start, last = _stream_at(file, begin, size), size if end is None else _stream_at(file, end, size)
    while start < size:
        after = _stream_at(file, start + 1, size)
        try:
            for data in decompressed(Part(file, start, after)):  # type: ignore[arg-type]
                yield Piece(start, data, exact=False, mine=start < last)
        except Damage as err:
            yield Piece(start, exact=False, mine=start < last, damage=err)
        start = after


def _stream_at(file: BinaryIO, position: int, size: int) -> int:
    """Where the first bzip2 stream at or behind a position begins; the file's size if nowhere."""
    while position < size:
        file.seek(position)
        if match := STREAM.search(file.read(SCAN + 16)):
            return position + match.start()
        position += SCAN
    return size


def pages(stream: Iterator[Piece], limit: int) -> Iterator[Page]:
    """Every page that begins in a piece that is the unit's own; it may run on into others.

    Args:
        stream: from `dump_pieces`.
        limit: longer pages come without data, and are not held.
    """
    count = _Count()
    before = Piece(0)
    carry = b""  # the end of what was read, which may hold the beginning of a tag
    place: tuple[int, int] | None = None  # of the page being read
    body: list[bytes] = []  # joined once
    size = 0
    for piece in stream:
        if piece.damage:
            if place is not None or piece.mine:
                yield Page(*(place or count.of(piece, 0)), size, b"", piece.damage)
            carry, place, body, size = b"", None, [], 0
            continue
        rest, shift, position = carry + piece.data, len(carry), 0
        while True:
            at = rest.find(OPEN if place is None else CLOSE, position)
            if place is None and at >= 0:
                origin, delta = (piece, at - shift) if at >= shift else (before, len(before.data) + at - shift)
                if not origin.mine:
                    return
                place, position = count.of(origin, delta), at
                continue
            end = max(position, len(rest) - len(CLOSE) + 1) if at < 0 else at + len(CLOSE)
            if place is not None:
                size += end - position
                body.append(rest[position:end])
                if size > limit:
                    body.clear()
            if at < 0:
                carry, before = rest[end:], piece
                break
            assert place is not None
            yield Page(*place, size, b"".join(body))
            place, position, body, size = None, end, [], 0
        if place is None and not piece.mine and OPEN[:1] not in carry:
            return
    if place is not None:
        yield Page(*place, size + len(carry), b"", Damage("truncated"))


class _Count:
    """Offset and number of each page: pages of one bzip2 stream share its offset."""

    def __init__(self) -> None:
        self._stream, self._number = -1, 0

    def of(self, piece: Piece, delta: int) -> tuple[int, int]:
        """(offset, index) of a page that begins `delta` bytes behind the piece's beginning."""
        if piece.exact:
            return piece.offset + delta, 0
        self._number = self._number + 1 if piece.offset == self._stream else 0
        self._stream = piece.offset
        return piece.offset, self._number


class _Wiki:
    """What a dump says about its wiki: the URL of its pages and the names of its namespaces."""

    def __init__(self, path: Path) -> None:
        held: list[bytes] = []
        size = 0
        try:
            for piece in pieces(path):
                held.append(piece)
                size += len(piece)
                if size > HEAD_BYTES:
                    break
        except Damage:
            pass  # reading the pages says so
        text = b"".join(held).partition(b"</siteinfo>")[0].decode("utf-8", "replace")
        base = re.search(r"<base>(https?://[^<]{1,500}/)[^</]*</base>", text)
        self.base = base[1] if base else None
        named = re.findall(r'<namespace key="(6|14)"[^<>]*>([^<]{1,100})<', text)
        names = {name for known in DEFAULT_NAMESPACES.values() for name in known}
        self.hidden = json.dumps(sorted(names | {name.strip().lower() for _, name in named}))

    def url(self, title: str) -> str | None:
        """Where a page is on the web."""
        return f"{self.base}{title.replace(' ', '_')}" if self.base and title else None


def _place(page: Page) -> dict[str, Any]:
    known = {"offset": page.offset, "index": page.index, "record_type": "page"}
    return {**known, "mime": "text/x-wiki", "payload_bytes": page.size}


def _outcome(page: Page, wiki: _Wiki, config: MediaWiki, options: ReadOptions, facts: FileFacts) -> Outcome:
    place = _place(page)
    if page.damage or not page.data:
        return ended(page.damage.reason if page.damage else "too_large", **place)
    try:
        root = ElementTree.fromstring(page.data)
    except (ElementTree.ParseError, ValueError, LookupError):  # LookupError: an encoding that nobody knows
        return ended("bad_row", **place)
    title = root.findtext("title") or ""
    place |= {
        "source_id": cell(root.findtext("id")),
        "url": cell(wiki.url(title)),
        "date": facts.date("timestamp", root.findtext("revision/timestamp")),
    }
    namespace = signed_number((root.findtext("ns") or "0").strip())
    if namespace is None:
        return ended("bad_row", **place)
    if namespace not in config.namespaces:
        return ended("other_namespace", **place)
    if root.find("redirect") is not None:
        return ended("redirect", **place)
    source = root.findtext("revision/text") or ""
    if len(source.encode("utf-8")) > options.max_payload_bytes:
        return ended("too_large", **place)
    found = bounded(page_text, f"{wiki.hidden}\n{source}", options)
    if found.text is None:
        return ended(str(found.reason), **place)
    dropped, _, text = found.text.partition("\n")
    for name, times in json.loads(dropped).items():
        key = f"template:{cell(name)}"
        facts.counts[key if key in facts.counts or len(facts.counts) < MAX_NAMES else "template:"] += times
    if not text:
        return ended("empty_body", **place)
    return document(f"{title}\n\n{text}", options, **place, extractor="mediawiki")
