"""Token shards: packed rows that can be memory-mapped.

A token shard is an ordinary Parquet file with one fixed-size binary column, uncompressed and PLAIN, one page a row
group: so the bytes of a row group lie in the file as they are in memory, at an offset that is written down
(`RowGroup`). The offset is odd as often as even, so rows are copied as bytes and then viewed as tokens.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corpusmill.canonical import content_digest
from corpusmill.errors import CheckFailed
from corpusmill.schema import TOKENS_COLUMN, tokens_schema
from corpusmill.tokens.row_group import RowGroup
from corpusmill.tokens.tokenizer import Tokens

MAX_HEADER_BYTES = 48
"""A page header of one page took 30 to 38 bytes; more means several pages, whose rows do not lie together."""


@dataclass(frozen=True)
class TokenShard:
    """A token shard that was written and read back."""

    rows: int
    content: str
    """Content digest of its table."""
    payload: tuple[RowGroup, ...]


def write_token_shard(path: Path, tokens: Tokens, *, row_group_rows: int = 4096) -> TokenShard:
    """Write packed rows as a token shard, read it back through pyarrow and compare.

    Args:
        path: a file to (over)write.
        tokens: uint16 or uint32[R, seq_len + 1].
        row_group_rows: rows of a row group; fewer where that many would take over 256 MiB.

    Raises:
        CheckFailed: the file is not laid out as one page a row group, or does not hold these bytes.
    """
    rows = np.ascontiguousarray(tokens.astype(tokens.dtype.newbyteorder("<"), copy=False))
    schema = tokens_schema(rows.itemsize, rows.shape[1] - 1)
    row_bytes = rows.itemsize * rows.shape[1]
    column = pa.Array.from_buffers(schema.field(0).type, len(rows), [None, pa.py_buffer(rows)])
    table = pa.Table.from_arrays([column], schema=schema)
    step = min(row_group_rows, max(1, (1 << 28) // row_bytes))
    with pq.ParquetWriter(
        path,
        schema,
        compression="none",
        use_dictionary=False,
        column_encoding={TOKENS_COLUMN: "PLAIN"},
        write_statistics=False,
        write_page_checksum=True,
        data_page_size=2**31 - 1,  # these two: one page a row group
        max_rows_per_page=2**31 - 1,
    ) as writer:
        for begin in range(0, len(rows), step):
            writer.write_table(table.slice(begin, step), row_group_size=step)
    return TokenShard(len(rows), content_digest(table), tuple(_checked_groups(path, table, row_bytes)))


def _checked_groups(path: Path, table: pa.Table, row_bytes: int) -> Iterator[RowGroup]:
    file = np.memmap(path, np.uint8, mode="r")
    begin = 0
    with pq.ParquetFile(path, page_checksum_verification=True) as reader:
        for number in range(reader.metadata.num_row_groups):
            group = reader.metadata.row_group(number)
            column, payload_bytes = group.column(0), group.num_rows * row_bytes
            header = column.total_compressed_size - payload_bytes
            offset = column.data_page_offset + header
            payload = file[offset : offset + payload_bytes].tobytes()
            expected = table.slice(begin, group.num_rows)
            faults = [
                name
                for name, wrong in (
                    (f"a page header of {header} bytes", not 0 < header <= MAX_HEADER_BYTES),
                    ("a dictionary page", column.has_dictionary_page),
                    (f"compression {column.compression}", column.compression != "UNCOMPRESSED"),
                    (f"encodings {column.encodings}", "PLAIN" not in column.encodings),
                    ("other rows by pyarrow", not reader.read_row_group(number).equals(expected)),
                    ("other rows in memory", payload != _payload(expected, row_bytes)),
                )
                if wrong
            ]
            if faults:
                raise CheckFailed(
                    f"row group {number} of a token shard cannot be memory-mapped: {'; '.join(faults)}",
                    "expected one uncompressed PLAIN page with the rows that were written",
                    f"pyarrow {pa.__version__} lays out pages differently; use the version in constraints.txt.",
                )
            yield RowGroup(offset, group.num_rows, zlib.crc32(payload))
            begin += group.num_rows


def _payload(table: pa.Table, row_bytes: int) -> bytes:
    chunks = table.column(0).chunks
    return b"".join(memoryview(c.buffers()[1])[c.offset * row_bytes : (c.offset + len(c)) * row_bytes] for c in chunks)
