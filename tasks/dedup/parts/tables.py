"""The narrow tables that units of deduplication exchange through the store: columns, reading, writing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.kernels.duplicates import lsh
from corpusmill.store import Draft, Output, Store
from tasks.dedup.history import SETS as INDEX_SETS
from tasks.dedup.parts.ranges import by_number


def narrow(**columns: pa.DataType) -> pa.Schema:
    """A schema of columns without nulls."""
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in columns.items()])


PLACES = narrow(rank=pa.uint32(), shard=pa.int32(), row=pa.int32(), size=pa.int32())
ENTRIES = narrow(key=pa.uint64(), rank=pa.uint32(), size=pa.int32(), group=pa.int32())
STATE = narrow(rank=pa.uint32(), size=pa.int32(), group=pa.int32(), pivot=pa.bool_(), begins=pa.bool_())
PAIRS = narrow(code=pa.uint64())
ASKS = narrow(rank=pa.uint32(), to=pa.int32())
SETS = pa.schema([pa.field("rank", pa.uint32(), nullable=False), INDEX_SETS.field("hashes")])
EDGES = narrow(code=pa.uint64(), similarity=pa.float64())


def column(outputs: Sequence[Output | None], name: str, store: Store, kind: Any) -> NDArray[Any]:
    """One column of several tables, as one array."""
    parts = [store.table(output, columns=[name]).column(name).to_numpy() for output in outputs if output]
    return np.concatenate([np.zeros(0, kind), *parts]).astype(kind, copy=False)


def draft(store: Store, schema: pa.Schema, columns: Sequence[NDArray[Any]]) -> Draft:
    """A table of arrays."""
    return store.draft_table(
        pa.table([pa.array(c, schema.field(i).type) for i, c in enumerate(columns)], schema=schema)
    )


def by_range(
    store: Store, name: str, schema: pa.Schema, parts: Iterable[Sequence[NDArray[Any]]], ranges: int
) -> dict[str, Draft]:
    """Rows dealt out by the range that their first column, a hash, lies in: `<name>.<range>`."""
    with ExitStack() as stack:
        writers = [stack.enter_context(store.table_writer(schema, row_group_bytes=1 << 22)) for _ in range(ranges)]
        for columns in parts:
            for number, here in by_number(lsh.partition_of(columns[0], ranges), ranges):
                if len(here):
                    writers[number].write(pa.table([c[here] for c in columns], schema=schema))
    return {f"{name}.{number}": writer.draft for number, writer in enumerate(writers)}
