"""Units of each stage of a build, before it starts; every stage of `tasks/stages.py` has its line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from corpusmill.config import Recipe
from tasks import stages
from tasks.dedup.cost import Cost
from tasks.judge.groups import groups_of


@dataclass(frozen=True)
class Planned:
    """What units follow from: files (or blocks and groups of them), windows that are packed, files whose size is asked
    for, and the estimate of deduplication."""

    recipe: Recipe
    files: int
    windows: int
    to_ask: int
    deduplicate: Cost

    def of(self, stage: stages.Stage) -> int:
        """Units of a stage of deduplication."""
        found = self.deduplicate.stages.get(stage.name)
        return found.units if found else 0


def _screens(planned: Planned) -> int:
    """A test on planted items and a screen a file; to exempt n-grams, a count and each screen again."""
    again = 1 + planned.files if planned.recipe.decontaminate.exempt_contexts else 0
    return 1 + planned.files + again


UNITS: dict[str, Callable[[Planned], int]] = {
    stages.SIZES.name: lambda planned: planned.to_ask,
    stages.SOURCE.name: lambda planned: planned.files,
    stages.EXTRACT.name: lambda planned: planned.files,
    stages.JUDGE.name: lambda planned: planned.files * len(groups_of(planned.recipe)),
    stages.FILTER.name: lambda planned: planned.files,
    stages.DECONTAMINATE.name: _screens,
    stages.EXACT.name: lambda planned: planned.of(stages.EXACT),
    stages.NEAR.name: lambda planned: planned.of(stages.NEAR),
    stages.LINES.name: lambda planned: planned.of(stages.LINES),
    stages.SUBSTRINGS.name: lambda planned: planned.of(stages.SUBSTRINGS),
    stages.HELDOUT.name: lambda planned: planned.of(stages.HELDOUT),
    stages.DECIDE.name: lambda planned: planned.files,
    stages.TOKENIZER.name: lambda planned: 1,
    stages.PACK.name: lambda planned: planned.windows,
    stages.LEAKS.name: lambda planned: planned.of(stages.LEAKS),
    stages.PUBLISH.name: lambda planned: 1,
}


def units_by_stage(planned: Planned) -> dict[str, int]:
    """Units of each stage that a build has, in the order of the chain."""
    counts = {stage: count(planned) for stage, count in UNITS.items()}
    return {stage: count for stage, count in counts.items() if count}
