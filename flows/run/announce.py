"""What a flow run announces: its tags, the event `dataset.published`, a direct request for training.

Who trains a dataset is decided once, by a label of the event: `corpusmill.train` is `auto` when an automation
(infra/automations.toml) is to start `train`, and `none` for no training or a direct request. An automation's run has
an idempotency key of its own, so two requests for the same training would otherwise both be granted.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from prefect import get_client
from prefect.deployments import run_deployment
from prefect.events import emit_event
from prefect.runtime import deployment, flow_run

PUBLISHED = "dataset.published"


def manifest_tag(digest: str) -> str:
    """`manifest:<16 hex>`: short enough for the UI; the whole digest is in parameters and artifacts."""
    return f"manifest:{digest[:16]}"


def tag_this_run(tags: Sequence[str]) -> None:
    """Add tags to the flow run that calls. Prefect replaces the list, so it is read first."""
    if not flow_run.id:
        return
    with get_client(sync_client=True) as client:
        run = client.read_flow_run(UUID(flow_run.id))
        client.update_flow_run(run.id, tags=sorted({*run.tags, *tags}))


def announce(name: str, digest: str, store_uri: str, config: str | None, *, direct: bool) -> str:
    """Emit `dataset.published`, and request training directly if that is wanted.

    Training goes to the deployment of `train` that has the name of the deployment that built the dataset.

    Args:
        config: training config that the recipe names; None: no training.
        direct: request it now; the automation does nothing.

    Returns:
        `auto`, `direct` or `none`: who starts the training.
    """
    target = deployment.name
    how = "none" if not (config and target) else "direct" if direct else "auto"
    emit_event(
        event=PUBLISHED,
        resource={
            "prefect.resource.id": f"dataset.{name}",
            "prefect.resource.name": name,
            "corpusmill.train": "auto" if how == "auto" else "none",
            "corpusmill.deployment": target or "none",
        },
        payload={"name": name, "manifest": digest, "store": store_uri, "config": config or ""},
    )
    if how == "direct":
        run_deployment(
            name=f"train/{target}",
            parameters={"manifest": digest, "config": config, "store": store_uri},
            tags=[manifest_tag(digest)],
            idempotency_key=f"train-{digest}-{config}",
            timeout=0,
            as_subflow=False,  # it outlives the build
        )
    return how
