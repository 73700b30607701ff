"""prefect.yaml, automations, prefect.env and docker-compose.yml name things that exist."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from prefect.client.schemas.schedules import CronSchedule
from prefect.events.schemas.automations import AutomationCore, EventTrigger
from prefect.events.schemas.events import Resource
from prefect.settings import Settings
from prefect.settings.legacy import _get_settings_fields

from corpusmill.config import find_file, load_recipe
from corpusmill.places import SHIPPED
from flows.platform.deploy import POOLS, automations, deployments, load, resolved
from flows.platform.server import tuned_settings
from flows.run.announce import PUBLISHED

DEPLOYMENTS = deployments()
AUTOMATIONS = {spec["name"]: spec for spec in automations()}
COMPOSE = yaml.safe_load((SHIPPED / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if "build" in service}
IDS: Any = dict.fromkeys(DEPLOYMENTS, "00000000-0000-4000-8000-000000000000")


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_a_deployment_names_a_flow_a_pool_and_files_that_exist(name: str) -> None:
    spec = DEPLOYMENTS[name]
    flow = load(spec["entrypoint"])
    assert spec["work_pool"]["name"] in POOLS
    given = {"manifest": "0" * 64, "recipe": "demo", "config": "train-demo"}
    needed = {key: given[key] for key in flow.parameters.required if key not in spec["parameters"]}
    assert needed.keys() <= {"manifest"} or spec["name"] == "any"
    flow.validate_parameters({**spec["parameters"], **needed})
    assert spec["tags"] == ([] if spec["name"] == "any" else spec["tags"]), "a dataset of one's own is no demo"
    if "recipe" in spec["parameters"]:
        load_recipe(spec["parameters"]["recipe"], spec["parameters"].get("set", []))
    if "config" in spec["parameters"]:
        find_file(spec["parameters"]["config"], "recipes", ".toml", "training config")


def test_the_deployments_that_documents_speak_of_are_there() -> None:
    builds, ingestions, trainings = ({f"{flow}/{name}" for name in names} for flow, names in (
        ("build-dataset", ("demo", "crawl", "any")), ("ingest-crawl", ("nightly", "manual")),
        ("train", ("demo", "crawl", "any")),
    ))  # fmt: skip
    assert set(DEPLOYMENTS) == builds | ingestions | trainings


def test_ingestion_is_scheduled_and_one_at_a_time() -> None:
    (schedule,) = DEPLOYMENTS["ingest-crawl/nightly"]["schedules"]
    assert CronSchedule(cron=schedule["cron"], timezone=schedule["timezone"]).cron == "0 2 * * *"
    assert not schedule["active"], "a crawl is some 80 TB: nobody fetches that unasked"
    for name in ("ingest-crawl/nightly", "ingest-crawl/manual"):
        assert DEPLOYMENTS[name]["concurrency_limit"] == {"limit": 1, "collision_strategy": "ENQUEUE"}
        assert POOLS[DEPLOYMENTS[name]["work_pool"]["name"]] == 1


@pytest.mark.parametrize("name", AUTOMATIONS)
def test_an_automation_is_one_that_prefect_understands(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = AUTOMATIONS[name]
    actions = [resolved(action, IDS) for action in spec["actions"] if "webhook" not in action]
    AutomationCore.model_validate({**spec, "actions": actions or [{"type": "do-nothing"}]})


def test_an_automation_that_calls_a_webhook_needs_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CORPUSMILL_ALERT_WEBHOOK", raising=False)
    assert [resolved(action, IDS) for action in AUTOMATIONS["on-failure"]["actions"]] == [None]


@pytest.mark.parametrize("builder", ["demo", "crawl", "any"])
@pytest.mark.parametrize("train", ["auto", "none"])
def test_a_published_dataset_matches_one_automation_or_none(builder: str, train: str) -> None:
    event = Resource.model_validate(
        {"prefect.resource.id": "dataset.web", "corpusmill.train": train, "corpusmill.deployment": builder}
    )
    triggers = {
        name: EventTrigger.model_validate(spec["trigger"])
        for name, spec in AUTOMATIONS.items()
        if PUBLISHED in spec["trigger"]["expect"]
    }
    matching = [name for name, trigger in triggers.items() if trigger.match.matches(event)]  # type: ignore[union-attr]
    assert matching == ([f"train-on-publish-{builder}"] if train == "auto" else [])


@pytest.mark.parametrize("name", [name for name in AUTOMATIONS if name.startswith("train-")])
def test_the_parameters_that_an_event_gives_are_those_of_the_flow(name: str) -> None:
    (action,) = AUTOMATIONS[name]["actions"]
    load(DEPLOYMENTS[action["deployment"]]["entrypoint"]).validate_parameters(action["parameters"])


def test_every_tuned_setting_is_one_that_prefect_knows() -> None:
    known = set(_get_settings_fields(Settings))
    assert {name for name in tuned_settings() if name.startswith("PREFECT_")} - known == set()


def test_a_zombie_is_found_after_three_heartbeats() -> None:
    assert AUTOMATIONS["crash-zombies"]["trigger"]["within"] == 3 * int(
        tuned_settings()["PREFECT_FLOWS_HEARTBEAT_FREQUENCY"]
    )


def test_compose_has_the_parts_of_the_platform() -> None:
    assert {"postgres", "redis", "minio", "prefect-server", "prefect-services", "worker-cpu", "worker-crawl", "trainer",
            "dashboard"} <= set(SERVICES)  # fmt: skip
    served = [pool for service in OURS.values() for pool in served_pools(service)]
    assert sorted(served) == sorted(POOLS)


def served_pools(service: dict[str, Any]) -> list[str]:
    command = service["command"]
    return command[3:] if command[:3] == ["python", "-m", "flows.platform.workers"] else []


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_depends_on_services_mounts_volumes_and_builds_files_that_exist(name: str) -> None:
    service = SERVICES[name]
    assert set(service.get("depends_on", {})) <= set(SERVICES)
    assert {mount.split(":")[0] for mount in service.get("volumes", [])} <= set(COMPOSE["volumes"])
    for needed, condition in service.get("depends_on", {}).items():
        if condition["condition"] == "service_healthy":
            assert "healthcheck" in SERVICES[needed]
    if "build" in service:
        dockerfile = SHIPPED / service["build"]["dockerfile"]
        assert f"AS {service['build']['target']}\n" in dockerfile.read_text()
        assert (SHIPPED / service["env_file"]).is_file()
    else:
        assert re.search(r":[A-Za-z0-9.-]+$", service["image"]), "an image without a tag changes under us"


@pytest.mark.parametrize("name", [name for name, service in OURS.items() if service["command"][0] == "python"])
def test_a_command_of_ours_is_a_module_that_exists(name: str) -> None:
    assert SERVICES[name]["command"][1] == "-m"
    assert find_spec(SERVICES[name]["command"][2])


def test_every_port_is_published_on_loopback_only() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_no_secret_has_a_value_or_a_default() -> None:
    for service in SERVICES.values():
        for variable, value in service.get("environment", {}).items():
            if re.search("PASSWORD|SECRET|KEY|AUTH_STRING|CONNECTION_URL", variable):
                assert re.search(r"\$\{[A-Z0-9_]+:\?[^}]+\}", value), f"{variable} must be required"
    assert not re.search(r"\$\{[A-Z0-9_]+:-", Path(SHIPPED / "docker-compose.yml").read_text())


def test_flow_runs_get_less_time_to_end_than_compose_gives_their_worker() -> None:
    from flows.platform.workers import FLOW_RUN_GRACE_S

    for service in OURS.values():
        if served_pools(service):
            assert int(service["stop_grace_period"].removesuffix("s")) > FLOW_RUN_GRACE_S
