"""Deduplicate over all shards: exact by equal digests, then near by MinHash and verified keepers."""

from tasks.dedup.earlier import Earlier, earlier
from tasks.dedup.exact import exact
from tasks.dedup.found import FOUND
from tasks.dedup.parts import near_over
from tasks.dedup.search import VERSION, near

__all__ = ["FOUND", "VERSION", "Earlier", "earlier", "exact", "near", "near_over"]
