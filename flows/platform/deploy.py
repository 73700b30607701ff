"""Pools, deployments and automations, applied to a Prefect server through its client in one process.

`prefect.yaml` and `infra/automations.toml` define them; each CLI call would cost about four seconds. Applying
twice changes nothing. `python -m flows.platform.deploy` does it against PREFECT_API_URL (docker-compose.yml uses that).
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import UUID

import yaml
from prefect import Flow, get_client
from prefect.blocks.webhook import Webhook
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import DeploymentScheduleCreate, GlobalConcurrencyLimitCreate, WorkPoolCreate
from prefect.client.schemas.objects import ConcurrencyOptions
from prefect.client.schemas.schedules import CronSchedule
from prefect.events.schemas.automations import AutomationCore
from prefect.exceptions import ObjectNotFound
from prefect.utilities.callables import parameter_schema
from prefect.workers.process import ProcessWorker
from pydantic import SecretStr

from corpusmill.places import SHIPPED
from flows.run import request_limit

POOLS = {"cpu": 2, "crawl": 1, "training": 1}
"""Flow runs at once: two builds share the machine's cores; one training run has its node to itself."""


def apply() -> list[str]:
    """Make the server match the files; returns the deployments' names."""
    with get_client(sync_client=True) as client:
        existing = {pool.name: pool.type for pool in client.read_work_pools()}
        for name, limit in POOLS.items():
            if existing.get(name, "process") == "process":  # a cluster's own docker or kubernetes pool stays as it is
                pool = WorkPoolCreate(
                    name=name, type="process", base_job_template=job_template(), concurrency_limit=limit
                )
                client.create_work_pool(pool, overwrite=True)
        if request_limit.LIMIT not in {known.name for known in client.read_global_concurrency_limits(limit=200)}:
            client.create_global_concurrency_limit(
                GlobalConcurrencyLimitCreate(name=request_limit.LIMIT, limit=request_limit.AT_ONCE)
            )
        ids = {name: apply_deployment(client, spec) for name, spec in deployments().items()}
        for spec in automations():
            apply_automation(client, spec, ids)
    return list(ids)


def job_template() -> dict[str, Any]:
    """A process in the worker's own working directory and environment, so that one pool serves several machines.

    With a command given, the worker starts the engine directly; without one it starts a resolver and a supervisor
    around it, each a Python of its own.
    """
    template = ProcessWorker.get_default_base_job_template()
    variables = template["variables"]["properties"]
    variables["command"]["default"] = "python -m prefect.engine"
    variables["working_dir"]["default"] = "."
    return template


def deployments(file: Path = SHIPPED / "prefect.yaml") -> dict[str, dict[str, Any]]:
    """Deployments of a prefect.yaml as `flow/name` -> entry."""
    entries = yaml.safe_load(file.read_text(encoding="utf-8"))["deployments"]
    return {f"{load(entry['entrypoint']).name}/{entry['name']}": entry for entry in entries}


def load(entrypoint: str) -> Flow[..., Any]:
    """The flow at a module path."""
    module, _, name = entrypoint.rpartition(".")
    flow: Flow[..., Any] = getattr(import_module(module), name)
    return flow


def apply_deployment(client: SyncPrefectClient, spec: Mapping[str, Any]) -> UUID:
    """Create or update one deployment."""
    flow = load(spec["entrypoint"])
    limit = spec.get("concurrency_limit")
    return client.create_deployment(
        flow_id=client.create_flow(flow),
        name=spec["name"],
        entrypoint=spec["entrypoint"],
        description=spec["description"],
        tags=spec["tags"],
        parameters=spec["parameters"],
        work_pool_name=spec["work_pool"]["name"],
        parameter_openapi_schema=parameter_schema(flow).model_dump_for_openapi(),
        enforce_parameter_schema=True,
        schedules=schedules(client, f"{flow.name}/{spec['name']}", spec),
        concurrency_limit=limit["limit"] if limit else None,
        concurrency_options=ConcurrencyOptions(collision_strategy=limit["collision_strategy"]) if limit else None,
    )


def schedules(client: SyncPrefectClient, name: str, spec: Mapping[str, Any]) -> list[DeploymentScheduleCreate]:
    """Schedules of a deployment. Whether one is active comes from the file at first, then from what people set."""
    wanted = spec.get("schedules", [])
    active: dict[str | None, bool] = {}
    if wanted:
        try:
            active = {known.slug: known.active for known in client.read_deployment_by_name(name).schedules}
        except ObjectNotFound:
            pass  # it is made for the first time
    return [
        DeploymentScheduleCreate(
            schedule=CronSchedule(cron=entry["cron"], timezone=entry["timezone"]),
            slug=entry["slug"],
            active=active.get(entry["slug"], entry["active"]),
        )
        for entry in wanted
    ]


def automations(file: Path = SHIPPED / "infra/automations.toml") -> list[dict[str, Any]]:
    """Entries of the automations file."""
    entries: list[dict[str, Any]] = tomllib.loads(file.read_text(encoding="utf-8"))["automation"]
    return entries


def apply_automation(client: SyncPrefectClient, spec: Mapping[str, Any], deployment_ids: Mapping[str, UUID]) -> None:
    """Create or update one automation by name; others of that name go, and all of them where its webhook is not set."""
    existing = client.read_automations_by_name(spec["name"])
    actions = [resolved(action, deployment_ids) for action in spec["actions"]]
    wanted = None if None in actions else AutomationCore.model_validate({**spec, "actions": actions})
    for extra in existing[1 if wanted else 0 :]:
        client.delete_automation(extra.id)
    if wanted and existing:
        client.update_automation(existing[0].id, wanted)
    elif wanted:
        client.create_automation(wanted)


def resolved(action: Mapping[str, Any], deployment_ids: Mapping[str, UUID]) -> dict[str, Any] | None:
    """An action with ids in place of names; None: it calls a webhook whose variable is not set."""
    rest = {key: value for key, value in action.items() if key not in ("deployment", "webhook")}
    if "deployment" in action:
        return {**rest, "source": "selected", "deployment_id": str(deployment_ids[action["deployment"]])}
    if "webhook" in action:
        url = os.environ.get(action["webhook"])
        if not url:
            return None
        block = Webhook(method="POST", url=SecretStr(url), allow_private_urls=True)
        return {**rest, "block_document_id": str(block.save("corpusmill-alert", overwrite=True))}
    return rest


if __name__ == "__main__":
    print("\n".join(apply()))
