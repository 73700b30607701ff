"""What is trained and how: typed and frozen, read from `recipes/train-*.toml`; all faults are reported at once.

As in recipes, a field is `what` (it decides the numbers, and is hashed into the run id) or `where` (ranks, sharding,
how often to save): the same run may resume with other ranks or another mode.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from corpusmill.canonical import digest_of
from corpusmill.config import Name, Section, read_section, where
from corpusmill.config.section import fault
from corpusmill.dataset.manifest import HELDOUT, Manifest
from corpusmill.errors import NotFound, UsageError
from corpusmill.tokens.order import Plan, Stage
from training.exact import decimal, spelled, whole_weights


class Model(Section):
    """A GPT: RMSNorm, rotary positions, SwiGLU."""

    dim: int = Field(128, ge=16, description="Width of the residual stream.")
    layers: int = Field(4, ge=1, description="Number of blocks.")
    heads: int = Field(4, ge=1, description="Attention heads per block.")
    hidden: int = Field(352, ge=16, description="Width inside the SwiGLU feed-forward layer.")
    tied: bool = Field(True, description="Use the embedding as output projection.")

    @model_validator(mode="after")
    def _heads_fit(self) -> Model:
        if self.dim % (2 * self.heads):
            raise ValueError(f"dim {self.dim} / heads {self.heads} is not an even number (rotary positions turn pairs)")
        return self


class Optim(Section):
    """AdamW with clipping of the global gradient norm."""

    lr: float = Field(1e-3, gt=0, strict=False, description="Peak learning rate; stages scale it.")
    warmup_steps: int = Field(0, ge=0, description="Steps in which the rate rises from 0 to the stage's rate.")
    betas: Annotated[tuple[float, float], Field(strict=False)] = Field(
        (0.9, 0.95), description="Decay of the two moments."
    )
    eps: float = Field(1e-8, gt=0, strict=False, description="Added to the denominator.")
    schedule: Literal["constant", "linear", "cosine", "wsd"] = Field(
        "constant",
        description="Course of the rate over the whole run, from 1 to `final`; factors of stages come on top.",
    )
    final: float = Field(
        0.0, ge=0, le=1, strict=False, description="Factor on lr that a schedule other than constant ends at."
    )
    decay: float = Field(
        0.2, gt=0, le=1, strict=False, description="Last share of the steps, in which the rate of wsd falls, linearly."
    )
    weight_decay: float = Field(0.1, ge=0, strict=False, description="Weight decay, on matrices only.")
    max_grad_norm: float = Field(1.0, gt=0, strict=False, description="Gradients with a larger norm are scaled down.")

    def what(self) -> dict[str, Any]:
        """Without a schedule where there is none: such a config is hashed as it was before there were schedules."""
        unread = {"constant": ("schedule", "final", "decay"), "wsd": ()}.get(self.schedule, ("decay",))
        return {key: value for key, value in super().what().items() if key not in unread}


class MixtureStage(Section):
    """A stretch of training with one mixture of partitions; its length is given in steps, tokens or epochs."""

    steps: int | None = Field(None, ge=1, description="Number of steps.")
    tokens: int | None = Field(
        None, ge=1, description="Instead of steps: tokens of all its sequences; no more are read, in whole steps."
    )
    epochs: Annotated[str | None, BeforeValidator(spelled)] = Field(
        None,
        description="Instead of steps: a decimal number of passes over all partitions of the stage together; no more "
        "are read, in whole steps.",
    )
    weights: Annotated[dict[str, Annotated[int, Field(ge=1)]], BeforeValidator(whole_weights)] = Field(
        default_factory=dict,
        description="Weights of partitions, as decimals or whole numbers; if absent, every partition by its size. "
        "`REF:partition` is one of another dataset with the same tokenizer.",
    )
    seq_len: int | None = Field(
        None,
        ge=1,
        description="Tokens of its sequences: without weights, only partitions of this length are drawn from.",
    )
    rope_base: int = Field(10_000, ge=1, description="Base of the rotary positions.")
    lr: Annotated[tuple[float, float], Field(strict=False)] = Field(
        (1.0, 1.0), description="Factors on optim.lr at the start and the end of the stage, linear in between."
    )

    @model_validator(mode="after")
    def _one_length(self) -> MixtureStage:
        given = [key for key in _LENGTHS if getattr(self, key) is not None]
        if len(given) != 1:
            raise fault(f"expected one of steps, tokens and epochs, given {' and '.join(given) or 'none'}", *given)
        return self

    def what(self) -> dict[str, Any]:
        """Without what is not given: a stage in steps is hashed as it was before there was anything else."""
        return {key: value for key, value in super().what().items() if value is not None}


_LENGTHS = ("steps", "tokens", "epochs")


class Mixture(Section):
    """Which sequences are read, and in which order."""

    seed: int = Field(17, ge=0, le=2**53, description="Seed of the order.")
    global_batch: int = Field(8, ge=1, description="Sequences per step, over all ranks.")
    block: int = Field(1024, ge=1, description="Length, in sequences, of the blocks in which the mixture is exact.")
    max_epochs: int = where(4, ge=1, description="Maximum number of passes over a partition; more are refused.")
    stage: Annotated[tuple[MixtureStage, ...], Field(strict=False)] = Field(min_length=1)


class Run(Section):
    """Ranks and how they share the work; none of these keys changes the global batches."""

    nproc: int = where(2, ge=1, description="Number of ranks on this machine.")
    mode: Literal["ddp", "fsdp2"] = where(
        "ddp", description="ddp: a copy of the model per rank; fsdp2: a shard of it per rank."
    )
    micro_batch: int = where(
        4, ge=1, description="Sequences that a rank computes at once; gradients of the rest are accumulated."
    )
    activation_checkpointing: bool = where(
        False, description="Recompute the activations of a block in the backward pass."
    )
    checkpoint_every: int = where(100, ge=1, description="Steps between checkpoints.")
    async_save: bool = where(
        True,
        description="Train on while a checkpoint is written, from a copy in host memory (12 bytes a parameter on each "
        "rank, under fsdp2 divided by the ranks).",
    )
    keep_last: int = where(
        0, ge=0, description="Checkpoints that stay, the newest ones; older ones are removed after a save. 0: all."
    )
    keep_every: int = where(
        0, ge=0, description="With keep_last: those whose step is a multiple of this stay too. 0: none of them."
    )
    evaluate_every: int = where(
        0,
        ge=0,
        description="Steps between evaluations on held-out text, kept in the metrics; 0: only before and after.",
    )
    threads: int = where(1, ge=1, description="CPU threads per rank.")


class TrainConfig(Section):
    """One way to train on a dataset."""

    all_keys = "docs/reference/training.md; recipes/train-demo.toml is an example"
    mark = "mixture"
    stand_ins: ClassVar[Mapping[str, Any]] = {"name": "unnamed", "mixture": {"stage": [{"steps": 1}]}}

    name: Name = Field(description="Name of the config.")
    seed: int = Field(17, ge=0, le=2**53, description="Seed of the initial weights.")
    dtype: Literal["float32", "bfloat16"] = Field(
        "float32", description="Type of matrix products; weights stay float32."
    )
    model: Model = Model()
    optim: Optim = Optim()
    mixture: Mixture
    heldout_sequences: int = Field(0, ge=0, description="Number of held-out sequences to evaluate; 0: all.")
    exclude: str | None = where(
        None, description="File of doc ids, one a line: their labels give no gradient. The run id has its content."
    )
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


def _why_empty(manifest: Manifest) -> str:
    """Where the documents of a dataset without training sequences ended."""
    kept = manifest.funnel[-1].docs_out if manifest.funnel else 0
    if kept:
        return f"it is not empty, but its {kept:,} documents are held out or fill no sequence"
    ended = sorted(((n.docs, reason) for row in manifest.funnel for reason, n in row.reasons.items()), reverse=True)
    reasons = ", ".join(f"{reason} {docs:,}" for docs, reason in ended[:5] if docs)
    records = manifest.funnel[0].docs_in if manifest.funnel else 0
    return f"it is empty: of {records:,} records none was kept" + (f" ({reasons})" if reasons else "")


def length_of(stage: MixtureStage) -> str:
    """The length of a stage as its config gives it: `epochs = 1.5`."""
    return next(f"{key} = {value}" for key in _LENGTHS if (value := getattr(stage, key)) is not None)


def sizes_of(manifest: Manifest) -> dict[str, int]:
    """Sequences of each partition that can be trained on.

    Raises:
        NotFound: there is none.
    """
    sizes = {n: p.sequences for n, p in manifest.partitions.items() if n != HELDOUT and p.sequences}
    if not sizes:
        raise NotFound(f"dataset {manifest.name} has no training sequences", _why_empty(manifest))
    return sizes


def weights_of(stage: MixtureStage, manifest: Manifest) -> Mapping[str, int]:
    """Weights of the partitions that a stage draws from: its own, or the sizes of all that have its length."""
    if stage.weights:
        return stage.weights
    sizes = {name: size for name, size in sizes_of(manifest).items() if ":" not in name}  # not of other datasets
    if not sizes:
        raise NotFound(f"dataset {manifest.name} has no training sequences", _why_empty(manifest))
    return {n: size for n, size in sizes.items() if stage.seq_len in (None, manifest.partitions[n].seq_len)}


def seq_len_of(stage: MixtureStage, manifest: Manifest, names: Iterable[str]) -> int:
    """Tokens of the sequences of a stage that draws from these partitions.

    Raises:
        UsageError: there are none, they differ in it, or the stage has another.
    """
    lengths = {name: manifest.partitions[name].seq_len for name in sorted(names)}
    if len(set(lengths.values())) == 1 and stage.seq_len in (None, *lengths.values()):
        return next(iter(lengths.values()))
    there = lengths or {name: manifest.partitions[name].seq_len for name in sorted(sizes_of(manifest))}
    shown = ", ".join(f"{name} {length}" for name, length in there.items())
    if stage.seq_len is not None:
        what = f"a stage of seq_len = {stage.seq_len} cannot draw from these partitions"
    else:
        what = "partitions of different sequence lengths cannot share a batch"
    raise UsageError(what, f"their seq_len: {shown}", "Give the stage seq_len, or weights of partitions of one length.")


def steps_of(stage: MixtureStage, batch: int, manifest: Manifest, names: Collection[str]) -> int:
    """Whole steps within the length of a stage that draws from these partitions.

    Raises:
        UsageError: they have no common sequence length.
    """
    seq_len = seq_len_of(stage, manifest, names)
    if stage.steps is not None:
        return stage.steps
    if stage.tokens is not None:
        return stage.tokens // (batch * seq_len)
    passes = decimal(stage.epochs)
    assert passes is not None, "the config was checked"
    return int(passes * sum(manifest.partitions[name].sequences for name in names) // batch)


def plan_of(config: TrainConfig, manifest: Manifest) -> Plan:
    """The order of a training run on a dataset.

    A stage without weights draws from every partition but the held-out one (of its length, where it has one) by its
    number of sequences: where it is as long as all of them together, each sequence once.

    Raises:
        NotFound: the dataset has nothing to train on.
        UsageError: the mixture cannot be drawn from it.
    """
    sizes = sizes_of(manifest)
    stages = config.mixture.stage
    weights = [weights_of(stage, manifest) for stage in stages]
    used = {name for stage in weights for name in stage}
    unknown = sorted(used - set(sizes))
    if unknown:
        raise UsageError(
            f"the mixture draws from {', '.join(unknown)}",
            f"dataset {manifest.name} has partitions {', '.join(sorted(sizes))}",
            "Correct mixture.stage.weights.",
        )
    batch = config.mixture.global_batch
    steps = [steps_of(stage, batch, manifest, drawn) for stage, drawn in zip(stages, weights, strict=True)]
    if short := [f"stage {i + 1}: {length_of(stages[i])}" for i, number in enumerate(steps) if not number]:
        raise UsageError(
            f"a step of {batch} sequences is longer than {', '.join(short)}",
            "a stage has at least one step",
            "Lower mixture.global_batch, or give the stage more.",
        )
    return Plan(
        seed=config.mixture.seed,
        global_batch=batch,
        sizes={name: sizes[name] for name in used},
        stages=tuple(
            Stage(number * batch, drawn, stage.rope_base, stage.lr)
            for number, stage, drawn in zip(steps, stages, weights, strict=True)
        ),
        block=config.mixture.block,
        max_epochs=config.mixture.max_epochs,
    )
