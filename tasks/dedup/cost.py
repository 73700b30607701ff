"""What deduplication of a number of documents will take, before any is read."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from corpusmill.config import Recipe
from tasks.dedup.near_in_parts import local_bytes
from tasks.dedup.ranges import cut

DOCUMENT_BYTES = 4000
"""Text of a mean web page."""
SHINGLE_BYTES = 6
"""Text a shingle."""
ROUNDS = 3
"""Rounds, the last of which finds nothing, on most corpora."""
COMPARED = 0.4
"""Share of documents that are compared with another, where a third are copies."""
WHOLE_BYTES = 130
"""Memory of the units that rank and that give the verdict, a document: at most, of ten million (bench/dedup)."""
DOCUMENT_S = 26e-6
"""CPU seconds a document, candidates and grouping through the store: ten million, on a busy machine."""
COMPARED_S = 2e-4
"""CPU seconds to shingle one document again and compare it (bench/dedup)."""


@dataclass(frozen=True)
class Cost:
    """Estimates; exact is only how the work is cut for such a number of documents."""

    documents: int
    units: int
    ranges: int
    """Ranges of keys; 1 with `exchange_bytes` 0 where one unit does all."""
    memory_bytes: int
    """Of the largest unit."""
    exchange_bytes: int
    """Written to the store and read back by units in between."""
    core_hours: float

    def to_json(self) -> dict[str, object]:
        """For programs."""
        return asdict(self)


def cost(text_bytes: float, shards: int, recipe: Recipe) -> Cost:
    """Of an amount of text in a number of shards."""
    config = recipe.deduplicate
    docs = round(text_bytes / DOCUMENT_BYTES)
    hours = docs * (DOCUMENT_S + COMPARED * COMPARED_S) / 3600
    alone = local_bytes(docs, recipe)
    memory = config.memory_mb * 2**20
    if alone <= memory:
        return Cost(docs, 2, 1, alone, 0, round(hours, 3))
    sets = text_bytes / SHINGLE_BYTES * 8
    per_shard = np.full(max(1, shards), round(sets / max(1, shards)), np.int64)
    made = cut(docs, per_shard, [], config.bands, memory)
    units = 3 + made.groups + ROUNDS * (made.partitions + 2 * made.groups + 1)
    exchange = docs * config.bands * 20 + sets * COMPARED
    return Cost(docs, units, made.partitions, max(memory, docs * WHOLE_BYTES), round(exchange), round(hours, 3))
