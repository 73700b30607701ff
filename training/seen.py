"""What a model has been trained on: its dataset, and those of the checkpoints that its run goes back to. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corpusmill.dataset.manifest import Manifest, open_manifest
from corpusmill.store import Store
from training import commits


def trained_on(store: Store, manifest: str, origin: Mapping[str, Any] | None) -> list[Manifest]:
    """The datasets, the newest first.

    Args:
        manifest: digest of the run's own dataset.
        origin: of the run, as COMMIT.json has it.
    """
    digests = [manifest]
    while origin:
        digests.append(str(origin["manifest"]))
        origin = commits.read(store, str(origin["checkpoint"])).facts.get("origin")
    return [open_manifest(store, digest) for digest in dict.fromkeys(digests)]
