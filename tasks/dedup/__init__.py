"""Deduplicate over all shards: exact by equal digests, then near by MinHash and verified keepers."""

from tasks.dedup.near import FOUND, VERSION, exact, near

__all__ = ["FOUND", "VERSION", "exact", "near"]
