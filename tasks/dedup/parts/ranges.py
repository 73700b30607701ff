"""How a search that does not fit memory is cut: ranges of shards, ranges of keys, ranges of ranks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpusmill.canonical import sha256
from corpusmill.store import Output, Receipt
from tasks.shards import Shard

Ints = NDArray[np.int64]

ENTRY_BYTES = 64
"""Memory of a band key while its range is put in order."""


@dataclass(frozen=True)
class Cut:
    """Of N documents and of those that earlier builds kept (ranks 0 to F - 1)."""

    docs: int
    """N."""
    partitions: int
    """Ranges of keys, and ranges of ranks."""
    bounds: tuple[int, ...]
    """First shard of each group, and the number of shards."""
    old: tuple[int, ...]
    """First rank of each earlier build, and F."""

    @classmethod
    def of(cls, plan: Receipt) -> Cut:
        """As the plan says."""
        facts: Mapping[str, Any] = plan.facts
        return cls(facts["docs"], facts["partitions"], tuple(facts["bounds"]), tuple(facts["old"]))

    def to_json(self) -> dict[str, object]:
        """For unit keys and the plan's facts."""
        return {"docs": self.docs, "partitions": self.partitions, "bounds": list(self.bounds), "old": list(self.old)}

    @property
    def groups(self) -> int:
        """Groups of shards."""
        return len(self.bounds) - 1

    @property
    def first_new(self) -> int:
        """F."""
        return self.old[-1]

    def shards_of(self, group: int, shards: Sequence[Shard]) -> tuple[Shard, ...]:
        """The shards of a group."""
        return tuple(shards[self.bounds[group] : self.bounds[group + 1]])

    def range_of(self, later: Ints) -> Ints:
        """Range of ranks that a document of this build lies in."""
        return (later - self.first_new) * self.partitions // max(1, self.docs)


def cut(docs: int, set_bytes: Ints, old: Sequence[int], bands: int, memory: int) -> Cut:
    """Ranges that fit `memory` bytes, as far as single shards do.

    Args:
        set_bytes: int64[shards], of the shingle sets of each shard.
        old: keepers of each earlier build.
    """
    entries = (docs + sum(old)) * bands
    partitions = max(1, -(-2 * entries * ENTRY_BYTES // memory))
    ranks = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.array(old, np.int64))]).astype(np.int64)
    return Cut(docs, partitions, tuple(in_groups(set_bytes, memory // 4)), tuple(ranks.tolist()))


def in_groups(sizes: Ints, room: int) -> list[int]:
    """First shard of each group of shards in a row that fit `room`, one at least, and the number of shards."""
    bounds, held = [0], 0
    for number, size in enumerate(sizes.tolist()):
        if held and held + size > room:
            bounds.append(number)
            held = 0
        held += size
    return [*bounds, len(sizes)]


def by_number(numbers: Ints, count: int) -> Iterator[tuple[int, Ints]]:
    """Each number below `count` and the positions that hold it, ascending."""
    order = np.argsort(numbers, kind="stable")
    edges = np.searchsorted(numbers[order], np.arange(count + 1))
    for number, (begin, end) in enumerate(pairwise(edges.tolist())):
        yield number, order[begin:end]


def inputs_of(outputs: Sequence[Output | None]) -> tuple[str, ...]:
    """Their contents as one digest each; none stands for what is not there."""
    return (sha256("".join(output.identity if output else "-" for output in outputs).encode()),)
