"""Finished units are found by the driver, so that a worker starts only for what is missing.

A unit is called as a worker would call it, but with the driver's store, and where its work would begin it stops
(`units.begin`). So its key is computed in one place, and each stage's receipts are listed once for all units. They are
listed in a view of the store that is this build's own: a store lists a stage once, and would not see what workers
commit afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corpusmill.errors import MillError
from corpusmill.store import Store, open_store
from tasks.units import Missing, Runner, asking

LOOKED_UP = 256
"""Most units of a call that the driver looks up: of more, workers look each for their own, which takes less time."""


def finished_first(run: Runner, store: Store) -> Runner:
    """The same runner, started only for units that `store` has no receipts of."""

    view = open_store(store.uri)

    def missing_only(stage: str, fn: Callable[[Any], Any], units: Sequence[Any]) -> list[Any]:
        if len(units) > LOOKED_UP:
            return run(stage, fn, units)
        results = _finished(fn, units, view)
        missing = [number for number in range(len(units)) if number not in results]
        if missing:
            results.update(zip(missing, run(stage, fn, [units[number] for number in missing]), strict=True))
        return [results[number] for number in range(len(units))]

    return missing_only


def _finished(fn: Callable[[Any], Any], units: Sequence[Any], store: Store) -> dict[int, Any]:
    """Results of the units that are finished, by their numbers."""
    results: dict[int, Any] = {}
    with asking(store):
        for number, unit in enumerate(units):
            try:
                results[number] = fn(unit)
            except (Missing, MillError):  # a fault is raised by the runner, when all other units are finished
                continue
    return results
