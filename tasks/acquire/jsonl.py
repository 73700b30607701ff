"""JSON lines: one object with text a line, plain or compressed. Plain files are cut at newlines, 256 MiB a unit.

A file that holds one array, or objects over many lines, is read too, from its beginning to its end by its first unit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from corpusmill.config import Jsonl
from corpusmill.readers.outcomes import Outcome, ReadOptions, crashed
from corpusmill.readers.warc import FileFacts
from tasks.acquire.fetch.transport import Fetched
from tasks.acquire.rows import fields as rows
from tasks.acquire.rows.fields import RowReader
from tasks.acquire.rows.objects import HEAD_BYTES, are_objects, objects
from tasks.acquire.streams import Damage, Line, lines, pieces, ranged
from tasks.acquire.texts import ended
from tasks.acquire.tree.listing import listed
from tasks.acquire.tree.names import PACKED
from tasks.acquire.units import SourceUnit

VERSION = 3
LIBRARIES = ()
CUT = r"\.(jsonl|ndjson|json)$"
"""Compressed files cannot be entered in the middle: one unit each."""
NAMES = re.compile(rf"\.(jsonl|jsonlines|ndjson){PACKED}|\.json\.(gz|bz2|xz|zst|zstd)$", re.IGNORECASE)
"""A plain .json beside data is most often a description of it: a pattern asks for such files."""
OTHER_COLUMNS_BYTES = 2**20
MOST_BRACKETS = 3_000_000
"""Of `{` and `[` in a line of over a MiB: an empty object takes 3 bytes of JSON and 72 of memory."""
BOM = b"\xef\xbb\xbf"


def plan(name: str, config: Jsonl, seed: int) -> list[SourceUnit]:
    """Every file below the root that fits the pattern, plain ones in blocks."""
    return listed(name, config, seed, "jsonl", reads=NAMES, cut=CUT)


def reading(config: Jsonl) -> dict[str, object]:
    """Which columns are read."""
    return {**rows.reading(config), "version": VERSION}


def read(unit: SourceUnit, file: Fetched, config: Jsonl, options: ReadOptions, facts: FileFacts) -> Iterator[Outcome]:
    """One outcome for every line that begins in the unit; blank lines are counted only."""
    facts.bytes = file.size
    reader = RowReader(config, options, facts, "jsonl")
    for line in _lines(unit, file.path, 2 * options.max_payload_bytes + OTHER_COLUMNS_BYTES):
        if line.fault is None and not line.data.removeprefix(BOM).strip():
            facts.not_content["blank_line"] += 1
            continue
        if line.damage:
            line.damage.note(line.offset, facts)
        try:
            outcome = _outcome(line, reader)
        except Exception as err:
            outcome = crashed(err, facts, offset=line.offset, record_type="row", payload_bytes=line.size)
        yield outcome
    reader.done()


def _lines(unit: SourceUnit, path: Path, limit: int) -> Iterator[Line]:
    """The lines of a unit. JSON writes a character in up to 6 bytes; twice the bound of a text covers real ones, and
    the text itself is judged again."""
    head, stream = _peeked(pieces(path))
    if are_objects(head.removeprefix(BOM)):
        return objects(stream, limit) if unit.block == 0 else iter(())
    begin = 0
    if unit.blocks > 1:
        begin, stream = ranged(path, unit.begin, unit.end)
    return lines(stream, limit, begin)


def _peeked(stream: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The first bytes of a stream, and the stream from its beginning."""
    head, damage = [], []
    try:
        for piece in stream:
            head.append(piece)
            if sum(map(len, head)) >= HEAD_BYTES:
                break
    except Damage as err:
        damage.append(err)

    def rest() -> Iterator[bytes]:
        if damage:
            raise damage[0]
        yield from stream

    return b"".join(head), chain(head, rest())


def _outcome(line: Line, reader: RowReader) -> Outcome:
    place: dict[str, Any] = {"offset": line.offset, "record_type": "row", "mime": "application/json"}
    if line.fault:
        return ended(line.fault, **place, payload_bytes=line.size)
    if len(line.data) > 2**20 and line.data.count(b"{") + line.data.count(b"[") > MOST_BRACKETS:
        return ended("bomb", **place, payload_bytes=line.size)
    try:
        row = json.loads(line.data.removeprefix(BOM).decode("utf-8"))
    except (ValueError, RecursionError):  # not UTF-8, not JSON, a number of 4,301 digits, nested too deep
        return ended("bad_row", **place, payload_bytes=line.size)
    if not isinstance(row, dict):
        return ended("bad_row", **place, payload_bytes=line.size)
    reader.count(row)
    return reader.outcome(row, line.size, **place)
