"""Flow `ingest-crawl`: what `mill ingest` does, on a schedule or by hand, one run at a time.

Two limits ensure one at a time: that of the deployments, which makes further runs wait, and that of the pool
`crawl`, which all of them share. Without both, receipts would still prevent that anything is stored twice.
"""

from __future__ import annotations

from prefect import flow, get_run_logger
from prefect.task_runners import ThreadPoolTaskRunner

from flows.build import BATCHES_AT_ONCE
from flows.run.announce import manifest_tag, tag_this_run
from flows.run.artifacts import show_ingested
from flows.run.batches import in_batches
from flows.run.defaults import may_create, store_uri, workers
from flows.run.ending import true_state
from flows.run.faults import without_secrets
from flows.run.request_limit import held


@flow(
    name="ingest-crawl",
    flow_run_name="ingest {recipe}",
    task_runner=ThreadPoolTaskRunner(max_workers=BATCHES_AT_ONCE),  # type: ignore[arg-type]
    persist_result=False,
)
def ingest_crawl(recipe: str, store: str | None = None, set: list[str] = []) -> list[str]:  # noqa: B006
    """Publish the documents of every new crawl and return the digests of the new manifests, oldest first.

    Args:
        recipe: a TOML file, or the name of one in recipes/.
        store: folder or s3://bucket/prefix; default: CORPUSMILL_STORE, then .corpusmill/store.
        set: overrides of the recipe, `key.path=value`.
    """
    # Imported here: a supervisor that only registers this flow, and a worker, need neither pyarrow nor numba.
    from corpusmill.config import load_recipe
    from corpusmill.store import open_store
    from tasks.ingest import ingest
    from tasks.traffic import recorded

    log = get_run_logger()
    wanted = load_recipe(recipe, set)
    uri = store_uri(store)
    where = open_store(uri, create=may_create(uri))
    with (
        true_state(),
        without_secrets(),
        recorded(where, "ingest-crawl", wanted.name) as record,
        held(),
        in_batches(workers()) as run,
    ):
        done = ingest(wanted, where, record.counting(run))
        record.manifest = done.digest if done.published else None
    added = [manifest.ingested.id for _, manifest in done.published]
    tags = [manifest_tag(digest) for digest, _ in done.published] + [f"snapshot:{snapshot}" for snapshot in added]
    tag_this_run([f"dataset:{done.name}", *tags])
    show_ingested(done.name, done.digest, done.published, where.uri, record.lines())
    said = ", ".join(added) or "nothing new"
    log.info("%s: %s; %d units run, %d reused", done.name, said, done.units_run, done.units_reused)
    for line in record.lines():
        log.info("%s", line)
    return [digest for digest, _ in done.published]
