"""Manifests with no more in them than a test needs."""

from __future__ import annotations

from typing import Any

from corpusmill.dataset.manifest import FORMAT, Manifest, Partition

EMPTY: dict[str, Any] = {
    "recipe": {},
    "stages": {},
    "partitions": {},
    "funnel": [],
    "inputs": [],
    "tables": {},
    "parents": [],
    "content": "",
}
"""Sections that every stored manifest has, as JSON."""


def made(name: str = "made", **sections: Any) -> Manifest:
    """A manifest with these sections, the others empty."""
    empty = {"recipe": {}, "stages": {}, "partitions": {}, "funnel": (), "inputs": (), "tables": {}, "parents": ()}
    return Manifest(**{"format": FORMAT, "name": name, "content": "", **empty, **sections})


def partition(sequences: int, documents: int = 0, tokens: int = 0, shards: tuple[Any, ...] = ()) -> Partition:
    """Sizes only."""
    return Partition(64, 2, documents, tokens, 0, sequences, 0, shards)
