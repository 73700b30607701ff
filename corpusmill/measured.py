"""Every measure of a shard as one batch, and a recipe's decisions as a list of bounds on its columns.

Bounds are all that `filter` and what-if need to know: a document ends at the first bound it breaks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from corpusmill.kernels.families import STOP_WORD_MEASURE
from corpusmill.kernels.rules import Bounds, RuleSet

SCALES = {"_e4": 10_000.0, "_e6": 1_000_000.0}
"""Endings of columns that hold fractions of one as whole numbers."""

NOT_MEASURES = ("spans", "language", "text_digest", "shingles", "signature")


def measured_batch(groups: Mapping[str, pa.Table]) -> pa.RecordBatch:
    """Every measure that bounds may be on, a row a document: those of the raw text by their names, of the clean one as
    `clean.<name>`; scores in units, not in fractions of one.

    Args:
        groups: tables of attribute groups by name, with the same rows.
    """
    columns: dict[str, pa.Array] = {}
    for name in sorted(groups):
        prefix = "clean." if name == "measures:clean" else ""
        for column in groups[name].column_names:
            if column in NOT_MEASURES:
                continue
            values = groups[name].column(column).combine_chunks()
            for ending, unit in SCALES.items():
                if column.endswith(ending):
                    column, values = column.removesuffix(ending), pc.divide(pc.cast(values, pa.float64()), unit)
            columns[prefix + column] = values
    return pa.record_batch(columns)


@dataclass(frozen=True)
class Bound:
    """One bound, inclusive on both sides; None is no bound on that side. A null breaks it."""

    stage: str
    reason: str
    column: str
    low: float | None
    high: float | None
    by_language: Mapping[str, Bounds | None] = field(default_factory=dict)
    """Languages with other bounds; None: it does not hold for them."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Languages with another column (lists of stop words)."""
    among: tuple[str, ...] = ()
    """In place of numbers: the languages that do not break it."""
    rule: int | None = None
    """Which rule of the file it is."""

    def bounds(self, language: str | None) -> Bounds | None:
        """What holds for documents of a language."""
        return self.by_language.get(language or "", (self.low, self.high))


def bounds_of(recipe: Mapping[str, Any], rules: RuleSet) -> tuple[Bound, ...]:
    """All bounds of a recipe, in the order in which they decide: language, floors, rules, personal data, classifiers.

    Args:
        recipe: its `what()`, as manifests have it.
    """
    language, judge = recipe["language"], recipe["judge"]
    own = {code: (bound, None) for code, bound in sorted(language["min_scores"].items())}
    found = [
        Bound("language", "other_language", "language", None, None, among=tuple(language["keep"])),
        Bound("language", "uncertain_language", "language_score", language["min_score"], None, own),
    ]
    for name, floor in sorted(judge["floors"].items()):
        found.append(Bound("filter", "below_floor", name, floor["min"], floor["max"]))
    for i, rule in enumerate(rules.rules):
        by_language = {code: t.bounds[rule.name] for code, t in rules.languages.items() if rule.name in t.bounds}
        lists = {code: f"{rule.column}_{code}" for code, table in rules.languages.items() if table.stop_words}
        columns = lists if rule.measure == STOP_WORD_MEASURE else {}
        found.append(Bound("filter", rule.name, rule.column, rule.min, rule.max, by_language, columns, rule=i))
    if judge["personal_data"]["drop_above"] is not None:
        found.append(Bound("filter", "personal_data", "pii_total", None, judge["personal_data"]["drop_above"]))
    for name, quality in sorted(judge["quality"].items()):
        if quality["min_score"] is not None:
            found.append(Bound("filter", "low_quality", f"quality_{name}", quality["min_score"], None))
    return tuple(found)
