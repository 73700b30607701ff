"""Ingest: what is new at a recipe's sources becomes documents, one history entry of `<recipe>-documents` a snapshot.

A manifest has the documents of one snapshot of one source; its `snapshots` name all that it and the manifests before
it published. That is the watermark; there is no other state: crawls named there are not requested again, and of a
folder only files that no manifest of the history names are read. The units are those of `mill build`, which reuses
done.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from corpusmill import schema
from corpusmill.canonical import content_digest, digest_of
from corpusmill.config import CommonCrawl, Recipe
from corpusmill.dataset.card import store_card
from corpusmill.dataset.manifest import DOCUMENTS, FORMAT, Input, Manifest, Snapshot, open_manifest
from corpusmill.dataset.manifest import publish as publish_manifest
from corpusmill.errors import Incomplete, NotFound, Refused
from corpusmill.store import Receipt, Store
from tasks import acquire, checks, extract, stages
from tasks.acquire import SourceUnit, common_crawl, notices
from tasks.acquire.tree.listing import reported
from tasks.acquire.tree.small_files import together
from tasks.finished import finished_first
from tasks.funnel import limits
from tasks.funnel.columns import columns_of
from tasks.funnel.counts import counts_of
from tasks.funnel.tally import check_funnel, funnel_row
from tasks.sources import changed, origins
from tasks.units import Count, Done, Job, Runner, Step, content_of, once, store_at
from tasks.versions import versions

Snapshots = Mapping[str, tuple[str, ...]]
"""source -> ids of its snapshots."""


@dataclass(frozen=True)
class Head:
    """The newest manifest of the history: its digest (None before the first), and the watermark.

    `awaited` are crawls that were announced but not available yet when a newer one was ingested.
    """

    digest: str | None
    snapshots: Snapshots
    awaited: Snapshots = field(default_factory=dict)


@dataclass(frozen=True)
class Ingested:
    """What one ingestion did: the manifests it published, oldest first, and the newest of the history now."""

    name: str
    digest: str | None
    published: tuple[tuple[str, Manifest], ...]
    units_run: int
    units_reused: int


def dataset_name(recipe: Recipe) -> str:
    """Name of the dataset that a recipe's documents go to."""
    return f"{recipe.name}-{DOCUMENTS}"


def ingest(recipe: Recipe, store: Store, run: Runner) -> Ingested:
    """Publish one manifest for every new snapshot, oldest first; none if nothing is new.

    A crawl that is announced before its file lists exist is skipped with a note (`notices`), and taken in a later run.

    Raises:
        NotFound: a source or crawl that does not exist, or a crawl that lists no file.
        Unavailable: a server, file, store or disk is unavailable. Extracted files are stored, finished snapshots
            are published; the same call resumes there.
        Incomplete: a snapshot has no document, or too many faults; those of other sources are published.
        Refused: another process published in the meantime, or a file of a published snapshot has other bytes now.
    """
    checks.check_sources(recipe)  # what is missing is said before a page is read
    tally, run = Count(), finished_first(run, store)
    published = []
    failed: dict[str, Incomplete] = {}
    head = head_of(recipe, store)
    for source, snapshot in new_snapshots(recipe, head):
        if other := changed_files(recipe, source, snapshot, head, store):
            raise Refused(
                changed.said(other, f"in {dataset_name(recipe)}"),
                f"snapshot {snapshot!r} of source {source!r} is published, and stays as it is",
                f"Give the new state another name (source.{source}.snapshot), or restore the files.",
            )
        if source in failed:
            continue
        with reported() as listings:
            units = new_units(recipe, source, snapshot, head, store)
        if not units:
            if isinstance(recipe.source[source], CommonCrawl):
                awaited = tuple(sorted({*head.awaited.get(source, ()), snapshot}))
                head = replace(head, awaited={**head.awaited, source: awaited})
            continue
        done = run("documents", documents_unit, [Job(store.uri, recipe, unit) for unit in units])
        for pair in done:
            tally.add(pair)
        receipts = [(unit, read.receipt, made.receipt) for unit, (read, made) in zip(units, done, strict=True)]
        try:
            digest, manifest = publish(recipe, source, snapshot, receipts, head, store)
        except Incomplete as err:  # other sources go on; later snapshots of this one come behind it
            failed[source] = err
            continue
        origins.keep(digest, recipe, listings, store)
        published.append((digest, manifest))
        head = replace(head, digest=digest, snapshots=manifest.snapshots or {})
    for error in failed.values():
        raise error
    return Ingested(dataset_name(recipe), head.digest, tuple(published), tally.run["extract"], tally.reused["extract"])


