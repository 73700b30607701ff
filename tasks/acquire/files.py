"""A folder of WARC, WET or ARC files; large ones are cut at the records that begin behind each 256 MiB."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from corpusmill.config import Files
from corpusmill.readers.outcomes import Outcome, ReadOptions, outcomes
from corpusmill.readers.parts import open_part
from corpusmill.readers.warc import FileFacts
from tasks.acquire.listing import listed
from tasks.acquire.transport import Fetched
from tasks.acquire.units import SourceUnit

LIBRARIES = ("trafilatura", "lxml", "resiliparse", "fastwarc")
CUT = r"\.(warc|wet)(\.gz)?(\.open)?$"
"""zstd and LZ4 archives are read whole: they go through FastWARC from their beginning."""


def plan(name: str, config: Files, seed: int) -> list[SourceUnit]:
    """Every file below the root that fits the pattern.

    Raises:
        NotFound: the root is not a folder.
        UsageError: the root is a web address, which cannot be listed.
    """
    return listed(name, config, seed, config.files, cut=CUT)


def reading(config: Any) -> dict[str, object]:
    """Nothing but the file decides what is read."""
    return {}


def read(unit: SourceUnit, file: Fetched, config: Any, options: ReadOptions, facts: FileFacts) -> Iterator[Outcome]:
    """One outcome for every content record that begins in the unit."""
    if unit.blocks == 1:
        yield from outcomes(file.path, options, facts)
        return
    with open_part(file.path, unit.begin, unit.end) as (part, begin):
        for outcome in outcomes(part, options, facts):
            yield replace(outcome, offset=outcome.offset + begin)
