"""Publish: one manifest that names everything, one entry in the history, one card for people.

The manifest's digest is the dataset's identity, so nothing of it depends on when, where or in what order the units ran.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusmill import benchmarks, schema
from corpusmill.canonical import canonical_json, content_digest, digest_of, sha256
from corpusmill.config import Recipe
from corpusmill.dataset.card import card
from corpusmill.kernels.rules.rules import RuleSet
from corpusmill.rulebook import rules_of, rules_to_json
from corpusmill.store import Output, Receipt, Store
from tasks import decide, dedup, extract, stages
from tasks.judge import groups
from tasks.shards import Shard
from tasks.tally import check_funnel, funnel_row
from tasks.units import Done, Step, once


@dataclass(frozen=True)
class Parts:
    """What a build made: `trail`, all units whose results stay, in the order of the lineage, and its parts by name."""

    trail: Sequence[Step]
    planted: Receipt
    sources: Sequence[Receipt]
    shards: Sequence[Shard]
    exact: Receipt
    near: Receipt
    tokenizer: Receipt
    packs: Sequence[Receipt]
    earlier: dedup.Earlier | None
    repeated: dedup.Found
    exempted: Sequence[Receipt] = ()
    """Of the count of common n-grams, where the recipe exempts them."""


def publish(recipe: Recipe, parts: Parts, store: Store) -> tuple[str, dict[str, object]]:
    """Assemble, check and publish the manifest.

    Returns:
        its digest and itself. Publishing the same manifest again changes nothing.

    Raises:
        CheckFailed: documents in are not documents out plus reasons at some stage.
    """
    manifest = assemble(recipe, parts, store)
    check_funnel(manifest["funnel"])  # type: ignore[arg-type]
    digest = store.publish(recipe.name, manifest, why="build")
    store.create(f"datasets/{recipe.name}/{digest}.md", card(manifest, digest).encode())
    return digest, manifest


def assemble(recipe: Recipe, parts: Parts, store: Store) -> dict[str, object]:
    """The manifest of these receipts; also stores the tables it names."""
    rules = rules_of(recipe.filter.rules)
    partitions = _partitions(parts.packs, recipe)
    tables = {**_tables(parts, rules, store).receipt.outputs, "benchmark_items": parts.planted.outputs["items"]}
    for receipt in parts.exempted:
        tables["exempted_ngrams"] = receipt.outputs["exempt"]
    vocabulary = parts.tokenizer
    return {
        "format": 1,
        "name": recipe.name,
        "seed": recipe.seed,
        "recipe": recipe.what(),
        "rules": {"file": rules.name, "version": rules.version, "digest": rules.digest},
        **extract.url_facts(recipe),
        "stages": _stages(parts),
        "models": {**groups.model_digests(recipe), **extract.model_digests(recipe)},
        "benchmarks": benchmarks.facts(recipe.decontaminate),
        "tokenizer": {"output": vocabulary.outputs["tokenizer"].to_json(), **vocabulary.facts},
        "partitions": partitions,
        "funnel": _funnel(parts),
        "proofs": {"decontaminate": _screen_proof(parts), "near": parts.near.facts["proof"]},
        **dedup.facts(parts.near, parts.shards, parts.earlier, parts.repeated, recipe),
        "inputs": [receipt.facts["source"] for receipt in parts.sources],
        "tables": {name: output.to_json() for name, output in sorted(tables.items())},
        "parents": [parts.earlier.manifest] if parts.earlier else [],
        "content": digest_of(
            [[p, [s["tokens"]["content"] for s in v["shards"]]] for p, v in sorted(partitions.items())]
        ),
    }


def _tables(parts: Parts, rules: RuleSet, store: Store) -> Done:
    lineage, said = _lineage(parts.trail), canonical_json(rules_to_json(rules))
    config = {"rejects": decide.REJECTS_PER_REASON, "rules": sha256(said)}
    unit = stages.PUBLISH.unit(config, (content_digest(lineage),))

    def work() -> Receipt:
        tables = {
            "contamination": store.draft_table(_contamination(parts.shards, store)),
            "lineage": store.draft_table(lineage),
            "rejects": store.draft_table(_with_keepers(_rejects(parts.shards, store), parts, store)),
            "rules": store.draft_bytes(said),
        }
        return store.commit(unit, tables)

    return once(store, unit, work)


def _stages(parts: Parts) -> dict[str, object]:
    """Versions of six stages; `near` is called deduplicate here."""
    named = (stages.EXTRACT, stages.JUDGE, stages.FILTER, stages.DECONTAMINATE, stages.NEAR, stages.PACK)
    versions: dict[str, dict[str, object]] = {stage.name: {"version": stage.versions} for stage in named}
    versions["deduplicate"] = versions.pop(stages.NEAR.name)
    of_extract, of_pack = (versions[stage.name] for stage in (stages.EXTRACT, stages.PACK))
    of_extract["libraries"] = dict(parts.shards[0].documents.versions)
    of_pack["libraries"] = dict(parts.tokenizer.versions)
    return dict(versions)


def _partitions(packs: Sequence[Receipt], recipe: Recipe) -> dict[str, dict]:
    partitions: dict[str, dict] = {}
    for receipt in packs:
        packed: Any = receipt.facts["partitions"]
        for name, facts in sorted(packed.items()):
            totals = partitions.setdefault(
                name, {"seq_len": recipe.pack.seq_len, "token_bytes": facts["token_bytes"], "shards": []}
            )
            for count in ("documents", "tokens", "text_bytes", "sequences", "padding"):
                totals[count] = totals.get(count, 0) + facts[count]
            shard = {kind: receipt.outputs[f"{name}.{kind}"].to_json() for kind in ("tokens", "rows", "docs")}
            totals["shards"].append({**shard, "sequences": facts["sequences"], "payload": facts["payload"]})
    return partitions


def _funnel(parts: Parts) -> list[dict[str, object]]:
    made: dict[str, list[Receipt]] = {}
    for step in parts.trail:
        made.setdefault(step.stage, []).append(step.receipt)
    rows = [funnel_row(row, made[stage.name]) for stage in stages.STAGES for row in stage.rows]
    # Words are first counted by the judge, on what extract wrote.
    words = sum(shard.groups["measures"].counters["words"] for shard in parts.shards)
    return [row | {"words_out": words} if row["stage"] == stages.EXTRACT.name else row for row in rows]


def _lineage(trail: Sequence[Step]) -> pa.Table:
    rows: list[dict[str, object]] = []
    for stage, place, receipt in trail:
        for kind, output in sorted(receipt.outputs.items()):
            rows.append({"stage": stage, "locator": place, "kind": kind, "unit": receipt.key, **output.to_json()})
    return pa.Table.from_pylist(rows, schema=schema.LINEAGE)


def _screen_proof(parts: Parts) -> dict[str, Any]:
    proof: dict[str, Any] = dict(parts.planted.facts)
    for receipt in parts.exempted:
        proof["exempted"] = dict(receipt.facts)
    return proof


def _contamination(shards: Sequence[Shard], store: Store) -> pa.Table:
    """Every document and benchmark item that share an n-gram, over all shards."""
    tables = []
    for shard in shards:
        hits = store.table(shard.screened.outputs["hits"])
        places = pa.array([shard.place] * hits.num_rows, pa.string())
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
    """The sample with URL and text of the document that each duplicate was dropped for, so that pairs are seen."""
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
