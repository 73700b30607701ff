"""Buckets with more members than can all be compared: their pivots, and the pairs to compare, round by round.

Arrays: M members of all buckets together, by bucket and then by rank (place in the order of preference).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corpusmill.compiled import kernel

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Codes = NDArray[np.uint64]
"""Pairs of ranks: later << 32 | earlier."""


@dataclass(frozen=True)
class Bounds:
    """What a search compares."""

    min_jaccard: float
    """Similarity from which a document is a copy: pairs whose set sizes alone put them below are left out."""
    max_pivots: int = 4
    """New pivots of a bucket in each round."""
    kept_before: int = 0
    """Documents of ranks below were kept by an earlier search: they are not compared with one another."""


@dataclass(frozen=True)
class CrowdedBuckets:
    """Buckets and which of their members were pivots."""

    members: Ints
    """int64[M]: ranks, ascending in each bucket."""
    sizes: NDArray[np.int32]
    """int32[M]: size of each member's shingle set."""
    offsets: Ints
    """int64[buckets + 1] into the members."""
    pivot: Flags
    """bool[M]."""

    @classmethod
    def fresh(cls, members: Ints, sizes: NDArray[np.int32], offsets: Ints) -> CrowdedBuckets:
        """Buckets that no round has looked at."""
        return cls(members, sizes, offsets, np.zeros(len(members), np.bool_))

    def only(self, chosen: Flags) -> CrowdedBuckets:
        """The same buckets with some of their members; empty ones stay."""
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(chosen)])
        return CrowdedBuckets(self.members[chosen], self.sizes[chosen], before[self.offsets], self.pivot[chosen])

    def crowded(self) -> CrowdedBuckets:
        """The buckets that have members who were no pivots: a later round looks at them again."""
        sizes = np.diff(self.offsets)
        pivots = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.pivot)])
        kept = np.diff(pivots[self.offsets]) < sizes
        members = np.repeat(kept, sizes)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes[kept])])
        return CrowdedBuckets(self.members[members], self.sizes[members], offsets, self.pivot[members])


def next_round(buckets: CrowdedBuckets, removed: Flags, bounds: Bounds) -> tuple[Codes, bool, CrowdedBuckets]:
    """Pairs of one round among the survivors, whether any bucket has new pivots, and the buckets with these flagged.

    Args:
        removed: bool[N], by rank.

    Returns:
        codes of pairs, unsorted, a pair as often as there are buckets in which it is wanted.
    """
    surviving = ~removed[buckets.members]
    here = buckets.only(surviving)
    pivot = here.pivot.copy()
    codes = _pairs(
        here.members, here.sizes, here.offsets, pivot, bounds.kept_before, bounds.max_pivots, bounds.min_jaccard
    )
    flagged = buckets.pivot.copy()
    flagged[surviving] = pivot
    return (
        codes,
        bool((pivot != here.pivot).any()),
        CrowdedBuckets(buckets.members, buckets.sizes, buckets.offsets, flagged),
    )


def unique(codes: Codes) -> Codes:
    """The codes in order, each once: np.unique hashes before it sorts, which takes four times as long here."""
    ascending = np.sort(codes)
    first = np.ones(len(codes), np.bool_)
    first[1:] = ascending[1:] != ascending[:-1]
    return ascending[first]


def decode(codes: Codes) -> tuple[Ints, Ints]:
    """Ranks (later, earlier) of pair codes."""
    return (codes >> np.uint64(32)).astype(np.int64), (codes & np.uint64(0xFFFFFFFF)).astype(np.int64)


@kernel
def _pairs(
    members: Ints,
    sizes: NDArray[np.int32],
    offsets: Ints,
    pivot: Flags,
    first_new: int,
    max_pivots: int,
    min_jaccard: float,
) -> Codes:
    """Pairs of each bucket's members with its known pivots and its next `max_pivots`, which are flagged in `pivot`."""
    capacity = 1024
    codes, count = np.empty(capacity, np.uint64), 0
    for b in range(len(offsets) - 1):
        begin, end = offsets[b], offsets[b + 1]
        if end - begin < 2 or members[end - 1] < first_new:
            continue
        fresh = max_pivots
        for i in range(begin, end):
            if fresh > 0 and not pivot[i]:
                pivot[i] = True
                fresh -= 1
        for i in range(begin, end):
            if not pivot[i]:
                continue
            for j in range(begin, end):
                if j == i or (pivot[j] and j < i):
                    continue  # two pivots: once
                if members[i] < first_new and members[j] < first_new:
                    continue
                few, many = min(sizes[i], sizes[j]), max(sizes[i], sizes[j])
                if few / many < min_jaccard:
                    continue
                if count == capacity:
                    codes = np.concatenate((codes, np.empty(capacity, np.uint64)))
                    capacity *= 2
                later, earlier = max(members[i], members[j]), min(members[i], members[j])
                codes[count] = np.uint64(later) << np.uint64(32) | np.uint64(earlier)
                count += 1
    return codes[:count]
