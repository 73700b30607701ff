"""A folder or bucket of WARC, WET or ARC files; large ones are cut where records begin, behind each 256 MiB.

A block holds the records that begin in it. It is the bytes from the first gzip member (or, in plain files, record) that
begins at or behind its first byte, to the first that begins at or behind the next block's: so the blocks of a file,
one behind the other, are the file. From a server only these bytes are fetched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from corpusmill.config import Files
from corpusmill.readers.containers.parts import record_start
from corpusmill.readers.outcomes import Outcome, ReadOptions, outcomes
from corpusmill.readers.warc import FileFacts
from tasks.acquire.fetch.transport import Cut, Fetched
from tasks.acquire.tree.listing import listed
from tasks.acquire.units import SourceUnit

LIBRARIES = ("trafilatura", "lxml", "resiliparse", "fastwarc")
NAMES = re.compile(r"\.(warc|arc|wet)(\.(gz|zst|zstd|lz4))?$", re.IGNORECASE)
CUT = re.compile(r"\.(warc|wet)(\.gz)?(\.open)?$")
"""zstd and LZ4 archives are read whole: they go through FastWARC from their beginning."""
cut: Cut = record_start


def plan(name: str, config: Files, seed: int) -> list[SourceUnit]:
    """Every file below the root that fits the pattern.

    Raises:
        NotFound: the root is no folder or bucket.
        UsageError: the root is a URL, which cannot be listed.
    """
    return listed(name, config, seed, config.files, reads=NAMES, cut=CUT)


def reading(config: Any) -> dict[str, object]:
    """Nothing but the file decides what is read."""
    return {}


def read(unit: SourceUnit, file: Fetched, config: Any, options: ReadOptions, facts: FileFacts) -> Iterator[Outcome]:
    """One outcome for every content record that begins in the unit."""
    if unit.blocks == 1:
        yield from outcomes(file.path, options, facts)
        return
    with file.opened() as part:
        for outcome in outcomes(part, options, facts):
            yield replace(outcome, offset=outcome.offset + file.begin)
