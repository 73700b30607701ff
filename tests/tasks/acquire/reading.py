"""Reading a source as extraction does, without a store."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from corpusmill.config import Recipe, parse_recipe
from corpusmill.readers.outcomes import Outcome, ReadOptions
from corpusmill.readers.warc import FileFacts
from tasks import acquire
from tasks.acquire import SourceUnit
from tasks.stages import REASONS


def recipe(kind: str, root: Path | str, **keys: Any) -> Recipe:
    """A recipe with one source, called s."""
    return parse_recipe({"name": "t", "source": {"s": {"kind": kind, "root": str(root), **keys}}}, "test")


def by_unit(made: Recipe, facts: FileFacts | None = None, **options: Any) -> list[tuple[SourceUnit, list[Outcome]]]:
    """The outcomes of every unit, each checked for having exactly one end."""
    found = []
    for unit in acquire.plan(made):
        with acquire.fetched(unit, made) as file:
            outcomes = list(acquire.read(unit, file, made, ReadOptions(**options), facts or FileFacts()))
        for outcome in outcomes:
            assert [outcome.reason, outcome.text, outcome.html].count(None) == 2, outcome
            assert outcome.reason is None or outcome.stage == REASONS[outcome.reason].row
            assert outcome.html or (outcome.extractor is None) == (outcome.text is None)
        found.append((unit, outcomes))
    places = [(o.file or u.locator, o.offset, o.index) for u, outcomes in found for o in outcomes if not o.reason]
    assert len(set(places)) == len(places)
    return found


def outcomes(kind: str, root: Path | str, facts: FileFacts | None = None, **keys: Any) -> list[Outcome]:
    """Every outcome of a source."""
    return [outcome for _, found in by_unit(recipe(kind, root, **keys), facts) for outcome in found]


def reasons(found: list[Outcome]) -> dict[str | None, int]:
    """How often each reason; None counts documents."""
    return dict(Counter(outcome.reason for outcome in found))
