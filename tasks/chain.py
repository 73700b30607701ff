"""The chain, composed once: the order of stages. Drivers pass `run`: processes on this machine, or Prefect task runs.

Extraction, judging, filtering and the benchmark screen run shard by shard without a barrier; then duplicates (over all
shards), what to hold out with the documents drawn for it, decisions (by shard), tokenizer, packing (by window), a check
that nothing held out is trained on, publication.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from corpusmill.config import Recipe
from corpusmill.dataset.manifest import Manifest
from corpusmill.store import Receipt, Store
from tasks import acquire, checks, decide, dedup, extract, pack, tokenizer
from tasks import filter as filtering
from tasks.acquire import SourceUnit
from tasks.acquire.tree.listing import reported
from tasks.decontaminate import exemption, screen
from tasks.finished import finished_first
from tasks.funnel.cautions import cautions
from tasks.judge import judge
from tasks.publish import Parts, publish
from tasks.shards import Shard
from tasks.sources import changed, origins
from tasks.units import Count, Done, Job, Runner, Step, store_at


@dataclass(frozen=True)
class Built:
    """The result of a build: the published manifest, and the number of units that ran."""

    name: str
    digest: str
    manifest: Manifest
    units_run: dict[str, int]
    units_reused: dict[str, int]
    changed: tuple[str, ...] = ()
    """Files (`source/locator`) that have other bytes than in the newest dataset of this name before."""
    cautions: tuple[str, ...] = ()
    """What it should say although nothing failed."""


def build(recipe: Recipe, store: Store, run: Runner) -> Built:
    """Build and publish one dataset.

    Raises:
        NotFound: no such rules or model, or the sources list no file.
        Unavailable: a listed file, server, store or disk is unavailable (all other units finish first; nothing is
            published).
        CheckFailed: a self-test or the funnel's identity fails; nothing is published.
    """
    # What is missing is said before a page is read, not after all of them were.
    checks.check(recipe)
    given = tokenizer.given(recipe, store)
    tally, run = Count(), finished_first(run, store)
    before = changed.newest(recipe.name, store)
    with reported() as listings:
        units = acquire.plan(recipe, store)
    if not units:
        raise acquire.no_file(recipe, listings)

    def jobs(items: Iterable[Any]) -> list[Job]:
        return [Job(store.uri, recipe, item) for item in items]

    earlier = dedup.earlier(recipe, units, store)
    planted = tally.add([screen.self_test(recipe, store)])
    mapped = run("documents", shard_unit, jobs(units))
    sources = [tally.add([source]) for source, _, _ in mapped]
    for _, _, done in mapped:
        tally.add(done)
    exempted = exemption.exempted(run, [shard for _, shard, _ in mapped], recipe, store)
    if exempted.done:
        tally.add(exempted.done)
    shards = exempted.shards
    exact = tally.add(run("exact", exact_unit, jobs([(shards, earlier)])))
    near = tally.add(dedup.near_over(run, near_unit, shards, exact, recipe, store, earlier))
    repeated = dedup.repeats(run, shards, exact, near, recipe, store)
    if repeated.done:
        tally.add(repeated.done)
    shards = repeated.shards
    heldout = tally.add(run("heldout", heldout_unit, jobs([(shards, near, earlier)])))
    found = (exact, near, heldout)
    decided = run("decide", decide_unit, jobs((number, shard, found) for number, shard in enumerate(shards)))
    tally.add(decided)
    shards = [shard.after(done.receipt) for shard, done in zip(shards, decided, strict=True)]
    vocabulary = tally.add([given] if given else run("tokenizer", tokenizer_unit, jobs([shards])))
    packed = run("pack", pack_unit, jobs((window, vocabulary) for window in pack.windows(shards, recipe)))
    tally.add(packed)
    packs = [done.receipt for done in packed]
    leaks = tally.add(run("leaks", leaks_unit, jobs([(shards, packs, earlier)])))
    trail = [
        *steps("", planted, *exempted.receipts),
        *(step for shard in shards for step in steps(shard.place, *shard.trail)),
        *steps("", exact, near),
        *(step for place, receipt in repeated.receipts for step in steps(place, receipt)),
        *steps("", heldout, vocabulary),
        *(step for receipt in packs for step in steps(str(receipt.facts["window"]), receipt)),
        *steps("", leaks),
    ]
    parts = Parts(
        trail, planted, sources, shards, exact, near, heldout, vocabulary, packs, leaks, earlier, repeated,
        exempted.receipts,
    )  # fmt: skip
    digest, manifest = publish(recipe, parts, store)
    origins.keep(digest, recipe, listings, store)
    other = changed.differing(before, manifest.inputs)
    warned = tuple(cautions(recipe, manifest, trained=given is None))
    return Built(recipe.name, digest, manifest, dict(tally.run), dict(tally.reused), other, warned)


def steps(place: str, *receipts: Receipt) -> list[Step]:
    """These units in the trail of the build."""
    return [Step(receipt.stage, place, receipt) for receipt in receipts]


def shard_unit(job: Job) -> tuple[Done, Shard, list[Done]]:
    """One source file to its first decisions: what was read, its shard, the units that made the shard."""
    unit: SourceUnit = job.item
    recipe, store = job.recipe, store_at(job.uri)
    source, documents = extract.extract_file(unit, recipe, store)
    judged = judge.judge_shard(documents.receipt, recipe, store)
    receipts = {group: done.receipt for group, done in judged.items()}
    filtered = filtering.filter_shard(documents.receipt, receipts, recipe, store)
    screened = screen.screen_shard(documents.receipt, receipts, filtered.receipt, recipe, store)
    done = [documents, *(judged[group] for group in sorted(judged)), filtered, screened]
    shard = Shard(
        source=unit.source,
        snapshot=unit.snapshot,
        locator=unit.place,
        documents=documents.receipt,
        groups=receipts,
        filtered=filtered.receipt,
        screened=screened.receipt,
        decided=screened.receipt,
        cuts=tuple(screened.receipt.outputs[kind] for kind in ("cuts",) if kind in screened.receipt.outputs),
        trail=tuple(one.receipt for one in done),
    )
    return source, shard, done


def exact_unit(job: Job) -> Done:
    """Exact duplicates over all shards."""
    shards, earlier = job.item
    return dedup.exact(shards, job.recipe, store_at(job.uri), earlier)


def near_unit(job: Job) -> Done:
    """Near-duplicates over all shards."""
    shards, exact, earlier = job.item
    return dedup.near(shards, exact, job.recipe, store_at(job.uri), earlier)


def heldout_unit(job: Job) -> Done:
    """Documents to hold out with those drawn, over all shards."""
    shards, near, earlier = job.item
    return dedup.hold_out(shards, near, job.recipe, store_at(job.uri), earlier)


def decide_unit(job: Job) -> Done:
    """The final decisions on the documents of one shard."""
    number, shard, found = job.item
    return decide.decide_shard(number, shard, found, job.recipe, store_at(job.uri))


def tokenizer_unit(job: Job) -> Done:
    """The tokenizer, trained."""
    return tokenizer.trained(job.item, job.recipe, store_at(job.uri))


def pack_unit(job: Job) -> Done:
    """Token shards of one window."""
    window, vocabulary = job.item
    return pack.pack_window(window, vocabulary, job.recipe, store_at(job.uri))


def leaks_unit(job: Job) -> Done:
    """What was packed to train on, beside what was packed as held out."""
    shards, packs, earlier = job.item
    return dedup.find_leaks(shards, packs, job.recipe, store_at(job.uri), earlier)
