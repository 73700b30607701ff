"""JSON lines: one object with text a line, plain or compressed. Plain files are cut at newlines, 256 MiB a unit."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from corpusmill.config import Jsonl, Rows
from corpusmill.readers.outcomes import Outcome, ReadOptions, crashed
from corpusmill.readers.warc import FileFacts
from tasks.acquire.fetch.transport import Fetched
from tasks.acquire.listing import listed
from tasks.acquire.names import PACKED
from tasks.acquire.streams import Line, lines, pieces, ranged
from tasks.acquire.texts import cell, document, ended
from tasks.acquire.units import SourceUnit

VERSION = 2
LIBRARIES = ()
CUT = r"\.(jsonl|ndjson|json)$"
"""Compressed files cannot be entered in the middle: one unit each."""
NAMES = re.compile(rf"\.(jsonl|jsonlines|ndjson){PACKED}|\.json\.(gz|bz2|xz|zst|zstd)$", re.IGNORECASE)
"""A plain .json beside data is most often a description of it: a pattern asks for such files."""
OTHER_COLUMNS_BYTES = 2**20
BOM = b"\xef\xbb\xbf"


def plan(name: str, config: Jsonl, seed: int) -> list[SourceUnit]:
    """Every file below the root that fits the pattern, plain ones in blocks."""
    return listed(name, config, seed, "jsonl", reads=NAMES, cut=CUT)


def reading(config: Rows) -> dict[str, object]:
    """Which columns are read."""
    return {"version": VERSION, "text": config.text, "id": config.id, "url": config.url, "date": config.date}


def read(unit: SourceUnit, file: Fetched, config: Jsonl, options: ReadOptions, facts: FileFacts) -> Iterator[Outcome]:
    """One outcome for every line that begins in the unit; blank lines are counted only."""
    facts.bytes = file.size
    begin, stream = (0, pieces(file.path)) if unit.blocks == 1 else ranged(file.path, unit.begin, unit.end)
    # JSON writes a character in up to 6 bytes; twice the bound covers real text, and the text itself is judged again.
    for line in lines(stream, 2 * options.max_payload_bytes + OTHER_COLUMNS_BYTES, begin):
        if line.fault is None and not line.data.removeprefix(BOM).strip():
            facts.not_content["blank_line"] += 1
            continue
        if line.fault in ("truncated", "damaged", "bomb"):
            facts.fault(line.offset, line.fault)
        try:
            outcome = _outcome(line, config, options)
        except Exception as err:
            outcome = crashed(err, facts, offset=line.offset, record_type="row", payload_bytes=line.size)
        yield outcome


def _outcome(line: Line, config: Rows, options: ReadOptions) -> Outcome:
    place: dict[str, Any] = {"offset": line.offset, "record_type": "row", "mime": "application/json"}
    if line.fault:
        return ended(line.fault, **place, payload_bytes=line.size)
    try:
        row = json.loads(line.data.removeprefix(BOM).decode("utf-8"))
    except (ValueError, RecursionError):  # not UTF-8, not JSON, a number of 4,301 digits, nested too deep
        return ended("bad_row", **place, payload_bytes=line.size)
    if not isinstance(row, dict):
        return ended("bad_row", **place, payload_bytes=line.size)
    return row_outcome(row, line.size, config, options, extractor="jsonl", **place)


def row_outcome(row: dict[str, Any], size: int, config: Rows, options: ReadOptions, **place: Any) -> Outcome:
    """The outcome of a row by the columns that the recipe names.

    Args:
        row: column -> value.
        size: payload bytes to count where there is no text.
        config: which column is what.
        options: bounds.
        place: fields of Outcome.
    """
    known = {
        field: cell(row.get(column)) if column is not None else None
        for field, column in (("source_id", config.id), ("url", config.url), ("date", config.date))
    }
    text = row.get(config.text)
    if not isinstance(text, str):
        return ended("no_text_column", **known, **place, payload_bytes=size)
    return document(text, options, **known, **place)
