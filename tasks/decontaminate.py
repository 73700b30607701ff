"""Decontaminate: documents that share a word n-gram with a benchmark item end here, named with benchmark and item.

Before the screen runs, items are planted into made-up text; a screen that misses one stops the build.
"""

from __future__ import annotations

import gzip
import json
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from corpusmill.canonical import digest_of, sha256
from corpusmill.config import Benchmark, Decontaminate, Recipe
from corpusmill.errors import CheckFailed, Unavailable, UsageError
from corpusmill.kernels import ngrams
from corpusmill.store import Receipt, Store, Unit
from tasks import views
from tasks.filter import tally_rows
from tasks.units import Done, content_of, once

VERSION = 1
BATCH_ROWS = 1024

HITS = pa.schema([pa.field("doc_id", pa.binary(16), nullable=False), *list(ngrams.HITS)[1:]])
"""Every document and item that share an n-gram: the kernel's hits, with doc_id in place of the row."""


def _bytes_of(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if path.suffix == ".gz" else data
    except (OSError, EOFError) as err:
        raise Unavailable(
            f"benchmark file {path} cannot be read",
            str(err),
            "Check decontaminate.root and the file's name, or leave the benchmark out.",
        ) from err


@lru_cache(maxsize=2)
def benchmark_identities(config: Decontaminate) -> tuple[dict[str, object], ...]:
    """What a recipe screens against: name, fields and sha256 of each file's (decompressed) bytes."""
    return tuple(
        {"name": b.name, "fields": list(b.fields), "sha256": sha256(_bytes_of(Path(config.root) / b.file))}
        for b in config.benchmark
    )


def _items(benchmark: Benchmark, root: str) -> list[tuple[str, str, str]]:
    """(benchmark, item id, text) of each line; the text is its fields, one a line."""
    path = Path(root) / benchmark.file
    items = []
    for number, line in enumerate(_bytes_of(path).split(b"\n"), 1):  # never splitlines: items hold U+2028
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            fields = [row[name] for name in benchmark.fields]
        except (ValueError, KeyError, TypeError) as err:
            raise UsageError(
                f"{path} line {number}: not an item of benchmark {benchmark.name!r}",
                f"expected a JSON object with {', '.join(benchmark.fields)}; {type(err).__name__}: {err}",
                "Check decontaminate.benchmark.fields.",
            ) from err
        text = "\n".join(field if isinstance(field, str) else json.dumps(field, ensure_ascii=False) for field in fields)
        items.append((benchmark.name, str(row.get("id", number)), text))
    return items


@lru_cache(maxsize=2)
def index_of(config: Decontaminate) -> ngrams.Index:
    """The n-gram index of a recipe's benchmarks, made once a process."""
    return ngrams.build_index([item for b in config.benchmark for item in _items(b, config.root)], n=config.ngram)


def _config(recipe: Recipe) -> dict[str, object]:
    return {"ngram": recipe.decontaminate.ngram, "benchmarks": benchmark_identities(recipe.decontaminate)}


def self_test(recipe: Recipe, store: Store) -> Done:
    """Plant items of the recipe's own benchmarks in made-up text and look for them.

    Raises:
        CheckFailed: a planted item is not found, or a look-alike is; nothing is screened.
    """
    unit = Unit("decontaminate", VERSION, {**_config(recipe), "planted": recipe.seed}, ())

    def work() -> Receipt:
        facts = _self_test_facts(recipe)
        if facts["found"] != facts["planted"] or facts["false_hits"]:
            raise CheckFailed(
                f"the benchmark screen found {facts['found']} of {facts['planted']} planted items"
                f" and {facts['false_hits']} look-alikes",
                "expected all of the first and none of the second; nothing was screened",
                "This is our fault: please report it with the recipe.",
            )
        return store.commit(unit, {}, facts=facts)

    return once(store, unit, work)


def _self_test_facts(recipe: Recipe) -> dict[str, object]:
    """What the planted test gives."""
    index = index_of(recipe.decontaminate)
    result = ngrams.planted(index, seed=recipe.seed)
    too_short: dict[str, int] = {}
    for item in index.too_short:
        too_short[item.benchmark] = too_short.get(item.benchmark, 0) + 1
    return {
        "items": len(index.items),
        "too_short": too_short,
        "planted": result.planted,
        "found": result.found,
        "lookalikes": result.lookalikes,
        "false_hits": result.false_hits,
    }


def screen_shard(
    documents: Receipt, groups: dict[str, Receipt], filtered: Receipt, recipe: Recipe, store: Store
) -> Done:
    """Decisions of one shard after the screen, and its hits (outputs `decisions`, `hits`)."""
    unit = Unit(
        "decontaminate",
        VERSION,
        _config(recipe),
        (
            content_of(documents, "documents"),
            *(layer.content or layer.digest for layer in views.layers("clean", groups)),
            content_of(filtered, "decisions"),
        ),
    )
    return once(store, unit, lambda: _screen(unit, documents, groups, filtered, recipe, store))


def _screen(
    unit: Unit, documents: Receipt, groups: dict[str, Receipt], filtered: Receipt, recipe: Recipe, store: Store
) -> Receipt:
    index = index_of(recipe.decontaminate)
    decisions = store.table(filtered.outputs["decisions"]).combine_chunks()
    alive = decisions.column("stage").is_null().to_numpy()
    tables, begin = [], 0
    clean = views.layers("clean", groups)
    for batch in views.batches(documents, clean, store, columns=["text"], batch_rows=BATCH_ROWS):
        rows = np.flatnonzero(alive[begin : begin + batch.num_rows])
        hits = ngrams.screen(batch.column("text").take(pa.array(rows)), index)
        where = begin + rows[hits.column("row").to_numpy()]
        tables.append(hits.set_column(0, ngrams.HITS.field("row"), pa.array(where, pa.int64())))
        begin += batch.num_rows
    hits = pa.concat_tables([ngrams.HITS.empty_table(), *tables])
    first: dict[int, str] = {}
    for row, benchmark, item in zip(
        *(hits.column(name).to_pylist() for name in ("row", "benchmark", "item")), strict=True
    ):
        first.setdefault(row, f"{benchmark}/{item}")
    rows = decisions.to_pylist() if first else []
    for row, name in first.items():
        rows[row].update(stage="decontaminate", reason="contaminated", benchmark=name)
    if first:
        decisions = pa.Table.from_pylist(rows, schema=decisions.schema)
    doc_ids = decisions.column("doc_id").take(hits.column("row"))
    measured = store.table(groups["measures"].outputs["measures"], columns=["text_bytes", "word_total"])
    sizes, words = (measured.column(name).to_numpy() for name in ("text_bytes", "word_total"))
    here = np.flatnonzero(alive)
    stage, reason = (decisions.column(name).combine_chunks().take(pa.array(here)) for name in ("stage", "reason"))
    (tally,) = tally_rows(stage, reason, sizes[here], words[here], ("decontaminate",))
    return store.commit(
        unit,
        {
            "decisions": store.draft_table(decisions),
            "hits": store.draft_table(hits.set_column(0, HITS.field("doc_id"), doc_ids)),
        },
        counters=tally.counters(),
        reasons=tally.reason_counts(),
        facts={"locator": documents.facts["locator"], "benchmarks": digest_of(_config(recipe))},
    )
