"""Waiting for flow runs, and what they left on the server."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from prefect.client.schemas.filters import ArtifactFilter, LogFilter

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient


def until_final(client: SyncPrefectClient, run: Any, timeout_s: float = 240) -> Any:
    """The flow run in its final state; its log has arrived too."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        run = client.read_flow_run(run.id)
        if run.state is not None and run.state.is_final():
            _until_logged(client, run)
            return run
        time.sleep(0.2)
    raise AssertionError(f"{run.name} is {run.state} after {timeout_s} s:\n" + "\n".join(logs_of(client, run)))


def _until_logged(client: SyncPrefectClient, run: Any) -> None:
    """Lines go through in batches; the last one tells the end, if the run could say it."""
    deadline = time.monotonic() + (5 if run.state.is_completed() or run.state.is_failed() else 0.5)
    while time.monotonic() < deadline and not any("Finished in state" in line for line in logs_of(client, run)):
        time.sleep(0.2)


def until_said(client: SyncPrefectClient, run: Any, text: str, timeout_s: float = 20) -> str:
    """The line of a run's log that holds `text`; a busy server takes batches of lines after the run has ended."""
    deadline = time.monotonic() + timeout_s
    while True:
        for line in (lines := logs_of(client, run)):
            if text in line:
                return line
        assert time.monotonic() < deadline, (text, lines)
        time.sleep(0.2)


def logs_of(client: SyncPrefectClient, run: Any) -> list[str]:
    """Lines of a flow run's log."""
    return [log.message for log in client.read_logs(LogFilter.model_validate({"flow_run_id": {"any_": [run.id]}}))]


def artifacts_of(client: SyncPrefectClient, run: Any) -> dict[str, Any]:
    """Artifacts of a flow run by key."""
    wanted = ArtifactFilter.model_validate({"flow_run_id": {"any_": [run.id]}})
    return {artifact.key: artifact.data for artifact in client.read_artifacts(artifact_filter=wanted)}
