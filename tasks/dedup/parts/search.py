"""Near duplicates of more documents than fit memory: the search cut into units that exchange narrow tables of integers.

    plan     ranks, and ranges of shards (groups) whose shingle sets fit memory           1 unit
    bands    band keys of each group, cut by ranges of keys                                a unit a group
    round    until nothing changes:
      buckets    pairs to compare in each range of keys; crowded buckets stay behind       a unit a range
      sets       shingle sets that own pairs and other groups ask for; text read once     a unit a group
      verify     exact similarities of a group's pairs                                     a unit a group
      removed    the independent set over all edges, range by range of ranks               1 unit
    finish   keepers, the run's proof, the index                                           1 unit

A unit holds a flag a document and what `memory_mb` grants besides; plan and finish hold up to 130 bytes a document. No
bucket, edge list or component of the graph is gathered in one place. None of this enters the identity of the result,
which is that of search.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from corpusmill.config import Recipe
from corpusmill.kernels.duplicates.keepers import MAX_ROUNDS
from corpusmill.store import Output, Receipt, Store
from tasks.dedup import memory, near_duplicates
from tasks.dedup.history import Earlier
from tasks.dedup.parts import compare, keys, rounds, verdict
from tasks.dedup.parts.ranges import Cut
from tasks.shards import Shard
from tasks.units import Done, Job, Runner

LOCAL_BYTES = 160
"""Memory of one unit for all, bytes a document, without its band keys (three times 8 bytes a band)."""


def near_over(
    run: Runner,
    unit: Callable[[Job], Done],
    shards: Sequence[Shard],
    exact: Receipt,
    recipe: Recipe,
    store: Store,
    earlier: Earlier | None,
) -> list[Done]:
    """Near duplicates by as few units as memory allows.

    Args:
        unit: does all at once, for the item (shards, exact, earlier).

    Returns:
        what ran, the verdict last.
    """
    whole = near_duplicates.unit_of(shards, exact, recipe, earlier)
    if receipt := store.receipt(whole):
        return [Done(receipt, reused=True)]
    with memory.kept(run, recipe, store) as measured:
        if fits(shards, recipe):
            return measured("near", unit, [Job(store.uri, recipe, (shards, exact, earlier))])
        return Search(measured, shards, exact, recipe, store, earlier).done()


def fits(shards: Sequence[Shard], recipe: Recipe) -> bool:
    """Whether one unit may do all: documents before any are ended, so that no table has to be read."""
    docs = sum(shard.documents.outputs["documents"].rows or 0 for shard in shards)
    return local_bytes(docs, recipe) <= recipe.deduplicate.memory_mb * 2**20


def local_bytes(docs: int, recipe: Recipe) -> int:
    """Memory that one unit for all would take."""
    return docs * (LOCAL_BYTES + 24 * recipe.deduplicate.bands)


@dataclass
class Search:
    """The search over a runner: which unit gets what. Holds receipts only."""

    run: Runner
    shards: Sequence[Shard]
    exact: Receipt
    recipe: Recipe
    store: Store
    earlier: Earlier | None

    def done(self) -> list[Done]:
        """Run it all; the verdict comes last."""
        self.finished: list[Done] = []
        plan = self._run("plan", keys.ranks_unit, [keys.Ranks(self.shards, self.exact, self.earlier)])[0]
        self.cut = Cut.of(plan)
        bands = self._run("bands", keys.bands_unit, [*self._own_bands(plan), *self._old_bands()])
        searched = self._rounds(plan, bands)
        item = verdict.Finish(self.shards, self.exact, self.earlier, self.cut, plan, tuple(bands), searched)
        self._run("finish", verdict.finish_unit, [item])
        return self.finished

    def _run(self, step: str, unit: Callable[[Job], Done], items: Sequence[object]) -> list[Receipt]:
        done = self.run(f"near.{step}", unit, [Job(self.store.uri, self.recipe, item) for item in items])
        self.finished += done
        return [one.receipt for one in done]

    def _own_bands(self, plan: Receipt) -> list[keys.Bands]:
        return [
            keys.Bands(self.cut, group, self.cut.shards_of(group, self.shards), plan.outputs[f"group.{group}"])
            for group in range(self.cut.groups)
        ]

    def _old_bands(self) -> list[keys.OldBands]:
        parts = self.earlier.parts if self.earlier else ()
        return [keys.OldBands(self.cut, number, part) for number, part in enumerate(parts)]

    def _rounds(self, plan: Receipt, bands: Sequence[Receipt]) -> verdict.Searched:
        cut = self.cut
        verified: list[Receipt] = []
        last: list[Receipt] = []
        states: list[Receipt] = []
        removed: Output | None = None
        first: Mapping[str, int] = {}
        for number in range(MAX_ROUNDS + 1):
            states = self._run("buckets", rounds.buckets_unit, self._buckets(bands, states, removed))
            first = first or {
                "largest": max(int(str(r.facts["largest"])) for r in states),
                "crowded": sum(int(str(r.facts["crowded"])) for r in states),
            }
            sets = self._run("sets", compare.sets_unit, [*self._sets(plan, states, last), *self._old_sets(states)])
            compared = sum(receipt.counters["pairs"] for receipt in sets)
            complete = not compared and not any(receipt.facts["new_pivots"] for receipt in states)
            if complete or number == MAX_ROUNDS:
                break
            if compared:
                last = self._run("verify", compare.verify_unit, self._verify(sets, last))
                verified += last
                edges = self._edges(verified)
                removed = self._run("removed", rounds.removed_unit, [rounds.Removed(cut, edges)])[0].outputs["removed"]
        return verdict.Searched(
            edges=self._edges(verified),
            samples=tuple(receipt.outputs["sample"] for receipt in verified),
            removed=removed,
            rounds=number,
            comparisons=sum(receipt.counters["pairs"] for receipt in verified),
            complete=complete,
            largest=first["largest"],
            crowded=first["crowded"],
        )

    def _edges(self, verified: Sequence[Receipt]) -> tuple[tuple[Output, ...], ...]:
        return tuple(
            tuple(receipt.outputs[f"edges.{number}"] for receipt in verified) for number in range(self.cut.partitions)
        )

    def _buckets(
        self, bands: Sequence[Receipt], states: Sequence[Receipt], removed: Output | None
    ) -> list[rounds.Buckets]:
        return [
            rounds.Buckets(
                self.cut,
                tuple(receipt.outputs[f"keys.{number}"] for receipt in bands) if not states else (),
                states[number].outputs["state"] if states else None,
                removed,
            )
            for number in range(self.cut.partitions)
        ]

    def _sets(self, plan: Receipt, states: Sequence[Receipt], last: Sequence[Receipt]) -> list[compare.Sets]:
        return [
            compare.Sets(
                self.cut,
                group,
                self.cut.shards_of(group, self.shards),
                plan.outputs[f"group.{group}"],
                tuple(receipt.outputs[f"pairs.{group}"] for receipt in states),
                tuple(receipt.outputs[f"asks.{group}"] for receipt in states),
                last[group].outputs["settled"] if last else None,
            )
            for group in range(self.cut.groups)
        ]

    def _old_sets(self, states: Sequence[Receipt]) -> list[compare.OldSets]:
        parts = self.earlier.parts if self.earlier else ()
        return [
            compare.OldSets(
                self.cut,
                number,
                part,
                tuple(receipt.outputs[f"asks.{self.cut.groups + number}"] for receipt in states),
            )
            for number, part in enumerate(parts)
        ]

    def _verify(self, sets: Sequence[Receipt], last: Sequence[Receipt]) -> list[compare.Verify]:
        return [
            compare.Verify(
                self.cut,
                group,
                sets[group].outputs["codes"],
                tuple(receipt.outputs[f"to.{group}"] for receipt in sets),
                last[group].outputs["settled"] if last else None,
            )
            for group in range(self.cut.groups)
        ]
