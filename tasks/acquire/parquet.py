"""Parquet files as Hugging Face data sets lie on disk: one text a row. A unit is some 256 MiB of row groups.

Row groups are dealt to the blocks evenly by number, not by their first byte: asking for that builds the metadata of
columns, and Arrow ends the process where those are broken. Batches are bounded by what the largest page may give, and
converted column by column; where that fails, value by value. Rows are bounded by the bytes of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from corpusmill.config import Parquet
from corpusmill.readers.outcomes import Outcome, ReadOptions, crashed
from corpusmill.readers.parquet_layout import Chunk, largest_page, row_groups
from corpusmill.readers.warc import FileFacts
from tasks.acquire.fetch.transport import Fetched
from tasks.acquire.rows import fields as rows
from tasks.acquire.rows.arrow_values import is_text, values
from tasks.acquire.rows.fields import RowReader
from tasks.acquire.streams import MAX_RATIO
from tasks.acquire.texts import ended
from tasks.acquire.tree.listing import listed
from tasks.acquire.units import SourceUnit

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

VERSION = 3
LIBRARIES = ("pyarrow",)
NAMES = re.compile(r"\.(parquet|parq|pq)$", re.IGNORECASE)
BATCH_ROWS, UNKNOWN_ROWS = 256, 16
BATCH_BYTES = 48 * 2**20
"""What a batch may hold at most: rows at once are so many that the largest value of the largest page in each fits."""
MAX_PAGE = 96 * 2**20
"""Bytes of a page when it is unpacked; writers make pages of 1 MiB. It is held as a whole, twice."""
FREE_BYTES = 64 * 2**20
"""Text that any file may give; beyond it, and 1,000 times the bytes of the file, rows are `bomb`."""
FREE_ROWS, MOST_ROWS = 2**20, 2
"""Rows that any file may give, and rows a byte of the file beyond. A row costs 14 us whatever is in it; a run of nulls
has no bytes, and a footer may promise any number: what is above is one outcome a row group (`bomb`) and a count."""


def plan(name: str, config: Parquet, seed: int) -> list[SourceUnit]:
    """Every file below the root that fits the pattern, in blocks."""
    return listed(name, config, seed, "parquet", reads=NAMES, cut=NAMES)


def reading(config: Parquet) -> dict[str, object]:
    """Which columns are read."""
    return {**rows.reading(config), "version": VERSION}


def read(unit: SourceUnit, file: Fetched, config: Parquet, options: ReadOptions, facts: FileFacts) -> Iterator[Outcome]:
    """One outcome for every row of the unit's row groups; `offset` is the row's number in the file."""
    import pyarrow.parquet as pq

    facts.bytes = file.size
    try:
        layout = row_groups(file.path)
        table = pq.ParquetFile(file.path, page_checksum_verification=True)
        schema = table.schema_arrow
    except Exception as err:  # Arrow has many words for broken content
        _reraise_if_real(err)
        if unit.block == 0:
            facts.fault(0, "damaged")
            yield ended("damaged", offset=0, record_type="unknown", payload_bytes=file.size)
        return
    reader = _Groups(table, schema, layout, file, RowReader(config, options, facts, "parquet"), facts)
    with table:
        first, groups = 0, table.metadata.num_row_groups
        for group in range(groups):
            rows_here = table.metadata.row_group(group).num_rows
            if group * unit.blocks // groups == unit.block:
                yield from reader.group(group, first, rows_here)
            first += rows_here


class _Groups:
    """Row groups of one file, by the columns that the recipe names."""

    def __init__(
        self,
        table: pq.ParquetFile,
        schema: pa.Schema,
        layout: Sequence[Sequence[Chunk]] | None,
        file: Fetched,
        reader: RowReader,
        facts: FileFacts,
    ) -> None:
        self._table, self._layout, self._reader, self._facts = table, layout, reader, facts
        self._path, self._left = file.path, max(FREE_BYTES, MAX_RATIO * file.size)
        self._rows_left = max(FREE_ROWS, MOST_ROWS * file.size)
        outer = {field.name: field.type for field in reversed(schema)}
        inner = {name: kind for name in reader.becomes if name not in outer and (kind := _inner(schema, name))}
        self._wanted = {name: kind for name, kind in {**outer, **inner}.items() if name in reader.becomes}
        led_into = {name.partition(".")[0] for name in inner}
        self._left_out = {n: kind for n, kind in outer.items() if n not in reader.becomes and n not in led_into}

    def group(self, group: int, first: int, count: int) -> Iterator[Outcome]:
        """Outcomes of one row group, whose first row is the file's row `first`; if it breaks, its other rows end for
        what broke it."""
        number = first
        place: dict[str, Any] = {"record_type": "row", "mime": "application/vnd.apache.parquet"}
        reason = "damaged"
        try:
            faults, at_once = self._pages(group)
            self._count(group, count, faults)
            kind = self._wanted.get(self._reader.text)
            if kind is None or not is_text(kind):
                reason = "no_text_column"
                if kind is not None:
                    self._facts.column(self._reader.text, str(kind), "text").unreadable += count
            elif fault := faults.get(self._reader.text):
                reason = fault
            else:
                for row in self._rows(group, [name for name in self._wanted if name not in faults], at_once):
                    if self._left <= 0 or self._rows_left <= 0:
                        reason = "bomb"
                        break
                    try:
                        outcome = self._reader.outcome(row, 0, offset=number, **place)
                    except Exception as err:
                        outcome = crashed(err, self._facts, offset=number, **place)
                    self._left -= outcome.payload_bytes
                    self._rows_left -= 1
                    yield outcome
                    number += 1
        except Exception as err:  # Arrow has many words for broken content
            _reraise_if_real(err)
        end = first + count
        if number < end and reason != "no_text_column":
            self._facts.fault(number, reason)
        listed = max(number, min(end, number + self._rows_left))
        for missing in range(number, listed):
            yield ended(reason, offset=missing, **place)
        self._rows_left -= listed - number
        if listed < end:
            self._facts.counts["rows:" + ("bomb" if reason == "no_text_column" else reason)] += end - listed
            yield ended("bomb" if reason == "no_text_column" else reason, offset=listed, **place)

    def _pages(self, group: int) -> tuple[dict[str, str], int]:
        """Columns with a page that is too large to be unpacked, and why; and how many rows may be read at once.

        Raises:
            Malformed: a page has no head that can be read.
        """
        if self._layout is None:
            return {}, UNKNOWN_ROWS
        faults: dict[str, str] = {}
        most = 1
        with self._path.open("rb") as file:
            for name in self._wanted:
                for chunk in self._chunks(group, name):
                    unpacked, packed = largest_page(file, chunk)
                    if unpacked > MAX_PAGE:
                        faults[name] = "bomb" if unpacked > MAX_RATIO * packed else "too_large"
                    else:
                        most = max(most, unpacked)
        return faults, max(1, min(BATCH_ROWS, BATCH_BYTES // most))

    def _chunks(self, group: int, name: str) -> Iterator[Chunk]:
        """The chunks of a column: of its leaves, where it has columns within."""
        for chunk in (self._layout or ())[group] if self._layout else ():
            if chunk.path == name or chunk.path.startswith(f"{name}."):
                yield chunk

    def _count(self, group: int, count: int, faults: Mapping[str, str]) -> None:
        """Note the group's columns: values of those that are left out by what the file says of its nulls."""
        for name, kind in {**self._wanted, **self._left_out}.items():
            column = self._facts.column(name, str(kind), self._reader.becomes.get(name))
            nulls = [chunk.nulls or 0 for chunk in self._chunks(group, name) if chunk.path == name]
            column.values += 0 if str(kind) == "null" else max(0, count - sum(nulls))
            if name in faults and name != self._reader.text:
                column.unreadable += count
                column.example = column.example or faults[name]

    def _rows(self, group: int, names: Sequence[str], at_once: int) -> Iterator[dict[str, Any]]:
        for batch in self._table.iter_batches(at_once, row_groups=[group], columns=list(names)):
            columns = [values(_column(batch, name)) for name in names]
            for row in zip(*columns, strict=True):
                yield dict(zip(names, row, strict=True))


def _inner(schema: pa.Schema, name: str) -> pa.DataType | None:
    """The type of a column within columns, by names joined by dots."""
    import pyarrow as pa

    kind: Any = None
    fields: Any = schema
    for step in name.split("."):
        if fields is None or step not in (field.name for field in fields):
            return None
        kind = next(field.type for field in fields if field.name == step)
        fields = kind if pa.types.is_struct(kind) else None
    return kind if "." in name else None


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    """A column of a batch, or one within its columns; null where one around it is."""
    import pyarrow.compute as pc

    if name in batch.schema.names:
        return batch.column(batch.schema.names.index(name))
    first, *steps = name.split(".")
    return pc.struct_field(batch.column(batch.schema.names.index(first)), steps)


def _reraise_if_real(err: BaseException) -> None:
    """A fault of the disk, not of the file's content."""
    if isinstance(err, OSError) and err.errno is not None:
        raise err
