"""Publish: one manifest that names everything, one entry in the history, one dataset card.

The manifest's digest is the dataset's identity, so nothing of it depends on when, where or in what order the units ran.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusmill import benchmarks, schema
from corpusmill.canonical import canonical_json, content_digest, digest_of, sha256
from corpusmill.config import Recipe
from corpusmill.dataset.card import store_card
from corpusmill.dataset.funnel import FunnelRow
from corpusmill.dataset.manifest import (
    FORMAT,
    Manifest,
    PackedShard,
    Partition,
    Proofs,
    RuleFile,
    Vocabulary,
)
from corpusmill.dataset.manifest import publish as publish_manifest
from corpusmill.kernels.rules.rules import RuleSet
from corpusmill.rulebook import rules_of, rules_to_json
from corpusmill.store import Output, Receipt, Store
from corpusmill.tokens.row_group import RowGroup
from tasks import decide, dedup, extract, stages
from tasks.acquire import notices
from tasks.funnel import limits
from tasks.funnel.columns import columns_of
from tasks.funnel.counts import counts_of
from tasks.funnel.tally import check_funnel, funnel_row
from tasks.judge import groups
from tasks.shards import Shard
from tasks.units import Done, Step, once
from tasks.versions import versions


@dataclass(frozen=True)
class Parts:
    """What a build made: `trail`, all units whose results stay, in the order of the lineage, and its parts by name."""

    trail: Sequence[Step]
    planted: Receipt
    sources: Sequence[Receipt]
    shards: Sequence[Shard]
    exact: Receipt
    near: Receipt
    heldout: Receipt
    tokenizer: Receipt
    packs: Sequence[Receipt]
    leaks: Receipt
    earlier: dedup.Earlier | None
    repeated: dedup.Found
    exempted: Sequence[Receipt] = ()
    """Of the count of common n-grams, where the recipe exempts them."""


def publish(recipe: Recipe, parts: Parts, store: Store) -> tuple[str, Manifest]:
    """Assemble, check and publish the manifest.

    Returns:
        its digest and itself. Publishing the same manifest again changes nothing.

    Raises:
        Incomplete: nothing was kept, or a source has too many faults (`tasks/funnel/limits.py`).
        CheckFailed: documents in are not documents out plus reasons at some stage; what is held out is trained on.
    """
    dedup.check_leaks(parts.leaks, store)
    manifest = assemble(recipe, parts, store)
    check_funnel(manifest.funnel)
    limits.check(recipe, [(shard.source, shard.documents) for shard in parts.shards], manifest.funnel, store)
    digest = publish_manifest(store, manifest, why="build")
    if note := store_card(store, manifest, digest):
        notices.say(note)
    return digest, manifest


def assemble(recipe: Recipe, parts: Parts, store: Store) -> Manifest:
    """The manifest of these receipts; also stores the tables it names."""
    rules = rules_of(recipe.filter.rules)
    partitions = _partitions(parts.packs, recipe)
    tables = {**_tables(parts, rules, store).receipt.outputs, "benchmark_items": parts.planted.outputs["items"]}
    for receipt in parts.exempted:
        tables["exempted_ngrams"] = receipt.outputs["exempt"]
    return Manifest(
        format=FORMAT,
        name=recipe.name,
        seed=recipe.seed,
        recipe=recipe.what(),
        rules=RuleFile(rules.name, rules.version, rules.digest),
        urls=extract.url_file(recipe),
        stages=versions(recipe, recipe.source, parts.trail, stages.PUBLISH),
        models={**groups.model_digests(recipe), **extract.model_digests(recipe)},
        benchmarks=benchmarks.facts(recipe.decontaminate),
        tokenizer=_vocabulary(parts.tokenizer),
        partitions=partitions,
        funnel=_funnel(parts),
        proofs=Proofs(_screen_proof(parts), _facts(parts.near)["proof"]),
        deduplicate=dedup.searched(parts.near, parts.repeated, parts.heldout, parts.leaks),
        index=dedup.index_of(parts.near, parts.shards, parts.earlier, recipe),
        inputs=tuple(file for receipt in parts.sources for file in extract.inputs_of(receipt)),
        tables=dict(sorted(tables.items())),
        parents=(parts.earlier.manifest,) if parts.earlier else (),
        content=digest_of([[name, [s.tokens.content for s in v.shards]] for name, v in sorted(partitions.items())]),
    )


def _tables(parts: Parts, rules: RuleSet, store: Store) -> Done:
    lineage, said = _lineage(parts.trail), canonical_json(rules_to_json(rules))
    reasons = _reasons(parts.trail)
    made = [(shard.source, shard.documents) for shard in parts.shards]
    columns, counts = columns_of(made), counts_of(made)
    config = {"rejects": decide.REJECTS_PER_REASON, "rules": sha256(said), "reasons": content_digest(reasons)}
    config |= {"columns": content_digest(columns), "counts": content_digest(counts)}
    unit = stages.PUBLISH.unit(config, (content_digest(lineage),))

    def work() -> Receipt:
        tables = {
            "columns": store.draft_table(columns),
            "contamination": store.draft_table(_contamination(parts.shards, store)),
            "counts": store.draft_table(counts),
            "lineage": store.draft_table(lineage),
            "reasons": store.draft_table(reasons),
            "rejects": store.draft_table(_with_keepers(_rejects(parts.shards, store), parts, store)),
            "rules": store.draft_bytes(said),
        }
        return store.commit(unit, tables)

    return once(store, unit, work)


def _vocabulary(tokenizer: Receipt) -> Vocabulary:
    facts = _facts(tokenizer)
    return Vocabulary(tokenizer.outputs["tokenizer"], facts["vocab_size"], facts["eos"], facts["eos_id"])


def _partitions(packs: Sequence[Receipt], recipe: Recipe) -> dict[str, Partition]:
    found: dict[str, list[tuple[Any, PackedShard]]] = {}
    for receipt in packs:
        for name, facts in sorted(_facts(receipt)["partitions"].items()):
            outputs = {kind: receipt.outputs[f"{name}.{kind}"] for kind in ("tokens", "rows", "docs", "pieces")}
            payload = tuple(RowGroup(**group) for group in facts["payload"])
            shard = PackedShard(**outputs, sequences=facts["sequences"], payload=payload)
            found.setdefault(name, []).append((facts, shard))
    return {name: _partition(shards, recipe.pack.seq_len) for name, shards in found.items()}


def _partition(shards: Sequence[tuple[Any, PackedShard]], seq_len: int) -> Partition:
    counts = ("documents", "tokens", "text_bytes", "sequences", "padding")
    sums = {count: sum(facts[count] for facts, _ in shards) for count in counts}
    token_bytes = shards[0][0]["token_bytes"]
    return Partition(seq_len=seq_len, token_bytes=token_bytes, **sums, shards=tuple(shard for _, shard in shards))


def _funnel(parts: Parts) -> tuple[FunnelRow, ...]:
    made: dict[str, list[Receipt]] = {}
    for step in parts.trail:
        made.setdefault(step.stage, []).append(step.receipt)
    rows = (funnel_row(row, made[stage.name]) for stage in stages.STAGES for row in stage.rows)
    # Words are first counted by the judge, on what extract wrote.
    words = sum(shard.groups["measures"].counters["words"] for shard in parts.shards)
    return tuple(replace(row, words_out=words) if row.stage == stages.EXTRACT.name else row for row in rows)


def _lineage(trail: Sequence[Step]) -> pa.Table:
    rows: list[dict[str, object]] = []
    for stage, place, receipt in trail:
        for kind, output in sorted(receipt.outputs.items()):
            rows.append({"stage": stage, "locator": place, "kind": kind, "unit": receipt.key, **output.to_json()})
    return pa.Table.from_pylist(rows, schema=schema.LINEAGE)


def _reasons(trail: Sequence[Step]) -> pa.Table:
    """Each reason of the funnel: its row, its class, what it says."""
    names = sorted({name for step in trail for name in step.receipt.reasons})
    rows = [{"reason": name, **asdict(stages.reason_of(name))} for name in names]
    return pa.Table.from_pylist(rows, schema=schema.REASONS)


def _screen_proof(parts: Parts) -> dict[str, Any]:
    proof = _facts(parts.planted)
    for receipt in parts.exempted:
        proof["exempted"] = dict(receipt.facts)
    return proof


def _facts(receipt: Receipt) -> dict[str, Any]:
    return dict(receipt.facts)


def _contamination(shards: Sequence[Shard], store: Store) -> pa.Table:
    """Every document and benchmark item that share an n-gram, over all shards."""
    tables = []
    for shard in shards:
        hits = store.table(shard.screened.outputs["hits"])
        places = shard.places_of(hits.column("doc_id"), store)
        tables.append(hits.add_column(2, schema.CONTAMINATION.field("locator"), places))
    return pa.concat_tables(tables)


def _rejects(shards: Sequence[Shard], store: Store) -> pa.Table:
    """The sample of every reason over all shards: of each, the documents with the smallest seeded hash."""
    outputs: list[Output] = [shard.decided.outputs["rejects"] for shard in shards]
    table = pa.concat_tables([store.table(output) for output in outputs])
    table = table.sort_by(
        [("stage", "ascending"), ("reason", "ascending"), ("order", "ascending"), ("locator", "ascending")]
    )
    seen: dict[tuple[str, str], int] = {}
    keep = []
    for i, key in enumerate(zip(table.column("stage").to_pylist(), table.column("reason").to_pylist(), strict=True)):
        seen[key] = seen.get(key, 0) + 1
        if seen[key] <= decide.REJECTS_PER_REASON:
            keep.append(i)
    return table.take(pa.array(keep, pa.int64()))


def _with_keepers(rejects: pa.Table, parts: Parts, store: Store) -> pa.Table:
    """The sample with URL and text of each duplicate's keeper, so that pairs can be compared."""
    keepers = pc.unique(rejects.column("keeper").combine_chunks().drop_null())
    places: dict[bytes, tuple[int, int]] = {}
    for receipt in (parts.exact, parts.near):
        found = store.table(receipt.outputs["found"], columns=["shard", "row", "doc_id"])
        found = found.filter(pc.is_in(found.column("doc_id"), keepers))
        places |= {row["doc_id"]: (row["shard"], row["row"]) for row in found.to_pylist()}
    shown: dict[tuple[int, int], tuple[str | None, str]] = {}
    for number in sorted({shard for shard, _ in places.values()}):
        rows = np.array(sorted({row for shard, row in places.values() if shard == number}), np.int64)
        shard = parts.shards[number]
        urls = store.table(shard.documents.outputs["documents"], columns=["url"]).column("url").take(rows).to_pylist()
        texts = pc.utf8_slice_codeunits(shard.texts(rows, store, view="final"), 0, decide.TEXT_CHARS).to_pylist()
        shown |= {(number, row): pair for row, pair in zip(rows.tolist(), zip(urls, texts, strict=True), strict=True)}
    pairs = [shown.get(places.get(keeper, (-1, -1)), (None, None)) for keeper in rejects.column("keeper").to_pylist()]
    for name, values in zip(
        ("keeper_url", "keeper_text"), zip(*pairs, strict=True) if pairs else ((), ()), strict=True
    ):
        field = schema.REJECTS.field(name)
        rejects = rejects.set_column(schema.REJECTS.get_field_index(name), field, pa.array(values, field.type))
    return rejects
