"""Filter: language bound and rules, read from measures; writes a decision a document. No text is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusmill import schema
from corpusmill.config import Recipe
from corpusmill.kernels.rules import RuleSet, apply_rules
from corpusmill.measured import measured_batch
from corpusmill.rulebook import COSTLY, rules_of
from corpusmill.store import Receipt, Store, Unit
from tasks.judge import above_floors
from tasks.units import Done, Tally, content_of, once

VERSION = 1


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
    unit = Unit("filter", VERSION, config, inputs)
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
    tallies = tally_rows(found.stage, found.reason, sizes, words, ("language", "filter"))
    counters = {name: count for tally in tallies for name, count in tally.counters().items()}
    reasons = {name: counts for tally in tallies for name, counts in tally.reason_counts().items()}
    return store.commit(
        unit,
        {"decisions": store.draft_table(table)},
        counters=counters,
        reasons=reasons,
        facts={"locator": documents.facts["locator"]},
    )


@dataclass(frozen=True)
class Decided:
    """Why documents end, n of them: string, string, int64, float64, float64; null where a document stays."""

    stage: pa.Array
    reason: pa.Array
    failed: pa.Array
    value: pa.Array
    bound: pa.Array


def decide_rows(batch: pa.RecordBatch, language: pa.Array, rules: RuleSet, recipe: Recipe) -> Decided:
    """The decisions of stages `language` and `filter` from measures alone; no text is read, so what-if calls it too.

    Args:
        batch: of `measured_batch`. language: string[n].
    """
    judge = recipe.judge
    rule_reason, failed, value, bound = apply_rules(batch, rules, language)
    steps = [_language_reasons(language, batch.column("language_score"), recipe)]
    for name, floor in sorted(judge.floors.items()):
        steps.append(_outside("below_floor", batch.column(name), floor.min, floor.max))
    steps.append((rule_reason, value, bound))
    if judge.personal_data.drop_above is not None:
        steps.append(_outside("personal_data", batch.column("pii_total"), None, judge.personal_data.drop_above))
    for name, quality in sorted(judge.quality.items()):
        if quality.min_score is not None:
            steps.append(_outside("low_quality", batch.column(f"quality_{name}"), quality.min_score, None))
    reason, value, bound = (pa.nulls(batch.num_rows, kind) for kind in (pa.string(), pa.float64(), pa.float64()))
    for step, step_value, step_bound in steps:
        here = pc.and_(pc.is_null(reason), pc.is_valid(step))
        reason = pc.if_else(here, step, reason)
        value = pc.if_else(here, step_value, value)
        bound = pc.if_else(here, step_bound, bound)
    of_language = pc.is_valid(steps[0][0])
    nothing = pa.scalar(None, pa.string())
    stage = pc.if_else(of_language, "language", pc.if_else(pc.is_valid(reason), "filter", nothing))
    if judge.floors:  # what a spared document would have scored is not known, so it breaks no rule about it
        spared = ~above_floors(batch, judge.floors)
        unknown = sum(1 << i for i, rule in enumerate(rules.rules) if rule.measure.startswith(COSTLY))
        failed = pa.array(np.where(spared, failed.to_numpy() & ~np.int64(unknown), failed.to_numpy()))
    return Decided(stage, reason, failed, value, bound)


def _outside(name: str, column: pa.Array, low: float | None, high: float | None) -> tuple[pa.Array, pa.Array, pa.Array]:
    """(reason, value, bound) where a measure is outside its bounds; a null is outside."""
    value = pc.cast(column, pa.float64())
    below = pc.fill_null(pc.less(value, low), True) if low is not None else pa.scalar(False)
    above = pc.fill_null(pc.greater(value, high), True) if high is not None else pa.scalar(False)
    out = pc.or_(below, above)
    bound = pc.if_else(below, pa.scalar(low, pa.float64()), pa.scalar(high, pa.float64()))
    return pc.if_else(out, pa.scalar(name), pa.scalar(None, pa.string())), value, bound


def in_languages(name: pa.Array | pa.ChunkedArray, keep: Sequence[str]) -> pa.Array:
    """Whether languages are among those kept; "*" keeps all, unknown ones too."""
    if "*" in keep:
        return pa.array(np.ones(len(name), bool))
    return pc.fill_null(pc.is_in(name, pa.array(keep, pa.string())), False)


def _language_reasons(name: pa.Array, score: pa.Array, recipe: Recipe) -> tuple[pa.Array, pa.Array, pa.Array]:
    wanted = in_languages(name, recipe.language.keep)
    bound = pa.array(np.full(len(name), recipe.language.min_score))
    for code, own in sorted(recipe.language.min_scores.items()):
        bound = pc.if_else(pc.fill_null(pc.equal(name, code), False), own, bound)
    # Compared as they are stored, in 1/10,000.
    low = pc.less(pc.round(pc.multiply(score, 10_000.0)), pc.round(pc.multiply(bound, 10_000.0)))
    nothing = pa.scalar(None, pa.string())
    reason = pc.if_else(wanted, pc.if_else(low, pa.scalar("uncertain_language"), nothing), pa.scalar("other_language"))
    return reason, score, bound


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
