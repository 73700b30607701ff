"""Exact Jaccard similarity of shingle sets, for candidate pairs whose texts lie in many shards.

Arrays: M pairs; a set is a slice of sorted, unique uint64 hashes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corpusmill.compiled import kernel

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Sets:
    """Sets one after the other: set i is values[offsets[i]:offsets[i + 1]], ascending without repeats."""

    offsets: Ints
    values: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.offsets) - 1


Load = Callable[[int, Ints], Sets]
"""Shard number and documents (ascending, all of that shard) to their shingle sets, in that order."""


def jaccard(left: Sets, right: Sets, pairs: Ints) -> Floats:
    """Similarity |A & B| / |A | B| of pairs (set in `left`, set in `right`); 0 where both are empty.

    Args:
        left, right: sets; `pairs` is int64[M, 2].

    Returns:
        float64[M].
    """
    return _jaccard(left.offsets, left.values, right.offsets, right.values, np.ascontiguousarray(pairs))


def join(parts: Sequence[Sets]) -> Sets:
    """All sets of `parts`, in order."""
    sizes = np.concatenate([np.zeros(1, np.int64), *(np.diff(p.offsets) for p in parts)])
    values = [p.values[p.offsets[0] : p.offsets[-1]] for p in parts]
    return Sets(np.cumsum(sizes), np.concatenate([np.zeros(0, np.uint64), *values]))


def verify(pairs: Ints, shard: Ints, sizes: Ints, load: Load, *, max_values: int = 1 << 27) -> Floats:
    """Exact similarities of candidate pairs, reading texts shard by shard.

    The sets of a group of pivots are held, those of the documents pass by one shard at a time; so memory is bounded by
    `max_values` and by the candidates of one shard, whatever the number of pairs. Where all sets fit at once every
    shard is read once, otherwise at most twice for each group of pivots. `max_values` does not change the result.

    Args:
        pairs: int64[M, 2], (document, pivot).
        shard: int64[N], shard of each document.
        sizes: int64[N], shingles of each document.
        load: reads the shingle sets of some documents of one shard.
        max_values: hashes of pivots held at a time (8 bytes each); one pivot may be larger.

    Returns:
        float64[M].
    """
    similarity = np.zeros(len(pairs))
    involved = np.unique(pairs)
    if sizes[involved].sum() <= max_values:
        held = _load_all(involved, shard, load)
        return jaccard(held, held, np.searchsorted(involved, pairs))
    for pivots in _groups(np.unique(pairs[:, 1]), sizes, max_values):
        held = _load_all(pivots, shard, load)
        for number, here in _by_shard(np.flatnonzero(np.isin(pairs[:, 1], pivots)), shard[pairs[:, 0]]):
            documents = np.unique(pairs[here, 0])
            rows = np.stack(
                [np.searchsorted(documents, pairs[here, 0]), np.searchsorted(pivots, pairs[here, 1])], axis=1
            )
            similarity[here] = jaccard(load(number, documents), held, rows)
    return similarity


def _load_all(documents: Ints, shard: Ints, load: Load) -> Sets:
    """Sets of `documents` (ascending), whatever shards they lie in."""
    order: list[Ints] = []
    parts: list[Sets] = []
    for number, members in _by_shard(documents, shard):
        order.append(members)
        parts.append(load(number, members))
    loaded = join(parts)
    return take(loaded, np.argsort(np.concatenate([np.zeros(0, np.int64), *order]), kind="stable"))


def take(sets: Sets, rows: Ints) -> Sets:
    """Some sets, in the order of `rows`."""
    sizes = np.diff(sets.offsets)[rows]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    source = np.repeat(sets.offsets[:-1][rows] - offsets[:-1], sizes) + np.arange(offsets[-1])
    return Sets(offsets, sets.values[source])


def _by_shard(items: Ints, shard: Ints) -> Iterator[tuple[int, Ints]]:
    """Items (ascending) of each shard, `shard` being indexed by item."""
    items = items[np.argsort(shard[items], kind="stable")]
    numbers, begins = np.unique(shard[items], return_index=True)
    for number, begin, end in zip(numbers.tolist(), begins, [*begins[1:], len(items)], strict=False):
        yield number, items[begin:end]


def _groups(pivots: Ints, sizes: Ints, max_values: int) -> Iterator[Ints]:
    """Runs of pivots whose sets have at most `max_values` hashes together (or one pivot)."""
    begin, total = 0, 0
    for i, size in enumerate(sizes[pivots].tolist()):
        if total + size > max_values and i > begin:
            yield pivots[begin:i]
            begin, total = i, 0
        total += size
    if begin < len(pivots):
        yield pivots[begin:]


@kernel
def _jaccard(
    left_offsets: Ints, left: NDArray[np.uint64], right_offsets: Ints, right: NDArray[np.uint64], pairs: Ints
) -> Floats:
    similarity = np.zeros(pairs.shape[0])
    for m in range(pairs.shape[0]):
        i, left_end = left_offsets[pairs[m, 0]], left_offsets[pairs[m, 0] + 1]
        j, right_end = right_offsets[pairs[m, 1]], right_offsets[pairs[m, 1] + 1]
        union = left_end - i + right_end - j
        common = 0
        while i < left_end and j < right_end:
            a, b = left[i], right[j]
            common += a == b
            i += a <= b
            j += b <= a
        if union:
            similarity[m] = common / (union - common)
    return similarity
