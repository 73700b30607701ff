"""The pipe protocol between a sandbox and its worker: framed bytes, nothing that executes when read.

Request: document number and length, then the page as UTF-8. Reply: document number, status, extractor and length,
then the text as UTF-8. The first reply, with number READY, says that the worker has imported what it needs. Both go in
lots, so the number of the page at work stands in memory that the two share.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from corpusmill.extractor.extraction import EXTRACTORS, Extraction

REQUEST = struct.Struct("<II")
REPLY = struct.Struct("<IBBI")
AT_WORK = struct.Struct("<I")
"""The number of the page at work, at the beginning of the shared memory."""
READY = 0xFFFFFFFF
LOT_BYTES = 2**16
"""Read at once by either side; what a worker has read, it answers in one piece. Larger reads meet fresh memory."""

_STATUS = (None, "no_text", "too_deep", "crashed")


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply frame, decoded."""

    number: int
    extraction: Extraction


def request(number: int, page: bytes) -> tuple[bytes, bytes]:
    """A request frame: its head, and the page."""
    return REQUEST.pack(number, len(page)), page


def reply(number: int, extraction: Extraction) -> bytes:
    """A reply frame."""
    text = (extraction.text or "").encode("utf-8")
    extractor = EXTRACTORS.index(extraction.extractor) if extraction.extractor else 0
    return REPLY.pack(number, _STATUS.index(extraction.reason), extractor, len(text)) + text


class RequestBuffer:
    """Requests out of a stream of bytes that arrives in pieces."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """Add a piece; returns number and page of the requests that are whole now."""
        self._data += data
        requests, position = [], 0
        while len(self._data) - position >= REQUEST.size:
            number, size = REQUEST.unpack_from(self._data, position)
            start = position + REQUEST.size
            if len(self._data) < start + size:
                break
            requests.append((number, bytes(memoryview(self._data)[start : start + size])))
            position = start + size
        del self._data[:position]
        return requests


class ReplyBuffer:
    """Replies out of a stream of bytes that arrives in pieces."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> list[Reply]:
        """Add a piece; returns the replies that are whole now."""
        self._data += data
        replies, position = [], 0
        while len(self._data) - position >= REPLY.size:
            number, status, extractor, size = REPLY.unpack_from(self._data, position)
            end = position + REPLY.size + size
            if len(self._data) < end:
                break
            with memoryview(self._data) as view:
                text = str(view[position + REPLY.size : end], "utf-8")
            reason = _STATUS[status]
            found = Extraction(None, reason=reason) if reason else Extraction(text, EXTRACTORS[extractor])
            replies.append(Reply(number, found))
            position = end
        del self._data[:position]
        return replies