def documents_unit(job: Job) -> tuple[Done, Done]:
    """One source file: what was read, and its records and documents."""
    return extract.extract_file(job.item, job.recipe, store_at(job.uri))


def head_of(recipe: Recipe, store: Store) -> Head:
    """Where the last ingestion of this recipe ended.

    Raises:
        Refused: the name is that of another kind of dataset.
    """
    name = dataset_name(recipe)
    history = store.history(name)
    if not history:
        return Head(None, {})
    digest: str = history[-1]["manifest"]
    manifest = open_manifest(store, digest, name)
    if manifest.kind != DOCUMENTS:
        raise Refused(f"dataset {name} was built, not ingested", "", "Give one of the two recipes another name.")
    return Head(digest, manifest.snapshots or {}, manifest.awaited or {})


def new_snapshots(recipe: Recipe, head: Head) -> list[tuple[str, str]]:
    """(source, snapshot) of what may be new, by source and age; for crawls it is known, for folders their files decide.

    "newest" means all since the watermark, so that nothing is skipped after a missed run.
    """
    found = []
    for name, config in sorted(recipe.source.items()):
        known = head.snapshots.get(name, ())
        if isinstance(config, CommonCrawl):
            named = tuple(
                f"{max(known)}{common_crawl.RANGE}" if crawl == common_crawl.NEWEST and known else crawl
                for crawl in config.crawls
            )
            listed = common_crawl.crawls(config.model_copy(update={"crawls": named}))
            found += [(name, crawl) for crawl in sorted({*listed, *head.awaited.get(name, ())} - set(known))]
        else:
            found.append((name, config.snapshot))
    return found


def new_units(
    recipe: Recipe, source: str, snapshot: str, head: Head, store: Store, *, ask: bool = True
) -> list[SourceUnit]:
    """The files of a snapshot that no manifest of the history names.

    Args:
        ask: as for `acquire.plan`.

    Returns:
        none of a crawl that is announced only, and of a folder without new ones.

    Raises:
        NotFound: a crawl that lists none, or that is named in the recipe and does not exist.
    """
    config = recipe.source[source]
    if isinstance(config, CommonCrawl):
        planned = common_crawl.of_crawl(source, config, snapshot, recipe.seed)
        if planned is None:
            return []
        if not planned:
            raise NotFound(f"{snapshot} of source {source!r} lists no file", "", f"Check source.{source}.")
        return acquire.cut(planned, config.root, store, ask=ask)
    units = acquire.single(recipe.model_copy(update={"source": {source: config}}), store, ask=ask)
    if snapshot in head.snapshots.get(source, ()):
        read = {file.locator for files in inputs(recipe, head, store) for file in files if file.source == source}
        units = [unit for unit in units if unit.place not in read]
    return acquire.in_order(together(units))


def changed_files(recipe: Recipe, source: str, snapshot: str, head: Head, store: Store) -> tuple[str, ...]:
    """Files of a folder's published snapshot that have other bytes now; a crawl that is published is not looked at."""
    config = recipe.source[source]
    if isinstance(config, CommonCrawl) or snapshot not in head.snapshots.get(source, ()):
        return ()
    units = {unit.place: unit for unit in acquire.single(recipe.model_copy(update={"source": {source: config}}), store)}
    found: set[str] = set()
    for files in inputs(recipe, head, store):  # those of one manifest were put together with one another
        here = [units[f.locator] for f in files if (f.source, f.snapshot) == (source, snapshot) and f.locator in units]
        found.update(changed.changed(together(here), files, recipe, store))
    return tuple(sorted(found))


