"""Compare two recipes' languages and rules on the documents of one dataset, document by document.

Both read the same stored texts. Attribute groups that are there are read; those that are missing are computed once, as
units of their own, so the next build or comparison finds them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from corpusmill import languages, rulebook
from corpusmill.config import Recipe, language_codes
from corpusmill.dataset.lineage import files_of
from corpusmill.dataset.manifest import Manifest
from corpusmill.measured import measured_batch
from corpusmill.store import Output, Receipt, Store
from tasks.filter import decide_rows
from tasks.judge.judge import judge_shard
from tasks.stages import REASONS
from tasks.units import Job, Runner, store_at
from tasks.views import layers, overlay

SIDES = ("both", "only_a", "only_b", "neither")


def compare(a: Recipe, b: Recipe, store: Store, manifest: Manifest, samples: int, run: Runner) -> dict[str, Any]:
    """How two recipes decide about the documents of a dataset at stages `language` and `filter`.

    Returns:
        {"kept": {"both" | "only_a" | "only_b" | "neither": {"docs", "words"}}, "reasons": [{"a", "b", "docs"}] (most
        first, null = kept), "samples": {"only_a", "only_b": [{"doc_id", "url", "reason", "text"}]}}

    Raises:
        NotFound, UsageError: rules or models that are missing or do not fit their recipe.
    """
    for recipe in (a, b):
        for place, codes in language_codes(recipe).items():
            languages.check(codes, recipe.language.model, ".".join(place))
        rulebook.check(recipe, REASONS)
    files = files_of(store, manifest)
    done = run("compare", compare_file, [Job(store.uri, a, (b, place, objects, samples)) for place, objects in files])
    kept = {side: {"docs": 0, "words": 0} for side in SIDES}
    pairs: Counter[tuple[str | None, str | None]] = Counter()
    shown: dict[str, list[dict[str, Any]]] = {"only_a": [], "only_b": []}
    for file in done:
        for side in SIDES:
            for unit in kept[side]:
                kept[side][unit] += file["kept"][side][unit]
        pairs.update({(x, y): count for x, y, count in file["pairs"]})
        for side, found in shown.items():
            found += file["samples"][side]
    order = sorted(pairs.items(), key=lambda item: (-item[1], item[0][0] or "", item[0][1] or ""))
    return {
        "kept": kept,
        "reasons": [{"a": x, "b": y, "docs": count} for (x, y), count in order],
        "samples": {side: sorted(found, key=lambda s: str(s["doc_id"]))[:samples] for side, found in shown.items()},
    }


def compare_file(job: Job) -> dict[str, Any]:
    """Both decisions about one file's documents."""
    store = store_at(job.uri)
    b, place, objects, samples = job.item
    documents = receipt_of(place, objects["documents"])
    decided = [_decided(documents, recipe, store) for recipe in (job.recipe, b)]
    (ends_a, words, _), (ends_b, _, _) = decided
    alive_a, alive_b = (np.array([end is None for end in ends]) for ends in (ends_a, ends_b))
    masks = {
        "both": alive_a & alive_b,
        "only_a": alive_a & ~alive_b,
        "only_b": ~alive_a & alive_b,
        "neither": ~alive_a & ~alive_b,
    }
    pairs = Counter(zip(ends_a, ends_b, strict=True))
    return {
        "kept": {side: {"docs": int(here.sum()), "words": int(words[here].sum())} for side, here in masks.items()},
        "pairs": [(x, y, count) for (x, y), count in pairs.items()],
        "samples": {
            "only_a": _samples(documents, masks["only_a"], ends_b, decided[0][2], samples, store),
            "only_b": _samples(documents, masks["only_b"], ends_a, decided[1][2], samples, store),
        },
    }


def receipt_of(place: str, documents: Output) -> Receipt:
    """What judges read of the receipt that made a documents shard."""
    locator = place.partition("/")[2]
    return Receipt("extract", "", {"documents": documents}, {}, {}, {}, {"locator": locator})


def _decided(
    documents: Receipt, recipe: Recipe, store: Store
) -> tuple[list[str | None], np.ndarray, Mapping[str, Receipt]]:
    groups = {name: done.receipt for name, done in judge_shard(documents, recipe, store, without=("digests",)).items()}
    tables = {name: store.table(receipt.outputs[name]) for name, receipt in groups.items()}
    batch = measured_batch(tables)
    language = tables["language"].column("language").combine_chunks()
    found = decide_rows(batch, language, rulebook.rules_of(recipe.filter.rules), recipe)
    return found.reason.to_pylist(), batch.column("word_total").to_numpy(), groups


def _samples(
    documents: Receipt,
    here: np.ndarray,
    ends: Sequence[str | None],
    groups: Mapping[str, Receipt],
    number: int,
    store: Store,
) -> list[dict[str, Any]]:
    """The documents with the smallest ids that one side keeps alone, with why the other ends them."""
    if not number or not here.any():
        return []
    table = store.table(documents.outputs["documents"], columns=["doc_id", "url", "text"]).combine_chunks()
    ids = table.column("doc_id").to_pylist()
    rows = sorted(np.flatnonzero(here).tolist(), key=lambda row: ids[row])[:number]
    picked = table.take(pa.array(rows, pa.int64()))
    over = overlay(layers("final", groups), store)
    texts = over.take(picked.column("text").combine_chunks(), pa.array(rows, pa.int64())).to_pylist()
    return [
        {"doc_id": ids[row].hex(), "url": picked.column("url")[i].as_py(), "reason": ends[row], "text": texts[i][:2000]}
        for i, row in enumerate(rows)
    ]
