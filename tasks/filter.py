"""Filter: language bound and rules, read from measures; writes a decision a document. No text is read."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusmill import schema
from corpusmill.config import Recipe, find_file
from corpusmill.kernels.rules import RuleSet, apply_rules, load_rules
from corpusmill.store import Receipt, Store, Unit
from tasks.units import Done, Tally, content_of, once

VERSION = 1


@lru_cache(maxsize=8)
def rules_of(setting: str) -> RuleSet:
    """The rule file that a recipe names."""
    return load_rules(find_file(setting, "rules", ".toml", "rule file"))


def filter_shard(documents: Receipt, groups: dict[str, Receipt], recipe: Recipe, store: Store) -> Done:
    """Decisions of one shard after stages `language` and `filter`.

    A document ends for the first reason in the order of the funnel; `failed_rules` holds every rule it breaks.
    """
    rules = rules_of(recipe.filter.rules)
    unit = Unit(
        "filter",
        VERSION,
        {"language": recipe.language.what(), "rules": rules.digest},
        (
            content_of(documents, "documents"),
            content_of(groups["language"], "language"),
            content_of(groups["measures"], "measures"),
        ),
    )
    return once(store, unit, lambda: _filter(unit, documents, groups, recipe, rules, store))


def _filter(
    unit: Unit, documents: Receipt, groups: dict[str, Receipt], recipe: Recipe, rules: RuleSet, store: Store
) -> Receipt:
    doc_ids = store.table(documents.outputs["documents"], columns=["doc_id"]).column("doc_id").combine_chunks()
    languages = store.table(groups["language"].outputs["language"])
    measured = store.table(groups["measures"].outputs["measures"]).combine_chunks()
    batch = measured.to_batches()[0] if measured.num_rows else pa.RecordBatch.from_pylist([], schema=schema.MEASURES)
    lang_reason, lang_score = _language_reasons(languages, recipe)
    rule_reason, failed, value, bound = apply_rules(batch, rules)
    by_language = lang_reason.is_valid()
    reason = pc.coalesce(lang_reason, pc.cast(rule_reason, pa.string()))
    stage = pc.if_else(
        by_language, "language", pc.if_else(rule_reason.is_valid(), "filter", pa.scalar(None, pa.string()))
    )
    count = len(doc_ids)
    table = pa.table(
        {
            "doc_id": doc_ids,
            "stage": stage,
            "reason": reason,
            "failed_rules": failed,
            "value": pc.if_else(by_language, lang_score, value),
            "bound": pc.if_else(by_language, pa.scalar(recipe.language.min_score, pa.float64()), bound),
            "keeper": pa.nulls(count, schema.DOC_ID),
            "similarity": pa.nulls(count, pa.float64()),
            "cluster": pa.nulls(count, schema.DOC_ID),
            "benchmark": pa.nulls(count, pa.string()),
        },
        schema=schema.DECISIONS,
    )
    sizes, words = (measured.column(name).to_numpy() for name in ("text_bytes", "word_total"))
    tallies = tally_rows(stage, reason, sizes, words, ("language", "filter"))
    counters = {name: count for tally in tallies for name, count in tally.counters().items()}
    reasons = {name: counts for tally in tallies for name, counts in tally.reason_counts().items()}
    return store.commit(
        unit,
        {"decisions": store.draft_table(table)},
        counters=counters,
        reasons=reasons,
        facts={"locator": documents.facts["locator"]},
    )


def _language_reasons(languages: pa.Table, recipe: Recipe) -> tuple[pa.Array, pa.Array]:
    name = languages.column("language").combine_chunks()
    score_e4 = languages.column("language_score_e4").combine_chunks()
    wanted = pc.fill_null(pc.is_in(name, pa.array(recipe.language.keep, pa.string())), False)
    low = pc.less(score_e4, pa.scalar(round(recipe.language.min_score * 10_000), pa.int32()))
    nothing = pa.scalar(None, pa.string())
    reason = pc.if_else(wanted, pc.if_else(low, pa.scalar("uncertain_language"), nothing), pa.scalar("other_language"))
    return reason, pc.divide(pc.cast(score_e4, pa.float64()), 10_000.0)


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
