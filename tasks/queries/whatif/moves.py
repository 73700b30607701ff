"""The bounds of a dataset, and the same after some of them were moved."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from corpusmill.canonical import parse_canonical
from corpusmill.dataset.manifest import Manifest
from corpusmill.errors import NotFound, UsageError
from corpusmill.kernels.rules.bounds import Bound, looser
from corpusmill.kernels.rules.rules import RuleSet
from corpusmill.languages import codes_of, unknown
from corpusmill.measured import bounds_of
from corpusmill.models import KNOWN
from corpusmill.rulebook import rules_from_json
from corpusmill.store import Store


def of_dataset(store: Store, manifest: Manifest) -> tuple[tuple[Bound, ...], RuleSet]:
    """The bounds and the rules of a dataset.

    Raises:
        NotFound: it does not say what they are.
    """
    if "rules" not in manifest.tables or "judge" not in manifest.recipe:
        raise NotFound(
            f"the manifest of dataset {manifest.name} has no rules",
            "its documents were not judged yet, or an earlier version built it",
            "Build it again: this only makes a new manifest.",
        )
    rules = rules_from_json(parse_canonical(store.bytes(manifest.table("rules"))))
    return bounds_of(manifest.recipe, rules), rules


def languages_of(manifest: Manifest) -> frozenset[str] | None:
    """Codes that the language model of a dataset gives, where it is one that we know."""
    given = (manifest.models or {}).get("language")
    return next((codes_of(name) for name, model in KNOWN.items() if model.sha256 == given), None)


def moved(
    recipe: Mapping[str, Any], rules: RuleSet, moves: Sequence[str], languages: Collection[str] | None = None
) -> tuple[Bound, ...]:
    """The bounds of a recipe after moves.

    Args:
        languages: codes that the dataset's language model gives; None: not known, and any may be named.

    Raises:
        UsageError: no such bound, not a number, or looser than a floor.
    """
    by_rule = {rule.name: rule for rule in rules.rules}
    what = _copied(recipe)
    for text in moves:
        key, sign, value = text.partition("=")
        *place, last = key.strip().split(".")
        if not sign or not place:
            raise UsageError(
                f"--set {text!r}", "expected rule.min=number, rule.max=number, or language.min_score=number"
            )
        name = ".".join(place)
        if name in by_rule and last in ("min", "max"):
            rule = by_rule[name]
            if getattr(rule, last) is None:
                raise UsageError(f"--set {text!r}", f"rule {name} has no {last}; it has {_has(rule.min, rule.max)}")
            number = _number(text, value)
            by_rule[name] = replace(rule, min=number) if last == "min" else replace(rule, max=number)
        else:
            if place == ["language", "min_scores"] and languages is not None and (said := unknown([last], languages)):
                raise UsageError(f"--set {text!r}", f"the dataset's language model knows no language {said}")
            _set_bound(what, place, last, text, value, list(by_rule))
    found = bounds_of(what, replace(rules, rules=tuple(by_rule.values())))
    floors = [bound for bound in found if bound.reason == "below_floor"]
    if faults := [fault for floor in floors for bound in found for fault in looser(bound, floor)]:
        raise UsageError(
            "; ".join(faults),
            "the costly judges skipped documents below the floor (judge.floors)",
            "Lower the floor in the recipe and build again.",
        )
    return found


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copied(item) for key, item in value.items()}
    return value


def _has(low: float | None, high: float | None) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in (("min", low), ("max", high)) if value is not None)


def _number(text: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if not np.isfinite(number):
        raise UsageError(f"--set {text!r}", f"expected a number, given {value!r}")
    return number


def _set_bound(what: dict[str, Any], place: Sequence[str], last: str, text: str, value: str, rules: list[str]) -> None:
    at = what
    for part in place:
        at = at.get(part) if isinstance(at, dict) else None  # type: ignore[assignment]
    is_score = (
        (place == ["language"] and last == "min_score")
        or place == ["language", "min_scores"]
        or (place[:2] == ["judge", "quality"] and len(place) == 3 and last == "min_score")
    )
    is_count = place == ["judge", "personal_data"] and last == "drop_above" and bool(at and at["kinds"])
    if at is None or not (is_score or is_count):
        raise UsageError(
            f"--set {text!r}: no bound of this dataset",
            f"its rules: {', '.join(rules)}",
            "Bounds of the recipe: language.min_score, language.min_scores.CODE, judge.quality.NAME.min_score, "
            "judge.personal_data.drop_above. A change of the text (extract, edits) needs a build.",
        )
    number = _number(text, value)
    if is_score and not 0 <= number <= 1:
        raise UsageError(f"--set {text!r}", "expected a score from 0 to 1")
    if is_count and (number < 0 or number != int(number)):
        raise UsageError(f"--set {text!r}", "expected a whole number, 0 or more")
    at[last] = number
