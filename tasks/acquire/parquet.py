"""Parquet files as Hugging Face data sets lie on disk: one text a row. Cut at row groups, 256 MiB a unit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from corpusmill.config import Parquet
from corpusmill.readers.outcomes import Outcome, ReadOptions
from corpusmill.readers.warc import FileFacts
from tasks.acquire import jsonl
from tasks.acquire.listing import listed
from tasks.acquire.texts import ended
from tasks.acquire.transport import Fetched
from tasks.acquire.units import SourceUnit

if TYPE_CHECKING:
    import pyarrow.parquet as pq

VERSION = 1
LIBRARIES = ("pyarrow",)
CUT = r"\.parquet$"
BATCH_ROWS = 1024


def plan(name: str, config: Parquet, seed: int) -> list[SourceUnit]:
    """Every file below the root that fits the pattern, in blocks."""
    return listed(name, config, seed, "parquet", cut=CUT)


def reading(config: Parquet) -> dict[str, object]:
    """Which columns are read."""
    return {**jsonl.reading(config), "version": VERSION}


def read(unit: SourceUnit, file: Fetched, config: Parquet, options: ReadOptions, facts: FileFacts) -> Iterator[Outcome]:
    """One outcome for every row of the row groups that begin in the unit; `offset` is the row's number in the file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    facts.bytes = file.size
    try:
        table = pq.ParquetFile(file.path, page_checksum_verification=True)
    except (pa.ArrowException, OSError) as err:
        _reraise_if_real(err)
        if unit.block == 0:
            facts.fault(0, "damaged")
            yield ended("damaged", offset=0, record_type="unknown", payload_bytes=file.size)
        return
    with table:
        first = 0
        for group in range(table.metadata.num_row_groups):
            about = table.metadata.row_group(group)
            if unit.begin <= _begin(about) < (unit.end or 2**63):
                yield from _group(table, group, first, config, options, facts)
            first += about.num_rows


def _group(
    table: pq.ParquetFile, group: int, first: int, config: Parquet, options: ReadOptions, facts: FileFacts
) -> Iterator[Outcome]:
    """Outcomes of one row group; if it breaks, its other rows are damaged."""
    import pyarrow as pa

    wanted = {config.text, config.id, config.url, config.date}
    columns = [name for name in table.schema_arrow.names if name in wanted]
    about = table.metadata.row_group(group)
    end, number = first + about.num_rows, first
    place: dict[str, Any] = {"record_type": "row", "mime": "application/vnd.apache.parquet"}
    try:
        for batch in table.iter_batches(BATCH_ROWS, row_groups=[group], columns=columns) if columns else ():
            for row in batch.to_pylist():
                yield jsonl.row_outcome(row, 0, config, options, offset=number, extractor="parquet", **place)
                number += 1
    except (pa.ArrowException, OSError, ValueError, OverflowError) as err:
        _reraise_if_real(err)
        facts.fault(number, "damaged")
    reason = "no_text_column" if not columns else "damaged"
    for missing in range(number, end):
        yield ended(reason, offset=missing, **place)


def _begin(about: Any) -> int:
    """Byte at which a row group begins in its file."""
    begins = []
    for i in range(about.num_columns):
        column = about.column(i)
        begins.append(min(filter(None, (column.dictionary_page_offset, column.data_page_offset)), default=0))
    return min(begins, default=0)


def _reraise_if_real(err: BaseException) -> None:
    """A fault of the disk, not of the file's content."""
    if isinstance(err, OSError) and err.errno is not None:
        raise err
