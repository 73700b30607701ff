"""CPU seconds and bytes of every stage of the chain, by timing the functions that tasks/chain.py composes."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from bench.crawls import Crawl
from bench.peers.stopwatch import Stopwatch
from corpusmill.dataset.manifest import Manifest
from corpusmill.engine.local import Engine
from corpusmill.extractor.sandbox.sandbox import Sandbox
from corpusmill.store import Output, Store
from tasks import chain, decide, dedup, extract, pack, tokenizer
from tasks import filter as filtering
from tasks.decontaminate import screen
from tasks.judge import groups, judge
from tasks.judge.groups import Group


@dataclass(frozen=True)
class Stage:
    """What one stage took and moved."""

    name: str
    cpu_s: float
    bytes_in: int
    """Of files (read), pages (extract) or text (the others) that it handled."""
    bytes_stored: int
    """Of the objects it wrote."""


@dataclass(frozen=True)
class Measured:
    """One build, stage by stage."""

    built: chain.Built
    stages: list[Stage]

    @property
    def cpu_s(self) -> float:
        """Of the whole chain."""
        return sum(stage.cpu_s for stage in self.stages)


@contextmanager
def timed(watch: Stopwatch) -> Iterator[None]:
    """Within the block, the chain's functions report to the watch."""
    with ExitStack() as patches:

        def replace(owner: Any, name: str, made: Callable[..., Any]) -> None:
            patches.enter_context(patch.object(owner, name, made))

        def watched(group: Group) -> Group:
            return dataclasses.replace(group, load=lambda: watch.function(group.name, group.load()))

        def function(step: str, owner: Any, name: str) -> None:
            replace(owner, name, watch.function(step, getattr(owner, name)))

        replace(extract, "batches", watch.generator("read", extract.batches))
        function("extract", Sandbox, "extract")
        function("documents", extract, "extract_file")
        groups_of = groups.groups_of
        replace(judge, "groups_of", lambda recipe: {g.name: watched(g) for g in groups_of(recipe).values()})
        function("attributes", judge, "judge_shard")
        function("filter", filtering, "filter_shard")
        function("decontaminate", screen, "self_test")
        function("decontaminate", screen, "screen_shard")
        function("exact", dedup, "exact")
        function("near", dedup, "near")
        function("decide", decide, "decide_shard")
        function("tokenizer", tokenizer, "trained")
        function("pack", pack, "pack_window")
        function("publish", chain, "publish")
        function("chain", chain, "build")
        yield


STEPS = {
    "read": "read: records, bodies, charsets, screens",
    "extract": "extract: worker processes",
    "documents": "extract: tables, store",
    "language": "judge: language",
    "measures": "judge: measures",
    "digests": "judge: digests, signature",
    "attributes": "judge: tables, store",
    "filter": "filter",
    "decontaminate": "decontaminate",
    "exact": "deduplicate: exact",
    "near": "deduplicate: near",
    "decide": "decide, reject samples",
    "tokenizer": "tokenizer, trained",
    "pack": "pack",
    "publish": "publish",
    "chain": "between the stages",
}
"""What is timed, in the order of the chain, and how it is called in the table."""


def measure(crawl: Crawl, store: Store) -> Measured:
    """Build a crawl's dataset in this process and say where the CPU seconds went."""
    watch = Stopwatch()
    with timed(watch), Engine(1) as engine:
        built = chain.build(crawl.recipe, store, lambda stage, fn, units: engine.map(fn, units))
    entered = {row.stage: row.bytes_in for row in built.manifest.funnel}
    text = built.manifest.row("extract").bytes_out
    handled = {
        "read": crawl.bytes,
        "extract": entered["extract"],
        **dict.fromkeys(("documents", "language", "measures", "digests", "attributes", "filter"), text),
        **{stage: entered[stage] for stage in ("decontaminate", "exact", "near", "pack")},
    }
    stored = _stored(built.manifest, store)
    return Measured(built, [Stage(n, watch.spent.get(n, 0.0), handled.get(n, 0), stored.get(n, 0)) for n in STEPS])


def in_wanted_languages(measured: Measured, store: Store) -> dict[str, set[int]]:
    """Offsets of the records, per file, whose documents the language bound lets through."""
    lineage = store.table(measured.built.manifest.table("lineage")).to_pylist()
    found: dict[str, dict[str, Output]] = {}
    for row in lineage:
        if (row["stage"], row["kind"]) in (("extract", "documents"), ("filter", "decisions")):
            found.setdefault(row["locator"], {})[row["kind"]] = Output.from_json(row)
    offsets: dict[str, set[int]] = {}
    for place, output in found.items():
        at = store.table(output["documents"], columns=["offset"]).column("offset").to_pylist()
        ended = store.table(output["decisions"], columns=["stage"]).column("stage").to_pylist()
        locator = re.sub(r"#\d+$", "", place.partition("/")[2])  # without source and number of the block
        wanted = {offset for offset, stage in zip(at, ended, strict=True) if stage != "language"}
        offsets.setdefault(locator, set()).update(wanted)
    return offsets


def _stored(manifest: Manifest, store: Store) -> Counter[str]:
    """Bytes of stored objects by step."""
    lineage = store.table(manifest.table("lineage"), columns=["stage", "kind", "size"]).to_pylist()
    sizes: Counter[str] = Counter()
    for row in lineage:
        sizes[{"extract": "documents", "judge": row["kind"]}.get(row["stage"], row["stage"])] += row["size"]
    sizes["publish"] = sum(output.size for output in manifest.tables.values())
    return sizes
