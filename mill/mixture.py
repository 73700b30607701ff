"""The verb `mill mixture check`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from corpusmill.errors import UsageError
from corpusmill.plain_text import table
from mill.common import InStore

if TYPE_CHECKING:
    from training.mixture import Checked


def mixture_check(
    ref: Annotated[str, Parameter(help="Dataset: name, name@digest, or a whole digest.")],
    /,
    *,
    config: Annotated[str, Parameter(help="Training config: a TOML file, or the name of one in recipes/.")],
    set_: Annotated[
        tuple[str, ...], Parameter(name="--set", help="Override a key of the config: key.path=value; may be repeated.")
    ] = (),
    options: InStore = InStore(),
) -> None:
    """Show what a training config draws from a dataset, and all its faults at once.

    Shares, sequences and passes of each partition, and optimizer steps of each stage. Faults end it with code 2; what
    could be computed is printed before.
    """
    from training.config import load_train_config
    from training.datasets import joined, pinned
    from training.mixture import check

    data = options.dataset(ref)
    wish = pinned(data.store, load_train_config(config, set_), data.digest)
    found = check(wish, joined(data.store, data.manifest, wish))
    options.answer({"dataset": f"{data.name}@{data.digest}", **found.as_json()}, f"{data.short}\n{_text(found)}")
    if found.faults:
        number = len(found.faults)
        raise UsageError(
            f"{config} on {data.short}: {number} fault{'s' if number > 1 else ''} in the mixture",
            "\n".join(found.faults),
            "Correct the stages of the mixture, or build a larger dataset. All keys: docs/reference/training.md",
        )


def _text(found: Checked) -> str:
    rows = [
        [_short(p.partition), p.sequences, p.tokens, p.drawn, f"{p.share:.2%}", f"{p.epochs:.2f}"]
        for p in found.partitions
    ]
    header = ["partition", "sequences", "tokens", "drawn", "share", "epochs"]
    stages = [[i, s.asked, s.steps, s.sequences, s.tokens, _shares(s.shares)] for i, s in enumerate(found.stages, 1)]
    batch = f"{found.micro_batch} micro x {found.accumulation} accumulation x {found.ranks} ranks"
    return "\n".join(
        [
            table(header, rows, numbers=range(1, 6)),
            "",
            table(["stage", "asked", "steps", "sequences", "tokens", "shares"], stages, numbers=(0, 2, 3, 4)),
            "",
            f"optimizer steps {found.steps:,}, each of {found.global_batch:,} sequences: {batch}",
            f"plan            {found.plan or 'none: it has faults'}",
        ]
    )


def _short(name: str) -> str:
    """A partition of another dataset with the first digits of its digest."""
    digest, colon, partition = name.rpartition(":")
    return f"{digest[:12]}{colon}{partition}"


def _shares(shares: dict[str, float]) -> str:
    """The largest three."""
    largest = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
    more = [f"and {len(largest) - 3} more"] if len(largest) > 3 else []
    return ", ".join([*(f"{_short(name)} {share:.1%}" for name, share in largest[:3]), *more])
