"""Decontaminate: documents that hold a benchmark item are dropped, freed of it, or named.

Before the screen runs, items are planted into made-up text; a screen that misses one stops the build.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

import numpy as np
import pyarrow as pa

from corpusmill import benchmarks, schema
from corpusmill.canonical import digest_of
from corpusmill.config import Decontaminate, Recipe
from corpusmill.errors import CheckFailed
from corpusmill.kernels.edits import spans as edits
from corpusmill.kernels.screen import contexts, screen
from corpusmill.kernels.screen.planted import planted
from corpusmill.store import Draft, Output, Receipt, Store, Unit
from tasks import stages, views
from tasks.filter import tally_rows
from tasks.units import Done, content_of, once

BATCH_ROWS = 1024
KIND = "benchmark"
"""Kind of the spans that are cut."""

HITS = pa.schema([field for field in schema.CONTAMINATION if field.name != "locator"])
"""Every document and item of a shard that share an n-gram."""

CUTS = pa.schema([pa.field("spans", schema.SPANS, nullable=False)])


@lru_cache(maxsize=2)
def index_of(config: Decontaminate, exempt: frozenset[str] = frozenset()) -> screen.Index:
    """The index of a recipe's benchmarks, made once a process."""
    return screen.build_index(
        [
            screen.Source(
                wanted.name, benchmarks.items(wanted, config), wanted.ngram, wanted.exact_words, wanted.min_share
            )
            for wanted in benchmarks.benchmarks_of(config)
        ],
        exempt,
    )


def _config(recipe: Recipe) -> dict[str, object]:
    config = recipe.decontaminate
    return {"action": config.action, "contexts": config.exempt_contexts, "benchmarks": benchmarks.identities(config)}


def self_test(recipe: Recipe, store: Store) -> Done:
    """Plant items of the recipe's own benchmarks in made-up text and look for them (output `items`: how each item is
    screened).

    Raises:
        CheckFailed: a planted item is not found, or a look-alike is; nothing is screened.
    """
    unit = stages.DECONTAMINATE.unit({**_config(recipe), "planted": recipe.seed})

    def work() -> Receipt:
        index = index_of(recipe.decontaminate)
        proof = gate(index, recipe)
        screened = Counter("whole" if part.whole else "ngrams" for part in index.parts for _ in part.items)
        too_short = Counter(item.benchmark for item in index.too_short)
        counts = {"items": sum(screened.values()), "whole": screened["whole"], "too_short": dict(too_short)}
        return store.commit(unit, {"items": store.draft_table(_items(index))}, facts={**counts, **proof})

    return once(store, unit, work)


def gate(index: screen.Index, recipe: Recipe) -> dict[str, object]:
    """What planted items and look-alikes give, in all and for each length of n-gram in use.

    Raises:
        CheckFailed: one is missed, or a look-alike is found.
    """
    results = planted(index, seed=recipe.seed)
    totals = {
        name: sum(getattr(result, name) for result in results)
        for name in ("planted", "found", "lookalikes", "false_hits")
    }
    if totals["found"] != totals["planted"] or totals["false_hits"]:
        missed = [f"{item.benchmark}/{item.id} (n = {r.n})" for r in results for item in r.missed]
        raise CheckFailed(
            f"the benchmark screen found {totals['found']} of {totals['planted']} planted items"
            f" and {totals['false_hits']} look-alikes",
            "expected all planted items and no look-alike; nothing was screened"
            + (f"; missed: {', '.join(missed[:5])}" if missed else ""),
            "This is an error in corpusmill: please report it with the recipe.",
        )
    by_length = [
        {
            "words": result.n,
            "whole": result.whole,
            "planted": result.planted,
            "found": result.found,
            "lookalikes": result.lookalikes,
            "false_hits": result.false_hits,
        }
        for result in results
    ]
    return {**totals, "by_length": by_length}


def _items(index: screen.Index) -> pa.Table:
    rows: list[tuple[str, str, str, int | None, int]] = []
    for part in index.parts:
        how, words = ("whole", None) if part.whole else ("ngrams", part.n)
        rows += [
            (item.benchmark, item.id, how, words, count) for item, count in zip(part.items, part.ngrams, strict=True)
        ]
    rows += [(item.benchmark, item.id, "too_short", None, 0) for item in index.too_short]
    columns = zip(*rows, strict=True) if rows else [()] * len(schema.BENCHMARK_ITEMS)
    return pa.Table.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, schema.BENCHMARK_ITEMS, strict=True)],
        schema=schema.BENCHMARK_ITEMS,
    )


def screen_shard(
    documents: Receipt,
    groups: dict[str, Receipt],
    filtered: Receipt,
    recipe: Recipe,
    store: Store,
    exempt: Output | None = None,
) -> Done:
    """Decisions of one shard after the screen, and its hits (outputs `decisions`, `hits`).

    With action `cut` there is an output `cuts`, spans of the stored text in the rows of the documents; with exemption
    on an output `contexts`, until the exempted n-grams are known.

    Args:
        exempt: table of the n-grams that are no hits (tasks/decontaminate/exemption.py).
    """
    unit = stages.DECONTAMINATE.unit(
        _config(recipe),
        (
            content_of(documents, "documents"),
            *(layer.content or layer.digest for layer in views.layers("clean", groups)),
            content_of(filtered, "decisions"),
            *([exempt.identity] if exempt else []),
        ),
    )
    return once(store, unit, lambda: _screen(unit, documents, groups, filtered, recipe, store, exempt))


