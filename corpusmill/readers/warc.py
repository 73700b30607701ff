"""Records of WARC, WET and ARC archives, sound or broken; plain, gzip, zstd or LZ4.

What can be read is read: a record that is cut or damaged comes back with its fault, and reading goes on at the next
member, or the next record of a plain file. Contents are bounded before they are held.

Two readers: FastWARC as long as there is no doubt, then our own (careful.py). warcio is not asked for a second opinion:
in no file that we know of does it find a record that ours does not (the tests keep the table: test_opinions.py).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from corpusmill.readers.careful import careful_records, is_content
from corpusmill.readers.containers.files import Section, open_file
from corpusmill.readers.containers.frames import LZ4_MAGIC, ZSTD_MAGIC
from corpusmill.readers.containers.members import GZIP_MAGIC, Archive, archive_of, holds_record
from corpusmill.readers.dialects import MAX_HEAD, WARC
from corpusmill.readers.records import CONTENT_TYPES, FileFacts, RawRecord, Reading, RecordFault

__all__ = ["CONTENT_TYPES", "FileFacts", "RawRecord", "RecordFault", "read_records"]

ALIGNMENT_CHECKED = 16  # records; who cuts members elsewhere than records does so from the beginning
LARGE = 64 * 2**20  # contents beyond it are left to the careful reader, which can give up a bomb
MAGICS = (GZIP_MAGIC, b"WARC/", ZSTD_MAGIC, LZ4_MAGIC)
COUNTED_TYPES = ("warcinfo", "request", "metadata", "continuation")


class _Lower(dict[bytes, str]):
    """Header names in lower case; the first thousand are remembered."""

    def __missing__(self, name: bytes) -> str:
        lower = name.decode().lower()
        if len(self) < 1000:
            self[name] = lower
        return lower


_LOWER = _Lower()


def read_records(
    source: str | Path | BinaryIO,
    *,
    max_payload_bytes: int = 16 * 2**20,
    verify_digests: bool = False,
    facts: FileFacts | None = None,
) -> Iterator[RawRecord]:
    """Content records of an archive in file order; broken ones with their fault.

    Args:
        source: a path or a binary stream.
        max_payload_bytes: longer contents come back empty with fault `too_large`.
        verify_digests: compare contents with the digests in their heads; takes as long again as reading does.
        facts: filled with what else was met.

    Raises:
        OSError: the file cannot be opened or read; never for what stands in it.
    """
    facts = FileFacts() if facts is None else facts
    reading = Reading(max_payload_bytes + MAX_HEAD, verify_digests, facts)
    with open_file(source) as file:
        facts.bytes = file.size
        if file.size == 0:
            facts.fault(0, "empty_file")
            return
        archive = archive_of(file)
        given: tuple[int, int] = (0, 0)
        magic = next((m for m in MAGICS if file.read_at(0, len(m)) == m), None)
        if magic is not None and archive.dialect is WARC:
            given = yield from _sound_records(archive, magic, reading)
        yield from careful_records(archive, *given, reading)


def _sound_records(archive: Archive, magic: bytes, reading: Reading) -> Generator[RawRecord, None, tuple[int, int]]:
    """Records by FastWARC, as long as there is no doubt about them.

    FastWARC takes half the time, but passes over cut records, wrong lengths and garbage in silence. So a record is
    given only when the one behind it has been read too, and the last ones are left to the careful reader.

    Returns:
        where the careful reader has to begin, and how many records it has to leave out there.
    """
    from fastwarc.warc import ArchiveIterator

    file, facts, given, last, at = archive.file, reading.facts, 0, 0, -1
    held: RawRecord | str | None = None  # of a record that is only counted, its type
    try:
        for found in ArchiveIterator(file.path or Section(file), parse_http=False, fsspec_args=False):
            offset = found.stream_pos
            record = _from_fastwarc(found, offset, reading)
            if record is None or offset <= at or file.glance(offset, len(magic)) != magic:
                break  # doubt, or not the beginning of a member: the member holds several records
            if given < ALIGNMENT_CHECKED and not _begins_at(archive, offset):
                break  # members are cut elsewhere than records are
            if held is not None:
                given, last = given + 1, at
                if isinstance(held, str):
                    facts.not_content[held] += 1
                elif is_content(held, facts):
                    yield held
            held, at = record, offset
    except (OSError, UnicodeError):
        pass
    return (last, min(given, 1)) if _begins_at(archive, last) else (0, given)


def _begins_at(archive: Archive, offset: int) -> bool:
    """Whether a record begins with the unit at `offset`; plain files have no such trouble."""
    return archive.file.read_at(offset, 5).upper() == b"WARC/" or holds_record(archive, offset)


def _from_fastwarc(found: Any, offset: int, reading: Reading) -> RawRecord | str | None:
    """The record as the careful reader makes it, or the type of one that is only counted; None where there is doubt."""
    kind, length, limit = str(found.record_type), found.content_length, reading.limit
    if length > LARGE:
        return None
    if kind not in CONTENT_TYPES:
        named = kind in COUNTED_TYPES or (found.headers.get("WARC-Type") or "").lower() == kind  # one called "unknown"
        return kind if named else None
    content = found.reader.read(min(length, limit))
    pairs = found.headers.items_bytes()
    headers = {_LOWER[name]: value.decode() for name, value in pairs}
    if len(content) < min(length, limit) or len(headers) < len(pairs):
        return None
    return reading.record(offset, 0, headers, content, "too_large" if length > limit else None)
