"""What is trained and how: typed and frozen, read from `recipes/train-*.toml`; all faults are reported at once.

As in recipes, a field is `what` (it decides the numbers, and is hashed into the run id) or `where` (ranks, sharding,
how often to save): the same run may go on with other ranks or another mode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from corpusmill.canonical import digest_of
from corpusmill.config import Name, Section, read_section, where
from corpusmill.dataset.manifest import Manifest
from corpusmill.errors import NotFound, UsageError
from corpusmill.tokens.order import Plan, Stage

HELDOUT = "heldout"
"""Name of the partition that is never trained on."""


class Model(Section):
    """A GPT: RMSNorm, rotary positions, SwiGLU."""

    dim: int = Field(128, ge=16, description="Width of the residual stream.")
    layers: int = Field(4, ge=1)
    heads: int = Field(4, ge=1)
    hidden: int = Field(352, ge=16, description="Width inside the SwiGLU feed-forward part.")
    tied: bool = Field(True, description="The output projection is the embedding.")

    @model_validator(mode="after")
    def _heads_fit(self) -> Model:
        if self.dim % (2 * self.heads):
            raise ValueError(f"dim {self.dim} / heads {self.heads} is not an even number (rotary positions turn pairs)")
        return self


class Optim(Section):
    """AdamW with a global gradient bound."""

    lr: float = Field(1e-3, gt=0, strict=False, description="Peak learning rate; stages scale it.")
    warmup_steps: int = Field(0, ge=0, description="Steps from 0 to the stage's rate.")
    betas: Annotated[tuple[float, float], Field(strict=False)] = (0.9, 0.95)
    eps: float = Field(1e-8, gt=0, strict=False)
    weight_decay: float = Field(0.1, ge=0, strict=False, description="On matrices only.")
    max_grad_norm: float = Field(1.0, gt=0, strict=False)


class MixtureStage(Section):
    """Steps with one mixture."""

    steps: int = Field(ge=1)
    weights: dict[str, Annotated[int, Field(ge=1)]] = Field(
        default_factory=dict, description="Whole-number weights of partitions; none: every partition by its size."
    )
    rope_base: int = Field(10_000, ge=1)
    lr: Annotated[tuple[float, float], Field(strict=False)] = Field(
        (1.0, 1.0), description="Factor on optim.lr at the stage's start and end, linear in between."
    )


class Mixture(Section):
    """Which sequences, in which order."""

    seed: int = Field(17, ge=0, le=2**53)
    global_batch: int = Field(8, ge=1, description="Sequences a step, over all ranks.")
    block: int = Field(1024, ge=1, description="Sequences within which the mixture is exact.")
    max_epochs: int = where(4, ge=1, description="Refuse to draw a partition more often than this.")
    stage: Annotated[tuple[MixtureStage, ...], Field(strict=False)] = Field(min_length=1)


class Run(Section):
    """Ranks and how they share the work; none of it changes the batches."""

    nproc: int = where(2, ge=1, description="Ranks on this machine.")
    mode: Literal["ddp", "fsdp2"] = where("ddp", description="Copies of the model, or shards of it.")
    micro_batch: int = where(4, ge=1, description="Sequences a rank computes at once; the rest is accumulated.")
    activation_checkpointing: bool = where(False, description="Compute a block's activations again in backward.")
    checkpoint_every: int = where(100, ge=1, description="Steps between checkpoints.")
    threads: int = where(1, ge=1, description="CPU threads a rank.")


class TrainConfig(Section):
    """One way to train on a dataset."""

    all_keys = "training/config.py, with meanings; recipes/train-demo.toml is an example"

    name: Name
    seed: int = Field(17, ge=0, le=2**53, description="Of the initial weights.")
    dtype: Literal["float32", "bfloat16"] = Field("float32", description="Of matrix products; weights stay float32.")
    model: Model = Model()
    optim: Optim = Optim()
    mixture: Mixture
    heldout_sequences: int = Field(0, ge=0, description="Held-out sequences to evaluate; 0 is all.")
    run: Run = Run()

    def model_digest(self, vocab_size: int) -> str:
        """Identity of the model's shape."""
        return digest_of({"model": self.model.what(), "vocab_size": vocab_size})


def load_train_config(path: str | Path, overrides: Sequence[str] = ()) -> TrainConfig:
    """Read, override and check a training config: a TOML file, or the name of one in `recipes/`.

    Raises:
        NotFound: there is no such file.
        UsageError: not TOML, or the config has faults; all of them are listed.
    """
    return read_section(TrainConfig, path, overrides, "training config")


def plan_of(config: TrainConfig, manifest: Manifest) -> Plan:
    """The order of a training run on a dataset.

    A stage without weights draws every partition but the held-out one by its number of sequences.

    Raises:
        NotFound: the dataset has nothing to train on.
        UsageError: the mixture cannot be drawn from it.
    """
    sizes = {n: p.sequences for n, p in manifest.partitions.items() if n != HELDOUT and p.sequences}
    if not sizes:
        raise NotFound(f"dataset {manifest.name} has no training sequences", "all its documents were removed or held out")
    batch = config.mixture.global_batch
    stages = tuple(
        Stage(s.steps * batch, s.weights or _by_size(sizes, config.mixture.block), s.rope_base, s.lr)
        for s in config.mixture.stage
    )
    used = {name for stage in stages for name in stage.weights}
    unknown = sorted(used - set(sizes))
    if unknown:
        raise UsageError(
            f"the mixture draws from {', '.join(unknown)}",
            f"dataset {manifest.name} has partitions {', '.join(sorted(sizes))}",
            "Correct mixture.stage.weights.",
        )
    return Plan(
        seed=config.mixture.seed,
        global_batch=batch,
        sizes={name: sizes[name] for name in used},
        stages=stages,
        block=config.mixture.block,
        max_epochs=config.mixture.max_epochs,
    )


def _by_size(sizes: Mapping[str, int], block: int) -> dict[str, int]:
    """Weights proportional to sizes, as fine as the block can keep; the smallest partition still gets its share."""
    total = sum(sizes.values())
    return {name: max(1, size * (block // 4) // total) for name, size in sizes.items()}
