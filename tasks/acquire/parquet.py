"""Parquet files as Hugging Face data sets lie on disk: one text a row. A unit is some 256 MiB of row groups.

Row groups are dealt to the blocks evenly by number, not by their first byte: asking for that builds the metadata of
columns, and Arrow ends the process where those are broken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from corpusmill.config import Parquet
from corpusmill.readers.outcomes import Outcome, ReadOptions, crashed
from corpusmill.readers.warc import FileFacts
from tasks.acquire import jsonl
from tasks.acquire.fetch.transport import Fetched
from tasks.acquire.listing import listed
from tasks.acquire.texts import ended
from tasks.acquire.units import SourceUnit

if TYPE_CHECKING:
    import pyarrow.parquet as pq

VERSION = 1
LIBRARIES = ("pyarrow",)
NAMES = re.compile(r"\.(parquet|parq|pq)$", re.IGNORECASE)
BATCH_ROWS = 1024
MAX_LOST = 10**7  # a broken footer may promise any number of rows


def plan(name: str, config: Parquet, seed: int) -> list[SourceUnit]:
    """Every file below the root that fits the pattern, in blocks."""
    return listed(name, config, seed, "parquet", reads=NAMES, cut=NAMES)


def reading(config: Parquet) -> dict[str, object]:
    """Which columns are read."""
    return {**jsonl.reading(config), "version": VERSION}


def read(unit: SourceUnit, file: Fetched, config: Parquet, options: ReadOptions, facts: FileFacts) -> Iterator[Outcome]:
    """One outcome for every row of the unit's row groups; `offset` is the row's number in the file."""
    import pyarrow.parquet as pq

    facts.bytes = file.size
    try:
        table = pq.ParquetFile(file.path, page_checksum_verification=True)
        names = table.schema_arrow.names
    except Exception as err:  # Arrow has many words for broken content
        _reraise_if_real(err)
        if unit.block == 0:
            facts.fault(0, "damaged")
            yield ended("damaged", offset=0, record_type="unknown", payload_bytes=file.size)
        return
    with table:
        first, groups = 0, table.metadata.num_row_groups
        for group in range(groups):
            rows = table.metadata.row_group(group).num_rows
            if group * unit.blocks // groups == unit.block:
                yield from _group(table, group, first, names, config, options, facts)
            first += rows


def _group(
    table: pq.ParquetFile,
    group: int,
    first: int,
    names: list[str],
    config: Parquet,
    options: ReadOptions,
    facts: FileFacts,
) -> Iterator[Outcome]:
    """Outcomes of one row group; if it breaks, its other rows are damaged."""
    wanted = {config.text, config.id, config.url, config.date}
    columns = [name for name in names if name in wanted]
    about = table.metadata.row_group(group)
    end, number = first + about.num_rows, first
    place: dict[str, Any] = {"record_type": "row", "mime": "application/vnd.apache.parquet"}
    try:
        for batch in table.iter_batches(BATCH_ROWS, row_groups=[group], columns=columns) if columns else ():
            for row in batch.to_pylist():
                try:
                    outcome = jsonl.row_outcome(row, 0, config, options, offset=number, extractor="parquet", **place)
                except Exception as err:
                    outcome = crashed(err, facts, offset=number, **place)
                yield outcome
                number += 1
    except Exception as err:
        _reraise_if_real(err)
        facts.fault(number, "damaged")
    reason = "no_text_column" if not columns else "damaged"
    for missing in range(number, min(end, number + MAX_LOST)):
        yield ended(reason, offset=missing, **place)


def _reraise_if_real(err: BaseException) -> None:
    """A fault of the disk, not of the file's content."""
    if isinstance(err, OSError) and err.errno is not None:
        raise err
