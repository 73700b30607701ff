"""What readers counted beside the rows of a dataset's sources, for programs and for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from corpusmill.dataset.manifest import Manifest
from corpusmill.dataset.rejects import plain
from corpusmill.store import Store

SHOWN = 10
SAYS = {
    "template": "templates that were dropped with what they say",
    "memory": "files or frames that would take too much memory to unpack (pack them again with less)",
    "rows": "rows that are counted as one, since their file has far too few bytes for them",
    "cut_by_crawler": "pages that the crawler cut (WARC-Truncated)",
    "wrong_length": "records whose stated length is not theirs",
}
"""The counts that a reader of a funnel is told; faults stand in it already, by their reasons."""


def counts(store: Store, manifest: Manifest) -> list[dict[str, Any]]:
    """Rows of schema.COUNTS; none where the dataset was made before there were any."""
    if "counts" not in manifest.tables:
        return []
    rows: list[dict[str, Any]] = store.table(manifest.table("counts")).to_pylist()
    return rows


def notes(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Sentences: how often in which source, and by which names most often."""
    for source, count in sorted({(row["source"], row["count"]) for row in rows if row["count"] in SAYS}):
        here = [row for row in rows if (row["source"], row["count"]) == (source, count)]
        total = sum(row["times"] for row in here)
        named = sorted((row for row in here if row["name"]), key=lambda row: (-row["times"], row["name"]))
        shown = [f"{row['name']} ({row['times']:,})" for row in named[:SHOWN]]
        if rest := total - sum(row["times"] for row in named[:SHOWN]):
            shown.append(f"others ({rest:,})")
        names = f": {', '.join(shown)}" if named else ""
        yield f"source {source}: {total:,} {SAYS[count]}{names}"


def said(rows: Sequence[Mapping[str, Any]]) -> str:
    """The sentences, a line each, with the newline before them; empty where there are none."""
    return "".join(f"\n{plain(note)}" for note in notes(rows))
