"""What a model has been trained on: its dataset, and those of the checkpoints that its run goes back to. No torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from corpusmill.dataset.manifest import Manifest, open_manifest
from corpusmill.store import Store
from training.checkpoints import commits


def trained_on(store: Store, datasets: Sequence[str], origin: Mapping[str, Any] | None) -> list[Manifest]:
    """The datasets, the newest first.

    Args:
        datasets: digests of those that the run itself draws from.
        origin: of the run, as COMMIT.json has it.
    """
    digests = list(datasets)
    while origin:
        facts = commits.read(store, str(origin["checkpoint"])).facts
        digests += datasets_of(facts)
        origin = facts.get("origin")
    return [open_manifest(store, digest) for digest in dict.fromkeys(digests)]


def datasets_of(facts: Mapping[str, Any]) -> list[str]:
    """Digests of the datasets that a checkpoint's own run draws from."""
    return [str(digest) for digest in facts.get("manifests", [facts["manifest_sha256"]])]
