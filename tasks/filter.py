"""Filter: language bound and rules, read from measures; writes one decision per document. No text is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusmill import schema
from corpusmill.config import Recipe
from corpusmill.kernels.rules.bounds import Decided, decide
from corpusmill.kernels.rules.rules import RuleSet
from corpusmill.languages import EVERY_LANGUAGE
from corpusmill.measured import bounds_of, measured_batch
from corpusmill.rulebook import COSTLY, rules_of
from corpusmill.store import Receipt, Store, Unit
from tasks import stages
from tasks.funnel.tally import Tally
from tasks.judge.judge import above_floors
from tasks.units import Done, content_of, once


def filter_shard(documents: Receipt, groups: Mapping[str, Receipt], recipe: Recipe, store: Store) -> Done:
    """Decisions of one shard after stages `language` and `filter`.

    A document ends for the first reason in the order of the funnel: language, floors, rules, personal data,
    classifiers. `failed_rules` holds every rule it breaks.
    """
    rules = rules_of(recipe.filter.rules)
    judge = recipe.judge
    config = {
        "language": recipe.language.what(),
        "rules": rules.digest,
        "floors": {name: floor.what() for name, floor in judge.floors.items()},
        "personal_data": judge.personal_data.drop_above,
        "quality": {name: quality.min_score for name, quality in judge.quality.items()},
    }
    inputs = (content_of(documents, "documents"), *(content_of(groups[name], name) for name in _read(groups)))
    unit = stages.FILTER.unit(config, inputs)
    return once(store, unit, lambda: _filter(unit, documents, groups, recipe, rules, store))


def _read(groups: Mapping[str, Receipt]) -> list[str]:
    """The groups that decide here; signatures do not."""
    return sorted(name for name in groups if name != "digests")


def _filter(
    unit: Unit, documents: Receipt, groups: Mapping[str, Receipt], recipe: Recipe, rules: RuleSet, store: Store
) -> Receipt:
    doc_ids = store.table(documents.outputs["documents"], columns=["doc_id"]).column("doc_id").combine_chunks()
    batch = measured_batch({name: store.table(groups[name].outputs[name]) for name in _read(groups)})
    languages = store.table(groups["language"].outputs["language"])
    found = decide_rows(batch, languages.column("language").combine_chunks(), rules, recipe)
    count = len(doc_ids)
    table = pa.table(
        {
            "doc_id": doc_ids,
            "stage": found.stage,
            "reason": found.reason,
            "failed_rules": found.failed,
            "value": found.value,
            "bound": found.bound,
            "keeper": pa.nulls(count, schema.DOC_ID),
            "similarity": pa.nulls(count, pa.float64()),
            "cluster": pa.nulls(count, schema.DOC_ID),
            "benchmark": pa.nulls(count, pa.string()),
        },
        schema=schema.DECISIONS,
    )
    sizes, words = (batch.column(name).to_numpy() for name in ("text_bytes", "word_total"))
    tallies = tally_rows(found.stage, found.reason, sizes, words, stages.FILTER.rows)
    counters = {name: count for tally in tallies for name, count in tally.counters().items()}
    reasons = {name: counts for tally in tallies for name, counts in tally.reason_counts().items()}
    return store.commit(
        unit,
        {"decisions": store.draft_table(table)},
        counters=counters,
        reasons=reasons,
        facts={"locator": documents.facts["locator"]},
    )


def decide_rows(batch: pa.RecordBatch, language: pa.Array, rules: RuleSet, recipe: Recipe) -> Decided:
    """The decisions of stages `language` and `filter` from measures alone.

    Args:
        batch: of `measured_batch`. language: string[n].
    """
    found = decide(batch, bounds_of(recipe.what(), rules), language)
    floors = recipe.judge.floors
    if not floors:
        return found
    # What a spared document would have scored is not known, so it breaks no rule about it.
    spared = ~above_floors(batch, floors)
    unknown = sum(1 << i for i, rule in enumerate(rules.rules) if rule.measure.startswith(COSTLY))
    failed = found.failed.to_numpy()
    return replace(found, failed=pa.array(np.where(spared, failed & ~np.int64(unknown), failed)))


def in_languages(name: pa.Array | pa.ChunkedArray, keep: Sequence[str]) -> pa.Array:
    """Whether languages are among those kept."""
    if EVERY_LANGUAGE in keep:
        return pa.array(np.ones(len(name), bool))
    return pc.is_in(name, pa.array(keep, pa.string()))


def tally_rows(
    stage: pa.Array, reason: pa.Array, sizes: np.ndarray, words: np.ndarray, rows: tuple[str, ...]
) -> list[Tally]:
    """Funnel rows of a decided shard: what enters each row, what it ends and why.

    Args:
        stage, reason: string[n], null where kept; only the stages in `rows` count, in that order.
        sizes, words: int64[n], text bytes and words of each document.
    """
    stages = np.asarray(stage.to_pylist(), dtype=object)
    reasons = np.asarray(reason.to_pylist(), dtype=object)
    alive = np.ones(len(stages), bool)
    tallies = []
    for row in rows:
        tally = Tally(row)
        tally.add_in(int(alive.sum()), int(sizes[alive].sum()), int(words[alive].sum()))
        ended = alive & (stages == row)
        for name in sorted(set(reasons[ended])):
            here = ended & (reasons == name)
            tally.add_reason(name, int(here.sum()), int(sizes[here].sum()), int(words[here].sum()))
        alive &= ~ended
        tally.add_out(int(alive.sum()), int(sizes[alive].sum()), int(words[alive].sum()))
        tallies.append(tally)
    return tallies
