"""What became of the columns of a dataset's rows, for programs and for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from corpusmill.dataset.manifest import Manifest
from corpusmill.dataset.rejects import plain
from corpusmill.store import Store


def columns(store: Store, manifest: Manifest) -> list[dict[str, Any]]:
    """Rows of schema.COLUMNS; none where the dataset was made before there were any."""
    if "columns" not in manifest.tables:
        return []
    rows: list[dict[str, Any]] = store.table(manifest.table("columns")).to_pylist()
    return rows


def notes(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Sentences about what a user may miss: columns left out, values without a form, names that no row has."""
    for source in dict.fromkeys(row["source"] for row in rows):
        here = [row for row in rows if row["source"] == source]
        if left_out := [row for row in here if row["becomes"] is None]:
            listed = ", ".join(f"{row['column']} ({row['values']:,} values)" for row in left_out)
            yield f"source {source}: columns left out: {listed}"
        for row in here:
            if row["unreadable"] and row["becomes"] not in (None, "text"):
                count = f"{row['unreadable']:,} of {row['values']:,} values of {row['column']}"
                shown = f", for example {row['example']!r}" if row["example"] else ""
                yield f"source {source}: {count} cannot be read as {row['becomes']} and are null{shown}"
            if row["becomes"] is not None and not row["values"]:
                yield f"source {source}: no row has a value in column {row['column']}"


def said(rows: Sequence[Mapping[str, Any]]) -> str:
    """The sentences, a line each, with the newline before them; empty where there are none."""
    return "".join(f"\n{plain(note)}" for note in notes(rows))
