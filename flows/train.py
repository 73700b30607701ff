"""Flow `train`."""

from __future__ import annotations

from prefect import flow


@flow(name="train", flow_run_name="train {manifest}", persist_result=False)
def train(manifest: str, config: str, resume: bool = True, store: str | None = None) -> None:
    """Train."""
