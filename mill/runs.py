"""The verb `mill runs`. Needs no torch."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from corpusmill.errors import UsageError
from corpusmill.plain_text import one_line, table
from mill.common import InStore

if TYPE_CHECKING:
    from training.runs import Compared, RunSeen


def runs(
    *which: Annotated[str, Parameter(help="Two runs to compare; none: all are listed.")],
    options: InStore = InStore(),
) -> None:
    """List the training runs of a store, or show in what two of them differ.

    Compared are the dataset, the parent, all keys of the config that decide bytes, and the metrics step by step.
    """
    from training.runs import compare
    from training.runs import runs as all_runs

    store = options.open()
    if not which:
        found = all_runs(store)
        return options.answer({"runs": [asdict(one) for one in found]}, _list(found) or f"no run in {store.uri}")
    if len(which) != 2:
        raise UsageError(
            f"{len(which)} run{'s' if len(which) > 1 else ''} to compare", "expected two, or none to list all"
        )
    compared = compare(store, *which)
    options.answer(asdict(compared), _compared(compared))


def _list(found: list[RunSeen]) -> str:
    rows = [
        [
            one.run,
            _short(one.dataset),
            one.config or "-",
            f"{one.step:,}" + (f"/{one.steps:,}" if one.steps else ""),
            one.state,
            _number(one.loss),
            _number(one.heldout_before),
            _number(one.heldout_after),
            (one.parent or "-").removeprefix("checkpoints/"),
        ]
        for one in found
    ]
    header = ["run", "dataset", "config", "step", "state", "loss", "held-out before", "after", "began from"]
    faults = [f"{one.run}: {one_line(one.fault)}" for one in found if one.fault]
    return "\n".join([table(header, rows, numbers=(5, 6, 7)), *faults]) if rows else ""


def _short(dataset: str | None) -> str:
    name, _, digest = (dataset or "-").partition("@")
    return f"{name}@{digest[:12]}" if digest else name


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _compared(found: Compared) -> str:
    rows = [[key, _value(left), _value(right)] for key, left, right in found.differ]
    lines = [table(["differ in", found.one, found.other], rows) if rows else "they are the same run"]
    if found.loss is None:
        lines += ["", "no step of which both have stored metrics"]
    else:
        left, right = found.loss
        equal = f"steps 1 to {found.same_until:,} are equal to the bit" if found.same_until else "no step is equal"
        lines += ["", f"{equal}; loss at step {found.common:,}: {left:.4f}, {right:.4f}"]
    return "\n".join(lines)


def _value(value: object) -> str:
    return "-" if value is None else one_line(str(value))[:40]
