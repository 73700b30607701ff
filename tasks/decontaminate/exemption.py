"""Exempt common phrases from the benchmark screen: n-grams that stand in many different contexts over all shards.

Off unless a recipe sets decontaminate.exempt_contexts. The first screen of each shard notes the contexts of what it
finds; here they are counted, and the shards are screened again without the n-grams that are common. What a context is,
and why copies of an item do not make its n-grams common: kernels/ngram_contexts.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from corpusmill.config import Recipe
from corpusmill.schema import EXEMPTED_NGRAMS
from corpusmill.store import Output, Receipt, Store
from tasks import stages
from tasks.decontaminate import screen
from tasks.shards import Shard
from tasks.units import Done, Job, Runner, content_of, once, store_at


@dataclass(frozen=True)
class Exempted:
    """Shards as screened for good."""

    shards: list[Shard]
    receipts: tuple[Receipt, ...] = ()
    """Of the count (output `exempt`); none where the recipe exempts nothing."""
    done: tuple[Done, ...] = ()


@dataclass(frozen=True)
class Again:
    """Screen a shard once more."""

    shard: Shard
    exempt: Output


def exempted(run: Runner, shards: Sequence[Shard], recipe: Recipe, store: Store) -> Exempted:
    """Count contexts and screen again; does nothing where the recipe exempts nothing."""
    if not recipe.decontaminate.exempt_contexts:
        return Exempted(list(shards))
    (common,) = run("decontaminate", common_unit, [Job(store.uri, recipe, tuple(shards))])
    exempt = common.receipt.outputs["exempt"]
    again = run("decontaminate", again_unit, [Job(store.uri, recipe, Again(shard, exempt)) for shard in shards])
    found = [screened(shard, done.receipt) for shard, done in zip(shards, again, strict=True)]
    return Exempted(found, (common.receipt,), (common, *again))


def screened(shard: Shard, receipt: Receipt) -> Shard:
    """The shard with the receipt of its new screen, the last of its trail, for that of the old one."""
    cuts = (receipt.outputs["cuts"],) if "cuts" in receipt.outputs else ()
    return replace(shard, screened=receipt, decided=receipt, cuts=cuts, trail=(*shard.trail[:-1], receipt))


def common_unit(job: Job) -> Done:
    """Writes `exempt`. The screen without these n-grams is tried on planted items, too."""
    shards, recipe, store = job.item, job.recipe, store_at(job.uri)
    least = recipe.decontaminate.exempt_contexts
    inputs = tuple(content_of(shard.screened, "contexts") for shard in shards)
    config = {"least": least, "seed": recipe.seed, "screens": sorted({s.screened.facts["benchmarks"] for s in shards})}
    unit = stages.DECONTAMINATE.unit(config, inputs)

    def work() -> Receipt:
        pairs = pa.concat_tables([store.table(shard.screened.outputs["contexts"]) for shard in shards])
        distinct = pairs.group_by(["ngram", "context"]).aggregate([])
        counts = distinct.group_by("ngram").aggregate([("context", "count")])
        counts = counts.filter(pc.greater_equal(counts.column("context_count"), least))
        table = counts.select(["ngram", "context_count"]).rename_columns(EXEMPTED_NGRAMS.names).cast(EXEMPTED_NGRAMS)
        table = table.sort_by([("contexts", "descending"), ("ngram", "ascending")])
        index = screen.index_of(recipe.decontaminate, frozenset(table.column("ngram").to_pylist()))
        lost = [f"{item.benchmark}/{item.id}" for item in index.exempt]
        facts = {"ngrams": table.num_rows, "items_without_ngrams": lost, **screen.gate(index, recipe)}
        return store.commit(unit, {"exempt": store.draft_table(table)}, facts=facts)

    return once(store, unit, work)


def again_unit(job: Job) -> Done:
    """The screen of one shard without the exempted n-grams."""
    item: Again = job.item
    shard = item.shard
    return screen.screen_shard(
        shard.documents, shard.groups, shard.filtered, job.recipe, store_at(job.uri), item.exempt
    )