def inputs(recipe: Recipe, head: Head, store: Store) -> Iterator[tuple[Input, ...]]:
    """Files of each manifest of the history, the newest first."""
    digest = head.digest
    while digest:
        manifest = open_manifest(store, digest, dataset_name(recipe))
        yield manifest.inputs
        digest = next(iter(manifest.parents), None)


def publish(
    recipe: Recipe,
    source: str,
    snapshot: str,
    receipts: Sequence[tuple[SourceUnit, Receipt, Receipt]],
    head: Head,
    store: Store,
) -> tuple[str, Manifest]:
    """Check and publish the manifest of one snapshot.

    Args:
        receipts: of every file, in the order of the plan: what was read, what was made of it.
        head: the manifest before it.

    Returns:
        its digest and itself.
    """
    made = [receipt for _, _, receipt in receipts]
    read = [(source, receipt) for receipt in made]
    named = {"lineage": _lineage(receipts), "columns": columns_of(read), "counts": counts_of(read)}
    unit = stages.INGEST.unit({}, tuple(content_digest(table) for table in named.values()))
    drafts = {name: store.draft_table(table) for name, table in named.items()}
    tables = once(store, unit, lambda: store.commit(unit, drafts)).receipt.outputs
    what = recipe.what()
    snapshots = {**head.snapshots, source: tuple(sorted({*head.snapshots.get(source, ()), snapshot}))}
    manifest = Manifest(
        format=FORMAT,
        kind=DOCUMENTS,
        name=dataset_name(recipe),
        recipe={key: what[key] for key in ("name", "seed", "extract")} | {"source": {source: what["source"][source]}},
        stages=versions(recipe, [source], [Step(r.stage, "", r) for r in made], stages.INGEST),
        snapshot=Snapshot(source, snapshot),
        snapshots=dict(sorted(snapshots.items())),
        awaited=_awaited(head.awaited, snapshots),
        partitions={},
        funnel=tuple(funnel_row(row, made) for row in stages.EXTRACT.rows),
        inputs=tuple(file for _, read, _ in receipts for file in extract.inputs_of(read)),
        tables=dict(sorted(tables.items())),
        parents=(head.digest,) if head.digest else (),
        content=digest_of([content_of(receipt, DOCUMENTS) for receipt in made]),
        urls=extract.url_file(recipe),
    )
    check_funnel(manifest.funnel)
    limits.check(recipe, [(source, receipt) for receipt in made], manifest.funnel, store)
    digest = publish_manifest(store, manifest, why=f"ingest {source} {snapshot}", expect_head=head.digest)
    if note := store_card(store, manifest, digest):
        notices.say(note)
    return digest, manifest


def _awaited(before: Snapshots, snapshots: Snapshots) -> Snapshots | None:
    """Crawls that are older than the newest one ingested and still missing; None where there are none."""
    left = {
        source: tuple(crawl for crawl in crawls if crawl < snapshots[source][-1] and crawl not in snapshots[source])
        for source, crawls in sorted(before.items())
        if source in snapshots
    }
    return {source: crawls for source, crawls in left.items() if crawls} or None


def _lineage(receipts: Sequence[tuple[SourceUnit, Receipt, Receipt]]) -> pa.Table:
    rows: list[dict[str, Any]] = []
    for unit, _, receipt in receipts:
        for kind, output in sorted(receipt.outputs.items()):
            place = {"stage": "extract", "locator": f"{unit.source}/{unit.place}", "kind": kind, "unit": receipt.key}
            rows.append({**place, **output.to_json()})
    return pa.Table.from_pylist(rows, schema=schema.LINEAGE)
