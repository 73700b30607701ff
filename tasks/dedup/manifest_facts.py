"""What a manifest says of deduplication."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corpusmill.config import Recipe
from corpusmill.dataset.manifest import Index, IndexPart
from corpusmill.store import Receipt
from tasks.dedup.history import Earlier, settings, snapshots
from tasks.dedup.index import KINDS
from tasks.dedup.passages import Found
from tasks.shards import Shard


def searched(near: Receipt, repeated: Found, heldout: Receipt, leaks: Receipt) -> dict[str, Any]:
    """How the search went, what passages were repeated, what is held out with copies, and the check of that."""
    found = {name: value for name, value in near.facts.items() if name != "proof"} | repeated.summaries
    return {**found, "heldout": dict(heldout.facts), "leaks": dict(leaks.facts)}


def index_of(near: Receipt, shards: Sequence[Shard], earlier: Earlier | None, recipe: Recipe) -> Index | None:
    """The index of this build and of those before it; None where the build made none."""
    if "leaders" not in near.outputs:
        return None
    held = set(snapshots(shards)) | set(earlier.snapshots if earlier else ())
    before = [IndexPart(part.manifest, *part.tables) for part in (earlier.parts if earlier else ())]
    ours = IndexPart(None, *(near.outputs[kind] for kind in KINDS))
    return Index(settings(recipe), tuple(sorted(held)), (*before, ours))
