"""Flow `build-dataset`: the chain that `mill build` runs, as runs that people can watch, retry and cancel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prefect import flow, get_run_logger
from prefect.task_runners import ThreadPoolTaskRunner

from flows.run.announce import announce, manifest_tag, tag_this_run
from flows.run.artifacts import show_dataset
from flows.run.batches import in_batches
from flows.run.defaults import may_create, store_uri, workers
from flows.run.ending import true_state
from flows.run.faults import without_secrets
from flows.run.request_limit import held

if TYPE_CHECKING:
    from corpusmill.dataset.manifest import Manifest
    from corpusmill.store import Store

BATCHES_AT_ONCE = 8
"""Batches whose threads wait on the process pool at the same time; the pool limits the work at once."""


@flow(
    name="build-dataset",
    flow_run_name="build {recipe}",
    task_runner=ThreadPoolTaskRunner(max_workers=BATCHES_AT_ONCE),  # type: ignore[arg-type]
    persist_result=False,
)
def build_dataset(recipe: str, store: str | None = None, set: list[str] = [], train: bool = False) -> str:  # noqa: B006
    """Build one dataset and return its manifest digest.

    Args:
        recipe: a TOML file, or the name of one in recipes/.
        store: folder or s3://bucket/prefix; default: CORPUSMILL_STORE, then .corpusmill/store.
        set: overrides of the recipe, `key.path=value`.
        train: request training now, instead of leaving it to the automation on `dataset.published`.
    """
    # Imported here: a supervisor that only registers this flow, and a worker, need neither pyarrow nor numba.
    from corpusmill.config import load_recipe
    from corpusmill.dataset.columns import columns as columns_of
    from corpusmill.dataset.counts import counts as counts_of
    from corpusmill.store import open_store
    from tasks.chain import build
    from tasks.sources.changed import said
    from tasks.traffic import recorded

    log = get_run_logger()
    wanted = load_recipe(recipe, set)
    uri = store_uri(store)
    where = open_store(uri, create=may_create(uri))
    with (
        true_state(),
        without_secrets(),
        recorded(where, "build-dataset", wanted.name) as record,
        held(),
        in_batches(workers()) as run,
    ):
        built = build(wanted, where, record.counting(run))
        record.manifest = built.digest
    for line in (*record.lines(), *filter(None, [said(built.changed, "in the newest dataset before")])):
        log.info("%s", line)
    for caution in built.cautions:
        log.warning("%s", caution)
    tag_this_run([manifest_tag(built.digest), f"dataset:{built.name}"])
    rejects = sample_of_rejects(where, built.manifest)
    tables = {"columns": columns_of(where, built.manifest), "counts": counts_of(where, built.manifest)}
    show_dataset(built.name, built.digest, built.manifest, where.uri, rejects, tables)
    who = announce(built.name, built.digest, where.uri, wanted.train, direct=train)
    run_count, reused = sum(built.units_run.values()), sum(built.units_reused.values())
    log.info("%s@%s: %d units run, %d reused; training: %s", built.name, built.digest, run_count, reused, who)
    return built.digest


def sample_of_rejects(store: Store, manifest: Manifest) -> list[dict[str, Any]]:
    """Rows of the reject sample that the manifest names."""
    rows: list[dict[str, Any]] = store.table(manifest.table("rejects")).to_pylist()
    return rows