def _screen(
    unit: Unit,
    documents: Receipt,
    groups: dict[str, Receipt],
    filtered: Receipt,
    recipe: Recipe,
    store: Store,
    exempt: Output | None,
) -> Receipt:
    config = recipe.decontaminate
    known = store.table(exempt).column("ngram").to_pylist() if exempt else []
    index = index_of(config, frozenset(known))
    decisions = store.table(filtered.outputs["decisions"]).combine_chunks()
    alive = decisions.column("stage").is_null().to_numpy()
    tables, around, begin = [screen.HITS.empty_table()], [contexts.CONTEXTS.empty_table()], 0
    clean = views.layers("clean", groups)
    for batch in views.batches(documents, clean, store, columns=["text"], batch_rows=BATCH_ROWS):
        rows = np.flatnonzero(alive[begin : begin + batch.num_rows])
        text = batch.column("text").take(pa.array(rows))
        hits = screen.screen(text, index)
        where = begin + rows[hits.column("row").to_numpy()]
        tables.append(hits.set_column(0, screen.HITS.field("row"), pa.array(where, pa.int64())))
        if config.exempt_contexts and not exempt:
            around.append(contexts.contexts(text, index))
        begin += batch.num_rows
    found = _as_stored(pa.concat_tables(tables), views.overlay(clean, store))
    decisions = _named(decisions, found, config)
    urls = store.table(documents.outputs["documents"], columns=["url"]).column("url")
    row = found.column("row")
    placed = [decisions.column("doc_id").take(row), urls.take(row), *found.columns[1:]]
    drafts: dict[str, Draft] = {
        "decisions": store.draft_table(decisions),
        "hits": store.draft_table(pa.Table.from_arrays(placed, schema=HITS)),
    }
    if config.action == "cut":
        drafts["cuts"] = store.draft_table(pa.table([_cuts(found, len(decisions))], schema=CUTS))
    if config.exempt_contexts and not exempt:
        drafts["contexts"] = store.draft_table(pa.concat_tables(around))
    measured = store.table(groups["measures"].outputs["measures"], columns=["text_bytes", "word_total"])
    sizes, words = (measured.column(name).to_numpy() for name in ("text_bytes", "word_total"))
    here = np.flatnonzero(alive)
    stage, reason = (decisions.column(name).combine_chunks().take(pa.array(here)) for name in ("stage", "reason"))
    (tally,) = tally_rows(stage, reason, sizes[here], words[here], ("decontaminate",))
    return store.commit(
        unit,
        drafts,
        counters=tally.counters(),
        reasons=tally.reason_counts(),
        facts={"locator": documents.facts["locator"], "benchmarks": digest_of(_config(recipe))},
    )


def _named(decisions: pa.Table, found: pa.Table, config: Decontaminate) -> pa.Table:
    """Decisions with the first hit of each document; they end it where the recipe says so."""
    first: dict[int, str] = {}
    for row, benchmark, item in zip(
        *(found.column(name).to_pylist() for name in ("row", "benchmark", "item")), strict=True
    ):
        first.setdefault(row, f"{benchmark}/{item}")
    if not first:
        return decisions
    rows = decisions.to_pylist()
    ends = {"stage": "decontaminate", "reason": "contaminated"} if config.action == "drop" else {}
    for row, name in first.items():
        rows[row].update(ends, benchmark=name)
    return pa.Table.from_pylist(rows, schema=decisions.schema)


def _as_stored(hits: pa.Table, clean: views.Overlay) -> pa.Table:
    """Hits with places in the stored text instead of the view that was screened."""
    if clean.spans is None or not hits.num_rows:
        return hits
    rows = hits.to_pylist()
    for hit in rows:
        removed = [(span["start"], span["end"]) for span in clean.spans[hit["row"]].as_py()]
        hit["offset"], hit["stop"] = edits.stored(hit["offset"], hit["stop"], removed)
        for span in hit["spans"]:
            span["start"], span["end"] = edits.stored(span["start"], span["end"], removed)
    return pa.Table.from_pylist(rows, schema=hits.schema)


def _cuts(found: pa.Table, rows: int) -> pa.ListArray:
    """Spans of all items found, in the rows of the documents: sorted, what overlaps united."""
    by_row: dict[int, list[tuple[int, int]]] = {}
    for row, spans in zip(found.column("row").to_pylist(), found.column("spans").to_pylist(), strict=True):
        by_row.setdefault(row, []).extend((span["start"], span["end"]) for span in spans)
    offsets = np.zeros(rows + 1, np.int64)
    united: list[tuple[int, int]] = []
    for row in sorted(by_row):
        low = len(united)
        for start, end in sorted(by_row[row]):
            if len(united) > low and start <= united[-1][1]:
                united[-1] = united[-1][0], max(united[-1][1], end)
            else:
                united.append((start, end))
        offsets[row + 1] = len(united) - low
    low_high = np.array(united, np.int64).reshape(-1, 2)
    return edits.spans(np.cumsum(offsets), low_high[:, 0], low_high[:, 1], pa.array([KIND] * len(united), pa.string()))
