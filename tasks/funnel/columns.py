"""Columns of the sources' rows, over all files: what became of each, how many values it has, which have no form."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from corpusmill import schema
from corpusmill.readers.records import ColumnFacts
from corpusmill.store import Receipt


def columns_of(receipts: Iterable[tuple[str, Receipt]]) -> pa.Table:
    """A row for each source and column, in the order of their names.

    Args:
        receipts: (source, receipt of its extraction) of every file, in the order of files.
    """
    found: dict[tuple[str, str], ColumnFacts] = {}
    for source, receipt in receipts:
        file: Any = receipt.facts["file"]
        for name, facts in file.get("columns", {}).items():
            found.setdefault((source, name), ColumnFacts("", facts["becomes"])).add(ColumnFacts(**facts))
    rows = [{"source": source, "column": name, **asdict(facts)} for (source, name), facts in sorted(found.items())]
    return pa.Table.from_pylist(rows, schema=schema.COLUMNS)
