"""What a model has been trained on: its dataset, and those of the checkpoints that its run goes back to. No torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from corpusmill.dataset.ancestry import ancestors
from corpusmill.dataset.manifest import Manifest, open_manifest
from corpusmill.errors import CheckFailed
from corpusmill.store import Store


def trained_on(store: Store, datasets: Sequence[str], facts: Mapping[str, Any]) -> list[Manifest]:
    """The datasets, the newest first.

    Args:
        datasets: digests of those that the run itself draws from.
        facts: COMMIT.json of one of its checkpoints, or the `beginning` of a run.

    Raises:
        CheckFailed: a checkpoint that it goes back to cannot be read, so this is not known.
    """
    digests = list(datasets)
    for ancestor in ancestors(store, facts):
        if ancestor.fault:
            raise CheckFailed(
                f"what run {facts['run_id']} has been trained on is not known",
                f"it goes back to {ancestor.checkpoint}, which is not as it was: {ancestor.fault}",
            )
        digests += ancestor.manifests
    return [open_manifest(store, digest) for digest in dict.fromkeys(digests)]
