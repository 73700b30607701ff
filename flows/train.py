"""Flow `train`: one training run on a dataset, as a supervised process that ends with its flow run."""

from __future__ import annotations

from prefect import flow, get_run_logger

from flows.run.announce import manifest_tag, tag_this_run
from flows.run.artifacts import show_training
from flows.run.defaults import store_uri
from flows.run.ending import true_state
from flows.run.launch import Limited, train_in_process, until_finished


@flow(name="train", flow_run_name="train {manifest:.12}", persist_result=False)
def train(
    manifest: str,
    config: str,
    resume: str | None = None,
    store: str | None = None,
    from_checkpoint: str | None = None,
    moments: bool = False,
) -> str:
    """Train on a dataset and return the run id.

    The same dataset, mixture and config is the same training run: a flow run for one that is finished, or that somebody
    else is training, completes at once.

    Args:
        manifest: digest of the dataset, or name, or name@digest.
        config: a training config, or the name of one in recipes/.
        resume: checkpoint of another run to resume from, RUN or RUN/STEP. A run always finds its own checkpoints.
        from_checkpoint: checkpoint of another run to start from, RUN or RUN/STEP, as `mill train --from` does.
        moments: take the state of its optimizer too.
        store: folder or s3://bucket/prefix; default: CORPUSMILL_STORE, then .corpusmill/store.
    """
    from corpusmill.store import open_store  # a worker and a supervisor import this module, and need no pyarrow

    log = get_run_logger()
    uri = store_uri(store)
    name, digest = open_store(uri).resolve(manifest)
    tag_this_run([manifest_tag(digest), f"dataset:{name}"])
    say = Limited(lambda line: log.info("%s", line))
    with true_state():
        result = until_finished(
            lambda: train_in_process(
                uri, digest, config, resume=resume, origin=from_checkpoint, moments=moments, on_line=say
            ),
            lambda stopped: log.warning("%s", stopped.what),
        )
    tag_this_run(result["tags"])
    show_training(result)
    log.info("run %s on %s@%s: %s", result["run_id"], name, digest[:12], result["outcome"])
    return str(result["run_id"])
