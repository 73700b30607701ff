"""Plain text and books, one document a file. The publisher's head and foot go only where marks say where they end.

The marks are Project Gutenberg's: "*** START OF THE PROJECT GUTENBERG EBOOK ... ***" and its END, each on its own line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from corpusmill.config import Text
from corpusmill.readers.outcomes import Outcome, ReadOptions, crashed
from corpusmill.readers.warc import FileFacts
from tasks.acquire.fetch.transport import Fetched
from tasks.acquire.streams import Damage, pieces, whole
from tasks.acquire.texts import decoded, document, ended, is_binary
from tasks.acquire.tree.listing import listed
from tasks.acquire.tree.names import PACKED
from tasks.acquire.units import SourceUnit

VERSION = 2
LIBRARIES: tuple[str, ...] = ()
HEAD_LINES = 1000
NAMES = re.compile(rf"\.(txt|text)(\.utf-?8)?{PACKED}", re.IGNORECASE)

_START = re.compile(
    r"(?im)^\*{3} ?START OF (?:THE|THIS) PROJECT GUTENBERG E(?:BOOK|TEXT)\b[^\n]*(?:\n[^\n]+)?\*{3}[ \t]*$"
    r"|^\*END\*? ?THE SMALL PRINT! FOR PUBLIC DOMAIN E-?TEXTS[^\n]*\*END\*[ \t]*$"
)
_END = re.compile(
    r"(?im)^(?:\*{3} ?END OF (?:THE|THIS) PROJECT GUTENBERG E(?:BOOK|TEXT)\b"
    r"|End of (?:the |this )?Project Gutenberg(?:'s| E(?:book|text))\b)"
)


def plan(name: str, config: Text, seed: int) -> list[SourceUnit]:
    """Every file below the root that fits the pattern."""
    return listed(name, config, seed, "text", reads=NAMES)


def reading(config: Text) -> dict[str, object]:
    """Nothing but the file decides."""
    return {"version": VERSION}


def read(unit: SourceUnit, file: Fetched, config: Text, options: ReadOptions, facts: FileFacts) -> Iterator[Outcome]:
    """One outcome: that of the file."""
    facts.bytes = file.size
    place: dict[str, Any] = {"offset": 0, "record_type": "file", "source_id": unit.locator, "payload_bytes": file.size}
    try:
        data = whole(pieces(file.path), options.max_payload_bytes)
    except Damage as err:
        yield ended(err.note(0, facts), **place)
        return
    if data is None:
        yield ended("too_large", **place)
    elif is_binary(data):
        yield ended("not_html", **place, mime="application/octet-stream")
    else:
        try:
            text, how = decoded(data)
            outcome = document(without_marks(text), options, **{**place, **how}, extractor="text")
        except Exception as err:
            outcome = crashed(err, facts, **place)
        yield outcome


def without_marks(text: str) -> str:
    """A book without the publisher's head and foot, each where it is marked; any other text as it is."""
    start = _START.search(text)
    if start is None or text.count("\n", 0, start.start()) > HEAD_LINES:
        return text
    body = text[start.end() :]
    ends = list(_END.finditer(body))
    return body[: ends[0].start()] if ends else body
