"""What a training config draws from a dataset: shares, passes, steps, and every reason why it cannot.

The figures are those of the `Plan` that training would use, where there is one. Needs no torch.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from corpusmill.dataset.manifest import Manifest
from corpusmill.errors import MillError
from corpusmill.tokens.order import Stage, stage_faults
from training.config import MixtureStage, TrainConfig, length_of, plan_of, sizes_of, steps_of, weights_of

UNCAPPED = 2**53


@dataclass(frozen=True)
class Drawn:
    """What a run draws from one partition over all stages: `share` of all its sequences, `epochs` passes over it."""

    partition: str
    sequences: int
    tokens: int
    drawn: int
    share: float
    epochs: float


@dataclass(frozen=True)
class StageDrawn:
    """One stage: its length as asked, in whole optimizer steps, and the share that it asks of each partition."""

    asked: str
    steps: int
    sequences: int
    tokens: int
    shares: dict[str, float]


@dataclass(frozen=True)
class Checked:
    """The report of a mixture.

    Args:
        steps: of the optimizer, in all stages.
        accumulation: micro-batches of a rank in a step.
        plan: digest of the order; None if it has faults.
    """

    partitions: tuple[Drawn, ...]
    stages: tuple[StageDrawn, ...]
    steps: int
    global_batch: int
    micro_batch: int
    accumulation: int
    ranks: int
    plan: str | None
    faults: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def check(config: TrainConfig, manifest: Manifest) -> Checked:
    """What a config draws from a dataset, and all its faults at once.

    Raises:
        NotFound: the dataset has nothing to train on.
    """
    sizes = sizes_of(manifest)
    batch, faults = config.mixture.global_batch, list[str]()
    rows, drawn = list[StageDrawn](), dict.fromkeys(sizes, 0.0)
    for number, stage in enumerate(config.mixture.stage, 1):
        row, found = _stage(stage, batch, config.mixture.block, manifest, sizes)
        rows.append(row)
        faults += [f"stage {number}: {fault}" for fault in found]
        for name, share in row.shares.items():
            drawn[name] += share * row.sequences
    plan = None
    if not faults:
        mixture = config.mixture.model_copy(update={"max_epochs": UNCAPPED})
        plan = plan_of(config.model_copy(update={"mixture": mixture}), manifest)
        drawn |= {name: passes * sizes[name] for name, passes in plan.epochs().items()}
    faults += [
        f"partition {name}: drawn {count / sizes[name]:.1f} times, more than mixture.max_epochs = "
        f"{config.mixture.max_epochs}: it has {sizes[name]:,} sequences, {round(count):,} are asked"
        for name, count in sorted(drawn.items())
        if count > config.mixture.max_epochs * sizes[name]
    ]
    share, rest = divmod(batch, config.run.nproc)
    if rest:
        faults.append(
            f"run.nproc = {config.run.nproc} ranks cannot share mixture.global_batch = {batch}: it must divide it"
        )
    micro = min(config.run.micro_batch, max(share, 1))
    return Checked(
        _partitions(manifest, drawn),
        tuple(rows),
        sum(row.steps for row in rows),
        batch,
        micro,
        -(-share // micro),
        config.run.nproc,
        None if faults else (plan.digest if plan else None),
        tuple(faults),
    )


def _stage(
    stage: MixtureStage, batch: int, block: int, manifest: Manifest, sizes: dict[str, int]
) -> tuple[StageDrawn, list[str]]:
    """A stage as far as it can be drawn, and its faults."""
    asked = weights_of(stage, manifest)
    faults = [
        f"no partition {name!r} to train on; {manifest.name} has {', '.join(sorted(sizes))}"
        for name in sorted(set(asked) - set(sizes))
    ]
    known = {name: weight for name, weight in asked.items() if name in sizes}
    steps = 0
    if known or not faults:
        try:
            steps = steps_of(stage, batch, manifest, known)
        except MillError as fault:
            faults.append(f"{fault.what}: {fault.why}")
        else:
            if not steps:
                faults.append(f"{length_of(stage)} does not reach one step of {batch} sequences")
    faults += stage_faults(Stage(max(steps, 1) * batch, known), sizes, block) if known else []
    total = sum(known.values())
    seq_len = max((manifest.partitions[name].seq_len for name in known), default=0)
    shares = {name: weight / total for name, weight in sorted(known.items())}
    return StageDrawn(length_of(stage), steps, steps * batch, steps * batch * seq_len, shares), faults


def _partitions(manifest: Manifest, drawn: dict[str, float]) -> tuple[Drawn, ...]:
    """A row for each partition that can be trained on, drawn from or not."""
    total = sum(drawn.values())
    return tuple(
        Drawn(name, part.sequences, part.tokens, round(count), count / max(total, 1), count / part.sequences)
        for name, count in sorted(drawn.items())
        for part in (manifest.partitions[name],)
    )
