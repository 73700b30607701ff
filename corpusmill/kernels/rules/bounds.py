"""Bounds on measures, in the order in which they decide: a document ends at the first one it breaks.

Rules, floors, languages and scores are all bounds; one list of them serves `filter`, which decides by it here, and
what-if, which says the same in SQL.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from corpusmill.errors import UsageError

Limits = tuple[float | None, float | None]
"""At least, at most; None where there is no such limit."""

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Bound:
    """One bound, inclusive on both sides; None is no bound on that side. A null or NaN breaks it, unless it is none."""

    stage: str
    reason: str
    column: str
    low: float | None
    high: float | None
    by_language: Mapping[str, Limits | None] = field(default_factory=dict)
    """Languages with other bounds; None: it does not hold for them."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Languages with another column (lists of stop words)."""
    among: tuple[str, ...] = ()
    """In place of numbers: the languages that do not break it."""
    rule: int | None = None
    """Which rule of the file it is."""
    shown: Bound | None = field(default=None, compare=False)
    """Whose value and bound a decision shows, where that is another one's."""

    @property
    def is_none(self) -> bool:
        """Whether nothing breaks it: it could be set, and is not."""
        return not (self.among or self.by_language) and self.low is None and self.high is None


@dataclass(frozen=True)
class Decided:
    """Why documents end, n of them: string, string, int64, float64, float64; null where a document stays."""

    stage: pa.Array
    reason: pa.Array
    failed: pa.Array
    """Bit i is set where rule i is broken; 0 where none is."""
    value: pa.Array
    """Of the measure that decided; null also where there is none."""
    bound: pa.Array


def decide(measures: pa.RecordBatch, bounds: Sequence[Bound], language: pa.Array | None = None) -> Decided:
    """What each document breaks.

    Args:
        measures: one row a document, a column for each that bounds name.
        bounds: in the order in which they decide.
        language: string[n], the document's language where known. None: no language has bounds of its own, and no bound
            is on the language itself.

    Raises:
        UsageError: a bound is on a measure that the batch lacks.
    """
    rows = measures.num_rows
    first = np.full(rows, -1, np.int64)
    failed = np.zeros(rows, np.int64)
    value, limit = np.zeros(rows), np.zeros(rows)
    for i, bound in enumerate(bounds):
        if bound.is_none:
            continue
        broken = ~_inside(measures, bound, language)
        if bound.rule is not None:
            failed |= broken.astype(np.int64) << bound.rule
        deciding = broken & (first < 0)
        if deciding.any():
            first[deciding] = i
            measured, low, high, _ = _measured(measures, bound.shown or bound, language)
            value[deciding] = measured[deciding]
            limit[deciding] = np.where((measured > high) | np.isneginf(low), high, low)[deciding]
    passed = first < 0
    stages, reasons = (
        np.array([*(getattr(bound, name) for bound in bounds), None], object) for name in ("stage", "reason")
    )  # the last for passed ones, -1
    return Decided(
        pa.array(stages[first], pa.string(), mask=passed),
        pa.array(reasons[first], pa.string(), mask=passed),
        pa.array(failed),
        pa.array(value, mask=passed | np.isnan(value)),
        pa.array(limit, mask=passed),
    )


def _inside(measures: pa.RecordBatch, bound: Bound, language: pa.Array | None) -> Flags:
    if bound.among:
        assert language is not None
        return pc.is_in(language, pa.array(bound.among, pa.string())).to_numpy(zero_copy_only=False)
    measured, low, high, off = _measured(measures, bound, language)
    return off | ((measured >= low) & (measured <= high))


def _measured(
    measures: pa.RecordBatch, bound: Bound, language: pa.Array | None
) -> tuple[Floats, Floats, Floats, Flags]:
    """(value, at least, at most, whether the bound does not hold) for each document."""
    rows = measures.num_rows
    measured = _numbers(measures, bound, bound.column)
    low, high = (np.full(rows, limit) for limit in _limits((bound.low, bound.high)))
    off = np.zeros(rows, bool)
    if language is None:
        return measured, low, high, off
    for code in {**bound.columns, **bound.by_language}:
        here = pc.fill_null(pc.equal(language, code), False).to_numpy(zero_copy_only=False)
        if code in bound.columns and here.any():
            measured = np.where(here, _numbers(measures, bound, bound.columns[code]), measured)
        own = bound.by_language.get(code, (bound.low, bound.high))
        if own is None:
            off |= here
        else:
            low[here], high[here] = _limits(own)
    return measured, low, high, off


def looser(bound: Bound, floor: Bound) -> Iterator[str]:
    """Where a bound lets in what a floor on the same measure lets out, so that it would not be what decides."""
    if bound.rule is None or bound.column != floor.column:
        return
    for code, limits in {"": (bound.low, bound.high), **bound.by_language}.items():
        low, high = limits or (None, None)
        rule = f"rule {bound.reason}" + (f" in language {code}" if code else "")
        if low is not None and floor.low is not None and low < floor.low:
            yield f"{rule}: min {low:g} is looser than the floor, min {floor.low:g}, of {floor.column}"
        if high is not None and floor.high is not None and high > floor.high:
            yield f"{rule}: max {high:g} is looser than the floor, max {floor.high:g}, of {floor.column}"


def _limits(limits: Limits) -> tuple[float, float]:
    low, high = limits
    return -math.inf if low is None else low, math.inf if high is None else high


def _numbers(measures: pa.RecordBatch, bound: Bound, name: str) -> Floats:
    if name not in measures.schema.names:
        raise UsageError(
            f"rule {bound.reason!r} reads measure {name!r}, which was not computed",
            f"available: {', '.join(measures.schema.names)}",
            "Add it to section judge of the recipe, or remove the rule.",
        )
    return measures.column(name).cast(pa.float64()).to_numpy(zero_copy_only=False)
