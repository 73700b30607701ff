"""The versions that a manifest names: of every stage that had a part in it, and of how its sources are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from corpusmill.config import Recipe
from corpusmill.dataset.manifest import StageFacts
from tasks import acquire, stages
from tasks.judge.groups import groups_of
from tasks.stages import Stage
from tasks.units import Step


def versions(recipe: Recipe, sources: Iterable[str], trail: Iterable[Step], last: Stage) -> dict[str, StageFacts]:
    """By name of the stage, as its units are called: `near`, `near.plan`; `source.<name>` is the reading of a source.

    Args:
        recipe: what was built.
        sources: names of the sources that were read.
        trail: the units whose results stay.
        last: the stage that publishes.

    Returns:
        also libraries, where receipts name them. Parts are named whether they ran or not: into how many units the work
        was cut is no property of a dataset.
    """
    called: dict[str, dict[str, str]] = {stages.SOURCE.name: {}, last.name: {}}
    for step in trail:
        called.setdefault(step.stage, {}).update(step.receipt.versions)
    found = {f"{stages.SOURCE.name}.{name}": StageFacts(v) for name in sources if (v := acquire.version(recipe, name))}
    for stage in stages.STAGES:
        if stage.name in called:
            found |= {name: StageFacts(v, called[stage.name] or None) for name, v in _of(stage, recipe)}
    return dict(sorted(found.items()))


def _of(stage: Stage, recipe: Recipe) -> Iterator[tuple[str, int | dict[str, int]]]:
    if stage.version is None:  # one for each group of columns
        own = {group.name: group.version for group in groups_of(recipe).values() if group.version is not None}
        yield stage.name, {part.name: part.version for part in stage.parts if part.version is not None} | own
        return
    yield stage.name, stage.version
    for part in stage.parts:
        if part.version is not None:
            yield f"{stage.name}.{part.name}", part.version
