"""The order in which training sees packed sequences: a pure function of a plan, so that loader state is one integer.

A plan is a list of stages, each a number of sequences drawn from partitions by integer weights. Sequence g of the plan
is found by arithmetic alone: its stage and block, a slot of the block's mixture, an epoch of the slot's partition and a
row of that epoch. Any number of ranks that divides the global batch sees the same global sequence; going on at step
100,000 costs what step 0 costs.

Method: a 6-round Feistel network (Luby and Rackoff 1988) with the murmur3 finaliser as round function, walked until it
falls into the range (Black and Rogaway 2002); mixture by cumulative floors, so that the drawn count of a partition is
less than one off its ideal at every block's end. Weaker index shuffles fail the pair test of test_order.py.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from corpusmill.canonical import digest_of
from corpusmill.errors import UsageError
from corpusmill.kernels.permute import walk

VERSION = 1
"""Raise it when the same plan would give another order; golden vectors remind you."""

ROUNDS = 6
MAX_SEQUENCES = 2**40
MAX_WEIGHT_SUM = 2**20

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Permutation:
    """A keyed permutation of range(size) that needs no memory."""

    size: int
    keys: tuple[int, ...] = field(repr=False)

    @staticmethod
    def of(size: int, seed: int, *tweaks: str | int) -> Permutation:
        """The permutation of range(size) for a seed and a place: other tweaks give an unrelated one."""
        return Permutation(size, _round_keys("|".join(["prp1", str(seed), *map(str, tweaks)])))

    @cached_property
    def _half(self) -> int:
        """Bits of half a word: the domain 4**half is under 4 * size, so a walk takes under 4 turns on average."""
        return ((self.size - 1).bit_length() + 1) // 2

    def __call__(self, index: Ints) -> Ints:
        """Images int64[n] of indices int64[n] in range(size)."""
        return self._walk(index, inverse=False)

    def inverse(self, index: Ints) -> Ints:
        """The indices int64[n] whose images these are."""
        return self._walk(index, inverse=True)

    def _walk(self, index: Ints, inverse: bool) -> Ints:
        if self.size == 1:
            return np.zeros_like(index)
        keys = np.array(self.keys, np.uint64)
        return walk(np.ascontiguousarray(index, np.int64), self.size, keys, self._half, inverse)


@lru_cache(maxsize=4096)
def _round_keys(text: str) -> tuple[int, ...]:
    digest = hashlib.blake2b(text.encode(), digest_size=8 * ROUNDS).digest()
    return tuple(int.from_bytes(digest[i : i + 8], "little") for i in range(0, 8 * ROUNDS, 8))


@dataclass(frozen=True)
class Stage:
    """A stretch of training with one mixture.

    `rope_base` and `lr` (first and last factor on the peak learning rate, linear in between) do not move any row; they
    stand here because a mixture is hashed as a whole.
    """

    sequences: int
    weights: Mapping[str, int]
    rope_base: int = 10_000
    lr: tuple[float, float] = (1.0, 1.0)


@dataclass(frozen=True)
class Rows:
    """Where sequences lie: partition number (into `Plan.partitions`), row of the partition, epoch; int64[n] each."""

    partition: Ints
    row: Ints
    epoch: Ints


@dataclass(frozen=True)
class Plan:
    """The whole order of a training run.

    Args:
        seed: of every permutation.
        global_batch: sequences in a step; the number of ranks must divide it.
        sizes: sequences in each partition that a stage draws from.
        stages: in order; at least one.
        block: sequences within which the mixture is exact.
        max_epochs: refuse to draw a partition more often than this.

    Raises:
        UsageError: a weight, size or block that cannot work; a partition drawn more than `max_epochs` times.
    """

    seed: int
    global_batch: int
    sizes: Mapping[str, int]
    stages: tuple[Stage, ...]
    block: int = 1024
    max_epochs: int = 4

    def __post_init__(self) -> None:
        _check(self)

    @cached_property
    def partitions(self) -> tuple[str, ...]:
        """Names of the partitions, sorted; `Rows.partition` counts into it."""
        return tuple(sorted(self.sizes))

    @cached_property
    def digest(self) -> str:
        """The identity of the plan: sha256 of its canonical JSON."""
        return digest_of(self.as_json())

    def as_json(self) -> dict[str, object]:
        """All that decides the order, and the learning-rate factors and rotary bases of the stages."""
        stages = [
            {"sequences": s.sequences, "weights": dict(s.weights), "rope_base": s.rope_base, "lr": list(s.lr)}
            for s in self.stages
        ]
        return {
            "order": VERSION,
            "seed": self.seed,
            "global_batch": self.global_batch,
            "block": self.block,
            "sizes": dict(self.sizes),
            "stages": stages,
        }

    @cached_property
    def total(self) -> int:
        """Sequences in all stages."""
        return sum(stage.sequences for stage in self.stages)

    @property
    def steps(self) -> int:
        """Whole global batches in the plan."""
        return self.total // self.global_batch

    def epochs(self) -> dict[str, float]:
        """How often each partition is drawn in all, as a multiple of its size."""
        drawn = self._bases[-1] + _drawn(self._cumulative[-1], self.stages[-1].sequences)
        return {name: float(drawn[k]) / self.sizes[name] for k, name in enumerate(self.partitions)}

    def stage_at(self, step: int) -> tuple[Stage, float]:
        """The stage that a step's first sequence belongs to, and the share of that stage already passed (0 to 1)."""
        first = step * self.global_batch
        s = int(np.searchsorted(self._starts, first, side="right")) - 1
        return self.stages[s], (first - int(self._starts[s])) / self.stages[s].sequences

    def rows(self, step: int, rank: int = 0, world_size: int = 1, steps: int = 1) -> Rows:
        """The share of a rank in the global batches of one or more steps: steps * global_batch / world_size sequences.

        Finding them costs some 0.2 ms a call and 0.3 us a sequence, so a loader asks for many steps at once.

        Raises:
            UsageError: `world_size` does not divide the global batch.
        """
        share, rest = divmod(self.global_batch, world_size)
        if rest:
            raise UsageError(
                f"a global batch of {self.global_batch} sequences cannot be divided among {world_size} ranks",
                "every rank must get the same number of sequences",
                f"Use a number of ranks that divides {self.global_batch}.",
            )
        first = np.arange(step, step + steps, dtype=np.int64) * self.global_batch + rank * share
        return self.at((first[:, None] + np.arange(share)).ravel())

    def at(self, index: Ints) -> Rows:
        """The rows of sequences of the plan by their global numbers int64[n], each in range(total)."""
        if len(index) and (int(index.min()) < 0 or int(index.max()) >= self.total):
            raise IndexError(f"sequences {int(index.min())} to {int(index.max())} of a plan of {self.total}")
        stage = np.searchsorted(self._starts, index, side="right") - 1
        within = index - self._starts[stage]
        block = np.minimum(within // self._lengths[stage], self._blocks[stage] - 1)  # the last one takes the remainder
        partition, draw = np.empty_like(index), np.empty_like(index)
        for s, b, members in _groups(stage, block):
            partition[members], draw[members] = self._slots(s, b, within[members])
        sizes = self._sizes[partition]
        epoch, place = draw // sizes, draw % sizes
        row = np.empty_like(index)
        for k, e, members in _groups(partition, epoch):
            name = self.partitions[k]
            row[members] = Permutation.of(self.sizes[name], self.seed, "src", name, e)(place[members])
        return Rows(partition, row, epoch)

    def _slots(self, stage: int, block: int, within: Ints) -> tuple[Ints, Ints]:
        """Partition and draw number (over the whole plan) of places of one block, given as offsets in their stage."""
        low, high = self._bounds(stage, block)
        before, after = _drawn(self._cumulative[stage], low), _drawn(self._cumulative[stage], high)
        ends = np.cumsum(after - before)
        slot = Permutation.of(high - low, self.seed, "blk", stage, block)(within - low)
        partition = np.searchsorted(ends, slot, side="right")
        first = ends - (after - before)
        return partition, slot - first[partition] + before[partition] + self._bases[stage][partition]

    def numbers_of(self, partition: str, row: int) -> Ints:
        """The inverse of `at`: ascending global numbers int64[e] of the sequences that are this row, one an epoch.

        Found by arithmetic: per epoch one step of the permutations and a binary search over blocks.

        Raises:
            IndexError: the partition has no such row. KeyError: the plan has no such partition.
        """
        size, k = self.sizes[partition], self.partitions.index(partition)
        if not 0 <= row < size:
            raise IndexError(f"row {row} of {size} of partition {partition}")
        drawn = int(self._bases[-1][k] + _drawn(self._cumulative[-1], self.stages[-1].sequences)[k])
        found = list[int]()
        for epoch in range(-(-drawn // size)):
            place = Permutation.of(size, self.seed, "src", partition, epoch).inverse(np.array([row], np.int64))
            draw = epoch * size + int(place[0])
            if draw < drawn:
                found.append(self._number_of(k, draw))
        return np.array(sorted(found), np.int64)

    def _number_of(self, partition: int, draw: int) -> int:
        """The global number of a draw of a partition; the inverse of `_slots`."""
        stage = max(s for s, base in enumerate(self._bases) if base[partition] <= draw)
        cumulative, left = self._cumulative[stage], draw - int(self._bases[stage][partition])
        low, high = 0, int(self._blocks[stage]) - 1  # the last block before which no more than `left` are drawn
        while low < high:
            middle = (low + high + 1) // 2
            if _drawn(cumulative, self._bounds(stage, middle)[0])[partition] <= left:
                low = middle
            else:
                high = middle - 1
        begin, end = self._bounds(stage, low)
        before, after = _drawn(cumulative, begin), _drawn(cumulative, end)
        slot = int((after - before)[:partition].sum()) + left - int(before[partition])
        place = Permutation.of(end - begin, self.seed, "blk", stage, low).inverse(np.array([slot], np.int64))
        return int(self._starts[stage]) + begin + int(place[0])

    def _bounds(self, stage: int, block: int) -> tuple[int, int]:
        """First sequence of a block of a stage, and the one after its last."""
        low = block * int(self._lengths[stage])
        last = block == self._blocks[stage] - 1
        return low, self.stages[stage].sequences if last else low + int(self._lengths[stage])

    @cached_property
    def _sizes(self) -> Ints:
        return np.array([self.sizes[name] for name in self.partitions], np.int64)

    @cached_property
    def _starts(self) -> Ints:
        return np.cumsum([0] + [s.sequences for s in self.stages[:-1]], dtype=np.int64)

    @cached_property
    def _blocks(self) -> Ints:
        lengths = self._lengths.tolist()
        return np.array([max(1, s.sequences // n) for s, n in zip(self.stages, lengths, strict=True)], np.int64)

    @cached_property
    def _lengths(self) -> Ints:
        """Sequences in a block of each stage: all, where a block would have too few of a partition (by size only)."""
        return np.array([s.sequences if _too_few(s, self.block) else self.block for s in self.stages], np.int64)

    @cached_property
    def _cumulative(self) -> list[Ints]:
        """Cumulative weights of each stage over all partitions, from 0 to the weight sum."""
        weights = [[stage.weights.get(name, 0) for name in self.partitions] for stage in self.stages]
        return [np.cumsum([0, *row], dtype=np.int64) for row in weights]

    @cached_property
    def _bases(self) -> list[Ints]:
        """Draws of each partition before each stage."""
        bases = [np.zeros(len(self.partitions), np.int64)]
        for stage, cumulative in zip(self.stages[:-1], self._cumulative, strict=False):
            bases.append(bases[-1] + _drawn(cumulative, stage.sequences))
        return bases


def _drawn(cumulative: Ints, m: int) -> Ints:
    """How many of a stage's first m sequences each partition gives: floor(m C[k+1] / D) - floor(m C[k] / D)."""
    total = int(cumulative[-1])
    if m * total < 2**63:
        floors = m * cumulative // total
    else:  # weights that are sizes
        floors = np.array([m * weight // total for weight in cumulative.tolist()], np.int64)
    return floors[1:] - floors[:-1]


def _too_few(stage: Stage, block: int) -> bool:
    """Whether floors at the ends of blocks could go back: two sequences of each partition a block rule that out."""
    return len(stage.weights) > 1 and min(stage.weights.values()) * block < 2 * sum(stage.weights.values())


def _groups(first: Ints, second: Ints) -> list[tuple[int, int, Ints]]:
    """Positions of each distinct pair of values, as (first, second, positions int64[m])."""
    if not len(first):
        return []
    order = np.lexsort((second, first))
    a, b = first[order], second[order]
    cuts = np.flatnonzero((a[1:] != a[:-1]) | (b[1:] != b[:-1])) + 1
    return [(int(first[part[0]]), int(second[part[0]]), part) for part in np.split(order, cuts)]


_NAME = re.compile(r"([0-9a-f]{64}:)?[a-z0-9][a-z0-9._-]{0,63}")
"""Of a partition; one of another dataset than the run's has the digest of that before it."""


def _check(plan: Plan) -> None:
    faults = []
    for name, size in sorted(plan.sizes.items()):
        if not _NAME.fullmatch(name):
            faults.append(f"partition {name!r}: not a name")
        if not 0 < size <= MAX_SEQUENCES:
            faults.append(f"partition {name}: holds {size} sequences, expected 1 to 2**40")
    if not plan.stages or plan.global_batch < 1 or plan.block < 1:
        faults.append("a plan needs a stage, a global batch and a block of at least 1")
    for i, stage in enumerate(plan.stages):
        faults += [f"stage {i + 1}: {fault}" for fault in stage_faults(stage, plan.sizes, plan.block)]
    if plan.stages and plan.total > MAX_SEQUENCES:
        faults.append(f"{plan.total} sequences in all, expected at most 2**40")
    if faults:
        raise UsageError("the mixture cannot be drawn", "\n".join(faults), "Correct the stages of the mixture.")
    for name, epochs in plan.epochs().items():
        if epochs > plan.max_epochs:
            raise UsageError(
                f"partition {name} would be drawn {epochs:.1f} times, more than max_epochs = {plan.max_epochs}",
                f"it has {plan.sizes[name]} sequences",
                "Train for fewer steps, lower its weight, build a larger dataset, or raise max_epochs.",
            )


def stage_faults(stage: Stage, sizes: Mapping[str, int], block: int) -> list[str]:
    """Why a stage cannot be drawn from partitions of these sizes in blocks of this length; empty if it can."""
    if stage.sequences < 1:
        return [f"{stage.sequences} sequences, expected at least 1"]
    if not stage.weights or any(weight < 1 for weight in stage.weights.values()):
        return ["every weight must be a whole number of at least 1"]
    total = sum(stage.weights.values())
    unknown = sorted(set(stage.weights) - set(sizes))
    faults = [f"no partition {name!r}; there are {sorted(sizes)}" for name in unknown]
    if all(sizes.get(name) == weight for name, weight in stage.weights.items()):
        return faults  # by size: exact over a pass; where a partition is too small for blocks, the stage is one
    if total > MAX_WEIGHT_SUM:
        faults.append(f"weights sum to {total}, expected at most 2**20")
    if _too_few(stage, block):
        faults.append(f"the smallest of {dict(stage.weights)} gives under 2 sequences in a block of {block}")
    return faults
