"""The runs of a store: which there are, how far they came, and in what two of them differ. Needs no torch."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from corpusmill.errors import MillError
from corpusmill.store import Store
from training.checkpoints import claims, commits
from training.run import RunSpec


@dataclass(frozen=True)
class RunSeen:
    """A run as the store has it.

    Args:
        dataset: NAME@DIGEST.
        config: name of the training config; None where the run was not recorded.
        step, steps: steps that its newest checkpoint has seen, and all; None: not known.
        state: finished, or checkpointed (stopped or at work), or begun (no checkpoint yet).
        loss: of the newest checkpoint's last step, nats a label.
        heldout_before, heldout_after: bits per byte.
        parent: the checkpoint of another run that it began from.
        excluded: sha256 of the list of documents whose labels are taken out.
        fault: why its record cannot be read.
    """

    run: str
    dataset: str | None
    config: str | None
    step: int
    steps: int | None
    state: str
    loss: float | None
    heldout_before: float | None
    heldout_after: float | None
    parent: str | None
    excluded: str | None
    fault: str | None = None


def runs(store: Store) -> list[RunSeen]:
    """All runs of a store, by dataset and id; those whose record is damaged say so and hide no other."""
    recorded = {
        parts[1] for name in store.list("runs/") if len(parts := name.split("/")) == 3 and parts[2] == "run.json"
    }
    committed = {name.split("/")[1] for name in store.list("checkpoints/") if name.endswith("/COMMIT.json")}
    found = [_seen(store, run, run in recorded) for run in recorded | committed]
    return sorted(found, key=lambda one: (one.dataset or "", one.run))


def _seen(store: Store, run: str, recorded: bool) -> RunSeen:
    try:
        spec = RunSpec.recorded(store, run) if recorded else None
        commit, result = commits.latest(store, run), claims.finished(store, run)
        steps = spec.plan.steps if spec else None
    except MillError as err:
        return RunSeen(run, None, None, 0, None, "damaged", None, None, None, None, None, err.what)
    facts: Mapping[str, Any] = result or (commit.facts if commit else {})
    dataset = f"{spec.dataset}@{spec.manifest}" if spec else None
    if commit and not spec:
        dataset = f"{commit.facts.get('dataset')}@{commit.facts.get('manifest_sha256')}"
    origin = spec.origin.checkpoint if spec and spec.origin else None
    return RunSeen(
        run,
        dataset,
        spec.config.name if spec else facts.get("config"),
        commit.step if commit else 0,
        steps,
        "finished" if result else "checkpointed" if commit else "begun",
        facts.get("loss_last"),
        facts.get("heldout_before"),
        facts.get("heldout_after"),
        (spec.parent or origin) if spec else None,
        spec.excluded if spec else None,
    )


@dataclass(frozen=True)
class Compared:
    """Two runs side by side.

    Args:
        differ: what decides their bytes and is not the same: key, value in the one, value in the other.
        common: the last step that both have metrics of; 0: none.
        same_until: steps from the first on in which batch and loss are equal to the bit.
        loss: of that last common step in both.
    """

    one: str
    other: str
    differ: tuple[tuple[str, Any, Any], ...]
    common: int
    same_until: int
    loss: tuple[float, float] | None


def compare(store: Store, one: str, other: str) -> Compared:
    """In what two runs differ.

    Raises:
        NotFound: one of them is not recorded.
    """
    left, right = RunSpec.recorded(store, one), RunSpec.recorded(store, other)
    ours, theirs = dict(_flat(_decides(left))), dict(_flat(_decides(right)))
    differ = tuple(
        (key, ours.get(key), theirs.get(key)) for key in sorted({*ours, *theirs}) if ours.get(key) != theirs.get(key)
    )
    first, second = metrics(store, one), metrics(store, other)
    common = max(first.keys() & second.keys(), default=0)
    same = 0
    while (step := same + 1) in first and step in second and _same(first[step], second[step]):
        same = step
    loss = (first[common]["loss"], second[common]["loss"]) if common else None
    return Compared(one, other, differ, common, same, loss)


def metrics(store: Store, run: str) -> dict[int, dict[str, Any]]:
    """The metrics that a run has stored, by step."""
    prefix = f"runs/{run}/metrics."
    lines = (line for name in store.list(prefix) for line in store.get(name).decode().splitlines())
    return {line["step"]: line for line in map(json.loads, lines)}


def _same(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    return all(left[key] == right[key] for key in ("batch", "loss", "grad_norm"))


def _decides(spec: RunSpec) -> dict[str, Any]:
    return {"dataset": spec.manifest, "parent": spec.parent, **spec.start, **spec.config.what()}


def _flat(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(inner, f"{at}.{key}" if at else str(key))
    elif isinstance(value, (list, tuple)) and any(isinstance(inner, Mapping) for inner in value):
        for number, inner in enumerate(value, 1):
            yield from _flat(inner, f"{at}[{number}]")
    else:
        yield at, list(value) if isinstance(value, tuple) else value
