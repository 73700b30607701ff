"""What a manifest says of deduplication."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corpusmill.config import Recipe
from corpusmill.store import Receipt
from tasks.dedup.history import Earlier, settings, snapshots
from tasks.dedup.index import KINDS
from tasks.dedup.passages import Found
from tasks.shards import Shard


def facts(
    near: Receipt, shards: Sequence[Shard], earlier: Earlier | None, repeated: Found, recipe: Recipe
) -> dict[str, Any]:
    """How the search went, what passages were repeated, and the index where the build made one."""
    search = {name: value for name, value in near.facts.items() if name != "proof"}
    sections = {"deduplicate": {**search, **repeated.summaries}}
    return sections if "leaders" not in near.outputs else {**sections, "index": _section(near, shards, earlier, recipe)}


def _section(near: Receipt, shards: Sequence[Shard], earlier: Earlier | None, recipe: Recipe) -> dict[str, Any]:
    held = set(snapshots(shards)) | set(earlier.snapshots if earlier else ())
    parts: list[dict[str, Any]] = [
        {"manifest": part.manifest, **{kind: table.to_json() for kind, table in zip(KINDS, part.tables, strict=True)}}
        for part in (earlier.parts if earlier else ())
    ]
    parts.append({"manifest": None, **{kind: near.outputs[kind].to_json() for kind in KINDS}})
    return {"settings": settings(recipe), "snapshots": sorted(held), "parts": parts}
