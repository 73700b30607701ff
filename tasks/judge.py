"""Judge: narrow attribute shards beside the documents, a group each, same rows, same order; nothing is decided here.

Each group has its own unit key, so another language model recomputes the languages alone. One pass over the text serves
all groups that are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path

import pyarrow as pa

from corpusmill import schema
from corpusmill.config import Recipe
from corpusmill.kernels import digests, language, measures, minhash
from corpusmill.models import model_digest, model_path
from corpusmill.store import Receipt, Store, Unit
from tasks.units import Done, content_of, libraries

VERSIONS: dict[str, int] = {"language": 1, "measures": 1, "digests": 1}
LIBRARIES = {"language": ("fasttext-community",), "measures": (), "digests": ()}
BATCH_ROWS = 1024

Judge = Callable[[pa.LargeStringArray], pa.RecordBatch]


def judge_shard(documents: Receipt, recipe: Recipe, store: Store) -> dict[str, Done]:
    """The attribute groups of one documents shard, by name. Safe to run twice: finished groups are returned."""
    units = {group: group_unit(group, documents, recipe) for group in VERSIONS}
    found = {group: receipt for group, unit in units.items() if (receipt := store.receipt(unit))}
    missing = [group for group in units if group not in found]
    done = {group: Done(receipt, reused=True) for group, receipt in found.items()}
    if not missing:
        return done
    judges = {group: _judge(group, recipe) for group in missing}
    words = 0
    with ExitStack() as stack:
        writers = {group: stack.enter_context(store.table_writer(_schema(group, recipe))) for group in missing}
        for batch in store.batches(documents.outputs["documents"], columns=["text"], batch_rows=BATCH_ROWS):
            text = batch.column("text")
            for group in missing:
                made = judges[group](text)
                writers[group].write(made)
                if group == "measures":
                    words += sum(made.column("word_total").to_pylist())
    for group in missing:
        counters = {"docs": documents.outputs["documents"].rows or 0}
        if group == "measures":
            counters["words"] = words
        receipt = store.commit(
            units[group],
            {group: writers[group].draft},
            counters=counters,
            facts={"locator": documents.facts["locator"]},
        )
        done[group] = Done(receipt, reused=False)
    return done


def group_unit(group: str, documents: Receipt, recipe: Recipe) -> Unit:
    """The unit of one attribute group of one shard."""
    config: Mapping[str, object] = {"group": group}
    models: Mapping[str, str] = {}
    if group == "language":
        models = {"language": language_digest(recipe.language.model)}
    elif group == "digests":
        dedup = recipe.deduplicate
        config = {"group": group, "ngram": dedup.ngram, "num_perm": dedup.num_perm, "seed": recipe.seed}
    return Unit(
        "judge", VERSIONS[group], config, (content_of(documents, "documents"),), models, libraries(LIBRARIES[group])
    )


@lru_cache(maxsize=8)
def language_digest(setting: str) -> str:
    """sha256 of the language model file that a setting names."""
    return model_digest(model_path(setting))


@lru_cache(maxsize=2)
def _language_model(path: Path) -> language.LanguageModel:
    return language.LanguageModel(path)


def _schema(group: str, recipe: Recipe) -> pa.Schema:
    if group == "digests":
        return schema.signature_group(recipe.deduplicate.num_perm)
    return {"language": schema.LANGUAGE, "measures": schema.MEASURES}[group]


def _judge(group: str, recipe: Recipe) -> Judge:
    if group == "language":
        return _language_model(model_path(recipe.language.model)).identify
    if group == "measures":
        return measures.measures
    dedup = recipe.deduplicate

    def fingerprints(text: pa.LargeStringArray) -> pa.RecordBatch:
        made = minhash.signatures(text, ngram=dedup.ngram, num_perm=dedup.num_perm, seed=recipe.seed)
        packed = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(4 * dedup.num_perm), len(text), [None, pa.py_buffer(made.signature.astype("<u4").tobytes())]
        )
        return pa.record_batch(
            [digests.text_digest(text), pa.array(made.shingles, pa.int32()), packed],
            schema=schema.signature_group(dedup.num_perm),
        )

    return fingerprints
