"""Deduplicate over all shards: exact by equal digests, then near by MinHash and verified keepers."""

from tasks.dedup.equal import exact
from tasks.dedup.found import FOUND, of_shard
from tasks.dedup.history import Earlier, earlier
from tasks.dedup.parts import near_over
from tasks.dedup.passages import Found, repeats
from tasks.dedup.search import VERSION, near
from tasks.dedup.told import facts

__all__ = [
    "FOUND",
    "VERSION",
    "Earlier",
    "Found",
    "earlier",
    "exact",
    "facts",
    "near",
    "near_over",
    "of_shard",
    "repeats",
]
