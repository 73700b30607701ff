"""What deduplication of a number of documents will take, before any is read: units and CPU of each of its stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

from corpusmill.config import Recipe
from tasks import stages
from tasks.dedup.parts.ranges import cut, in_groups
from tasks.dedup.parts.search import local_bytes
from tasks.dedup.passages import ITEM_BYTES, Repeats, kinds

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
HELDOUT_S, LEAKS_S = 13.5e-6, 9.1e-6
"""CPU seconds a document to find copies of held-out ones, and what is trained on of them (bench/dedup/held_out.py)."""
PASSAGES_S = {stages.LINES.name: 0.06, stages.SUBSTRINGS.name: 0.13}
"""CPU seconds per MB of text to find what is repeated: 3.5 MB of web pages in 8 shards."""
WORD_BYTES = 6
"""Text a word."""


@dataclass(frozen=True)
class StageCost:
    """Units of a stage, and its CPU: `exact` and `near` are one search, counted for `near`."""

    units: int
    core_hours: float


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
    stages: Mapping[str, StageCost]
    """Of each stage that has a part in it; `units` and `core_hours` are their sums."""

    def to_json(self) -> dict[str, object]:
        """For programs."""
        return asdict(self)


def cost(text_bytes: float, shards: int, recipe: Recipe) -> Cost:
    """Of an amount of text in a number of shards."""
    config = recipe.deduplicate
    docs = round(text_bytes / DOCUMENT_BYTES)
    found = {
        stages.EXACT.name: StageCost(1, 0.0),
        stages.NEAR.name: _hours(1, docs * (DOCUMENT_S + COMPARED * COMPARED_S)),
        **{kind.stage.name: _passages(kind, text_bytes, shards, recipe) for kind in kinds(config)},
        stages.HELDOUT.name: _hours(1, docs * HELDOUT_S),
        stages.LEAKS.name: _hours(1, docs * LEAKS_S),
    }
    alone = local_bytes(docs, recipe)
    memory = config.memory_mb * 2**20
    if alone <= memory:
        return _sum(docs, found, 1, alone, 0)
    sets = text_bytes / SHINGLE_BYTES * 8
    per_shard = np.full(max(1, shards), round(sets / max(1, shards)), np.int64)
    made = cut(docs, per_shard, [], config.bands, memory)
    units = 2 + made.groups + ROUNDS * (made.partitions + 2 * made.groups + 1)
    found[stages.NEAR.name] = StageCost(units, found[stages.NEAR.name].core_hours)
    exchange = docs * config.bands * 20 + sets * COMPARED
    return _sum(docs, found, made.partitions, max(memory, docs * WHOLE_BYTES), round(exchange))


def _hours(units: int, seconds: float) -> StageCost:
    return StageCost(units, round(seconds / 3600, 3))


def _sum(docs: int, found: Mapping[str, StageCost], ranges: int, memory: int, exchange: int) -> Cost:
    units, hours = sum(one.units for one in found.values()), sum(one.core_hours for one in found.values())
    return Cost(docs, units, ranges, memory, exchange, round(hours, 3), found)


def _passages(kind: Repeats, text_bytes: float, shards: int, recipe: Recipe) -> StageCost:
    """Of one kind of repeated passage: plan and summary, a unit a group of shards, a range of hashes, a shard."""
    memory, shards = recipe.deduplicate.memory_mb * 2**20, max(1, shards)
    items = text_bytes / (WORD_BYTES if kind.words else 32)
    groups = len(in_groups(np.full(shards, round(text_bytes / shards), np.int64), memory // 8)) - 1
    ranges = max(1, -(-2 * round(items) * ITEM_BYTES // memory))
    return _hours(2 + groups + ranges + shards, PASSAGES_S[kind.stage.name] * text_bytes / 1e6)
