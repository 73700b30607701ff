"""The loss ledger: the loss of every row of every step of a run, and the steps that stand out. Needs no torch.

Rank 0 stores it beside each checkpoint, before the commit, as Parquet: the summed negative log-likelihood (nats,
float32) and the labels (int32) of each row of the global batches, 8 bytes a row. Which documents a row holds the order
of training says (questions.py).
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from corpusmill.store import Store
from training.questions import Row, batch
from training.run import RunSpec
from training.runs import metrics

Floats = npt.NDArray[np.float32]
Counts = npt.NDArray[np.int32]

WINDOW = 20
"""Steps before a step that it is compared with."""

LEAST = 10
"""With fewer of them nothing is said of a step."""


@dataclass
class Ledger:
    """What is not stored yet."""

    _steps: list[tuple[int, Floats, Counts]] = field(default_factory=list)

    def add(self, step: int, parts: Sequence[bytes]) -> None:
        """Note a step, from 1, by `packed` rows of all ranks in rank order, which is the order of the global batch."""
        share = len(parts[0]) // 8
        nll = np.concatenate([np.frombuffer(part, "<f4", share) for part in parts])
        labels = np.concatenate([np.frombuffer(part, "<i4", share, 4 * share) for part in parts])
        self._steps.append((step, nll, labels))

    def take(self, run_id: str, claim: int) -> dict[str, bytes]:
        """What is not stored yet, as an object of the store by its name; then nothing is left."""
        if not self._steps:
            return {}
        steps, self._steps = self._steps, []
        table = pa.table(
            {
                "step": pa.array(np.repeat([s for s, _, _ in steps], [len(n) for _, n, _ in steps]), pa.int32()),
                "nll": pa.array(np.concatenate([nll for _, nll, _ in steps]), pa.float32()),
                "labels": pa.array(np.concatenate([labels for _, _, labels in steps]), pa.int32()),
            }
        )
        held = io.BytesIO()
        pq.write_table(table, held, compression="zstd", use_dictionary=["step", "labels"])
        return {f"runs/{run_id}/losses.{claim}.{steps[-1][0]:08d}.parquet": held.getvalue()}


def packed(nll: Floats, labels: Counts) -> bytes:
    """The rows of one rank, 8 bytes each."""
    return nll.astype("<f4").tobytes() + labels.astype("<i4").tobytes()


def losses(store: Store, run: str) -> dict[int, tuple[Floats, Counts]]:
    """The ledger of a run: step -> nll float32[rows], labels int32[rows] of its global batch."""
    found: dict[int, tuple[Floats, Counts]] = {}
    for name in store.list(f"runs/{run}/losses."):
        table = pq.read_table(io.BytesIO(store.get(name)))
        step, nll, labels = (table[key].to_numpy() for key in ("step", "nll", "labels"))
        cuts = np.flatnonzero(np.diff(step)) + 1
        for s, n, c in zip(*(np.split(column, cuts) for column in (step, nll, labels)), strict=True):
            found[int(s[0])] = n, c
    return found


@dataclass(frozen=True)
class Spike:
    """A step that stands out.

    Args:
        loss, grad_norm: of the step; nats a label.
        by_loss, by_norm: how far above the median of the steps before, in robust standard deviations.
        rows: those with the largest loss a label: (loss a label, labels, the row with its documents).
    """

    step: int
    loss: float
    grad_norm: float
    by_loss: float
    by_norm: float
    rows: tuple[tuple[float, int, Row], ...]


def outlying(values: Mapping[int, float]) -> dict[int, float]:
    """How far each value lies above the median of those of up to WINDOW steps before it, in robust standard deviations.

    The deviation is 1.4826 times the median distance from the median, and at least a thousandth of the median: a run
    whose loss stands still has no spikes by its last digits.
    """
    steps = sorted(values)
    found = {}
    for i, step in enumerate(steps):
        before = np.array([values[s] for s in steps[max(0, i - WINDOW) : i]])
        if len(before) >= LEAST:
            middle = float(np.median(before))
            spread = 1.4826 * float(np.median(np.abs(before - middle)))
            found[step] = (values[step] - middle) / max(spread, abs(middle) / 1000, 1e-12)
    return found


def spikes(spec: RunSpec, least: float = 6.0, most: int = 10, rows: int = 3) -> list[Spike]:
    """The steps whose loss or gradient norm lies `least` or more robust deviations above those before, the worst first.

    Args:
        most: steps at most.
        rows: of each step, those with the largest loss a label; none where the run has no ledger.
    """
    store = spec.open()
    lines = metrics(store, spec.run_id)
    by = {key: outlying({step: float(line[key]) for step, line in lines.items()}) for key in ("loss", "grad_norm")}
    worst = {step: max(by["loss"][step], by["grad_norm"][step]) for step in by["loss"]}
    chosen = sorted((step for step, far in worst.items() if far >= least), key=lambda step: (-worst[step], step))[:most]
    held = losses(store, spec.run_id) if chosen else {}
    return [
        Spike(
            step,
            float(lines[step]["loss"]),
            float(lines[step]["grad_norm"]),
            round(by["loss"][step], 2),
            round(by["grad_norm"][step], 2),
            _worst_rows(spec, step, held.get(step), rows),
        )
        for step in chosen
    ]


def _worst_rows(
    spec: RunSpec, step: int, held: tuple[Floats, Counts] | None, most: int
) -> tuple[tuple[float, int, Row], ...]:
    if held is None:
        return ()
    nll, labels = held
    each = nll / np.maximum(labels, 1)
    order = np.argsort(-each, kind="stable")[:most].tolist()
    read: Sequence[Any] = batch(spec, step).rows
    return tuple((float(each[i]), int(labels[i]), read[i]) for i in order)


def faulty(parts: Sequence[bytes]) -> str:
    """The rows of a step whose loss is no number, with their ranks, in words; empty where all are finite."""
    share = len(parts[0]) // 8
    found = [
        f"row {rank * share + i} (rank {rank})"
        for rank, part in enumerate(parts)
        for i, value in enumerate(np.frombuffer(part, "<f4", share).tolist())
        if not math.isfinite(value)
    ]
    more = f" and {len(found) - 8} more" if len(found) > 8 else ""
    return ", ".join(found[:8]) + more
