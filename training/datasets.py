"""Partitions of other datasets in a mixture: `REF:partition` in `mixture.stage.weights`.

They are pinned before anything starts: the REF becomes the whole digest, so that every rank and every attempt reads the
same rows, and plan, run id and checkpoints name them. The run's own dataset gives the tokenizer and the held-out text;
held-out documents that share a 13-gram with what the others hold are flagged in evaluations. Needs no torch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from corpusmill.dataset.manifest import HELDOUT, Manifest, Partition, open_manifest
from corpusmill.errors import Refused, UsageError
from corpusmill.store import Store
from training.config import TrainConfig


def pinned(store: Store, config: TrainConfig, digest: str) -> TrainConfig:
    """The config with the datasets of its weights by whole digest, and partitions of the run's own dataset by name.

    Args:
        digest: manifest of the run's own dataset.

    Raises:
        Refused: datasets with another tokenizer; all of them are named. NotFound, UsageError: a REF that names none.
    """
    names = {name for stage in config.mixture.stage for name in stage.weights}
    found = {name: _pin(store, name, digest) for name in sorted(names)}
    _same_tokenizer(store, digest, others(found.values()))
    stages = []
    for number, stage in enumerate(config.mixture.stage, 1):
        weights = {found[name]: weight for name, weight in stage.weights.items()}
        if len(weights) < len(stage.weights):
            twice = sorted(n for n in stage.weights if [found[m] for m in stage.weights].count(found[n]) > 1)
            raise UsageError(f"stage {number} names one partition twice", ", ".join(twice), "Give it one weight.")
        stages.append(stage.model_copy(update={"weights": weights}))
    mixture = config.mixture.model_copy(update={"stage": tuple(stages)})
    return config.model_copy(update={"mixture": mixture})


def others(names: Iterable[str]) -> list[str]:
    """Digests of the other datasets among pinned names of partitions, sorted."""
    return sorted({name.partition(":")[0] for name in names if ":" in name})


def joined(store: Store, manifest: Manifest, config: TrainConfig) -> Manifest:
    """A dataset with the partitions of the others that a pinned config draws from beside its own."""
    wanted = others(name for stage in config.mixture.stage for name in stage.weights)
    more: dict[str, Partition] = {}
    for digest in wanted:
        partitions = open_manifest(store, digest).partitions
        more |= {f"{digest}:{name}": part for name, part in partitions.items() if name != HELDOUT}
    return replace(manifest, partitions={**manifest.partitions, **more}) if more else manifest


def _pin(store: Store, name: str, own: str) -> str:
    ref, colon, partition = name.rpartition(":")
    if not colon:
        return name
    digest = store.resolve(ref)[1]
    return partition if digest == own else f"{digest}:{partition}"


def _same_tokenizer(store: Store, digest: str, wanted: list[str]) -> None:
    if not wanted:
        return
    own = open_manifest(store, digest)
    ours, faults = own.vocabulary.output.digest, []
    for other in map(open_manifest, [store] * len(wanted), wanted):
        if (theirs := other.vocabulary.output.digest) != ours:
            faults.append(f"dataset {other.name} has tokenizer {theirs[:8]}, but {own.name} has {ours[:8]}")
    if faults:
        raise Refused(
            "\n".join(faults),
            "a mixture has tokens of one tokenizer",
            "Build them with one tokenizer: pack.tokenizer (docs/how-to/own-tokenizer.md).",
        )
