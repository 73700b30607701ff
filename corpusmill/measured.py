"""Every measure of a shard as one batch, and a recipe's decisions as a list of bounds on its columns.

Bounds are all that `filter` and what-if need to know (kernels/bounds.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from corpusmill.kernels.rules.bounds import Bound
from corpusmill.kernels.rules.rules import RuleSet
from corpusmill.languages import EVERY_LANGUAGE

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


def bounds_of(recipe: Mapping[str, Any], rules: RuleSet) -> tuple[Bound, ...]:
    """All bounds of a recipe, in the order in which they decide: language, floors, rules, personal data, classifiers.

    Those that it could set on what it measures, and does not, are there too (`Bound.is_none`).

    Args:
        recipe: its `what()`, as manifests have it.
    """
    language, judge = recipe["language"], recipe["judge"]
    own = {code: (low, None) for code, low in sorted(language["min_scores"].items())}
    score = Bound("language", "uncertain_language", "language_score", language["min_score"], None, own)
    found = []
    if EVERY_LANGUAGE not in language["keep"]:
        keep = tuple(language["keep"])
        found.append(Bound("language", "other_language", "language", None, None, among=keep, shown=score))
    stored = {code: (_as_stored(low), None) for code, (low, _) in own.items()}
    found.append(replace(score, low=_as_stored(language["min_score"]), by_language=stored, shown=score))
    for name, floor in sorted(judge["floors"].items()):
        found.append(Bound("filter", "below_floor", name, floor["min"], floor["max"]))
    found += rules.bounds()
    if judge["personal_data"]["kinds"]:
        found.append(Bound("filter", "personal_data", "pii_total", None, judge["personal_data"]["drop_above"]))
    for name, quality in sorted(judge["quality"].items()):
        found.append(Bound("filter", "low_quality", f"quality_{name}", quality["min_score"], None))
    return tuple(found)


def _as_stored(score: float) -> float:
    """A bound on language scores in the 1/10,000 that they are stored in."""
    return round(score * SCALES["_e4"]) / SCALES["_e4"]
