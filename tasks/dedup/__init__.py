"""Deduplicate over all shards: exact by equal digests, then near by MinHash and verified keepers."""

from tasks.dedup.exact_duplicates import exact
from tasks.dedup.held_out import hold_out
from tasks.dedup.history import Earlier, earlier
from tasks.dedup.leak_check import check as check_leaks
from tasks.dedup.leak_check import find_leaks
from tasks.dedup.manifest_facts import index_of, searched
from tasks.dedup.near_duplicates import near
from tasks.dedup.outcome import FOUND, of_shard
from tasks.dedup.parts.search import near_over
from tasks.dedup.passages import Found, repeats

__all__ = [
    "FOUND",
    "Earlier",
    "Found",
    "check_leaks",
    "earlier",
    "exact",
    "find_leaks",
    "hold_out",
    "index_of",
    "near",
    "near_over",
    "of_shard",
    "repeats",
    "searched",
]
