"""Rules are data: a measure, a bound, a name. This reads rule files and tells, per document, what it breaks.

Measuring and deciding are separate, so moving a bound reads no text. A file may also cut the text before it is measured
(edits) and have other bounds for some languages.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from corpusmill.canonical import digest_of
from corpusmill.errors import NotFound, UsageError
from corpusmill.kernels.edit_rules import EditRule, make_edit
from corpusmill.kernels.families import BASE, FAMILIES, FAMILY_OF, STOP_WORD_MEASURE, MeasureSpec, families_for
from corpusmill.kernels.rule_faults import VIEWS, file_faults

Bounds = tuple[float | None, float | None]
"""At least, at most; None where there is no such bound."""


@dataclass(frozen=True)
class Rule:
    """Bounds (inclusive, one or both) on a measure; the name is the reason that a document it ends is counted under."""

    name: str
    measure: str
    definition: str
    view: str
    min: float | None
    max: float | None
    source: str
    """Where the rule is from: paper and section."""
    says: str
    """The fault as one sentence."""

    @property
    def column(self) -> str:
        """The measure's column in a batch of all measures: those of the clean text are named `clean.<measure>`."""
        own = self.measure in BASE or self.measure in FAMILY_OF
        return f"clean.{self.measure}" if own and self.view == "clean" else self.measure


@dataclass(frozen=True)
class LanguageRules:
    """What a file says otherwise about documents of one language."""

    bounds: Mapping[str, Bounds | None]
    """rule -> its bounds; None: the rule is off. Rules that are not named keep theirs."""
    stop_words: tuple[str, ...] = ()
    """In place of the English ones; empty: those."""


@dataclass(frozen=True)
class RuleSet:
    """A rule file: rules in the order of the funnel. `digest` covers what decides, not comments or sentences."""

    name: str
    version: int
    digest: str
    rules: tuple[Rule, ...]
    edits: tuple[EditRule, ...] = ()
    """What is cut from the text before view clean is measured (kernels/line_edits.py)."""
    edits_digest: str = ""
    """Of what decides the edits alone: moving a bound recomputes no edit. Empty where there are none."""
    languages: Mapping[str, LanguageRules] = field(default_factory=dict)
    """By language code, as the attribute group `language` has it."""

    def needs(self) -> dict[str, frozenset[str]]:
        """The measures that rules read, by view; `other` are those of other attribute groups."""
        found: dict[str, set[str]] = {**{view: set() for view in VIEWS}, "other": set()}
        for rule in self.rules:
            own = rule.measure in BASE or rule.measure in FAMILY_OF
            found[rule.view if own else "other"].add(rule.measure)
        return {view: frozenset(names) for view, names in found.items()}

    def measured(self, view: str, also: Iterable[str] = ()) -> MeasureSpec:
        """What the attribute group `measures` of a view must hold for these rules.

        Args:
            view: one of VIEWS.
            also: further measures, such as those that floors read.
        """
        wanted = {*self.needs()[view], *also}
        lists = {code: table.stop_words for code, table in self.languages.items() if table.stop_words}
        return MeasureSpec(families_for(wanted), lists if STOP_WORD_MEASURE in wanted else {})

    def bounds_of(self, rule: Rule, language: str | None) -> Bounds | None:
        """The bounds of a rule for documents of a language; None where it is off for them."""
        table = self.languages.get(language or "")
        return table.bounds.get(rule.name, (rule.min, rule.max)) if table else (rule.min, rule.max)


def load_rules(path: Path) -> RuleSet:
    """Read and check a rule file; `definition` and `view` at the top stand for all rules.

    Raises:
        NotFound: there is no such file.
        UsageError: it has faults; all of them are listed.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NotFound(f"no rule file {path}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as err:
        raise UsageError(f"{path}: not a TOML file", str(err)) from err
    faults = list(file_faults(data))
    if faults:
        raise UsageError(
            f"{path}: {len(faults)} fault{'s' if len(faults) > 1 else ''} in the rules",
            "\n".join(f"  {fault}" for fault in faults),
            "\n".join(f"Measures ({name}): {', '.join(family.measures)}" for name, family in FAMILIES.items()),
        )
    shared = {"definition": data["definition"], "view": data.get("view", "raw"), "source": "", "min": None, "max": None}
    rules = tuple(Rule(**{**shared, **entry}) for entry in data["rule"])
    edits = tuple(make_edit(entry) for entry in data.get("edit", []))
    languages = {code: _language_rules(table) for code, table in data.get("language", {}).items()}
    deciding: dict[str, object] = {
        "version": data["version"],
        "rules": [[r.name, r.measure, r.definition, r.view, r.min, r.max] for r in rules],
    }
    edits_digest = ""
    if edits:
        deciding["edits"] = [edit.deciding() for edit in edits]
        edits_digest = digest_of(deciding["edits"])
    if languages:
        deciding["languages"] = {
            code: {
                "bounds": {name: None if bounds is None else list(bounds) for name, bounds in table.bounds.items()},
                "stop_words": sorted(table.stop_words),
            }
            for code, table in languages.items()
        }
    return RuleSet(path.stem, data["version"], digest_of(deciding), rules, edits, edits_digest, languages)


def _language_rules(table: Mapping[str, object]) -> LanguageRules:
    bounds: dict[str, Bounds | None] = {}
    stop_words: tuple[str, ...] = ()
    for key, value in table.items():
        if key == "stop_words":
            assert isinstance(value, list)
            stop_words = tuple(value)
        else:
            bounds[key] = (value.get("min"), value.get("max")) if isinstance(value, dict) else None
    return LanguageRules(bounds, stop_words)


def apply_rules(
    measures: pa.RecordBatch, rules: RuleSet, language: pa.Array | None = None
) -> tuple[pa.Array, pa.Array, pa.Array, pa.Array]:
    """What each document breaks. A measure that is null or NaN breaks every rule on it.

    Args:
        measures: one row per document, one column per measure (`Rule.column`): of the raw text by its name, of the
            clean one as `clean.<name>`, of other groups by its name.
        rules: in funnel order; a document is counted against its first broken rule only.
        language: string[n], the document's language where known: the file's bounds for it hold. None: no language has
            bounds of its own.

    Returns:
        reason: string[n], the first broken rule, null where none is broken.
        failed: int64[n], bit i set where rule i is broken.
        value, bound: float64[n], the measure and the bound of the first broken rule; null where none is broken, the
            value also where there is none.

    Raises:
        UsageError: a rule reads a measure that the batch lacks.
    """
    rows = measures.num_rows
    first = np.full(rows, -1, np.int64)
    failed = np.zeros(rows, np.int64)
    value, bound = np.zeros(rows), np.zeros(rows)
    in_language = {code: _rows_in(language, code) for code in rules.languages} if language is not None else {}
    for i, rule in enumerate(rules.rules):
        measured = _measured(measures, rule, rules, in_language)
        low, high, on = _bounds(rows, rule, rules, in_language)
        broken = on & ~((measured >= low) & (measured <= high))
        failed |= broken.astype(np.int64) << i
        deciding = broken & (first < 0)
        first[deciding] = i
        value[deciding] = measured[deciding]
        decided = np.where((measured > high) | np.isneginf(low), high, low)
        bound[deciding] = decided[deciding]
    passed = first < 0
    names = np.array([*(rule.name for rule in rules.rules), None], dtype=object)  # the last for passed ones, -1
    return (
        pa.array(names[first], pa.string(), mask=passed),
        pa.array(failed),
        pa.array(value, mask=passed | np.isnan(value)),
        pa.array(bound, mask=passed),
    )


def _rows_in(language: pa.Array, code: str) -> NDArray[np.bool_]:
    return pc.fill_null(pc.equal(language, code), False).to_numpy(zero_copy_only=False)


def _measured(
    measures: pa.RecordBatch, rule: Rule, rules: RuleSet, in_language: Mapping[str, NDArray[np.bool_]]
) -> NDArray[np.float64]:
    measured = _column(measures, rule.column, rule)
    if rule.measure != STOP_WORD_MEASURE:
        return measured
    for code, here in in_language.items():
        if rules.languages[code].stop_words and here.any():
            measured = np.where(here, _column(measures, f"{rule.column}_{code}", rule), measured)
    return measured


def _column(measures: pa.RecordBatch, name: str, rule: Rule) -> NDArray[np.float64]:
    if name not in measures.schema.names:
        raise UsageError(
            f"rule {rule.name!r} reads measure {name!r}, which was not computed",
            f"there are {', '.join(measures.schema.names)}",
            "Let the recipe compute it (section judge), or take the rule out.",
        )
    return measures.column(name).cast(pa.float64()).to_numpy(zero_copy_only=False)


def _bounds(
    rows: int, rule: Rule, rules: RuleSet, in_language: Mapping[str, NDArray[np.bool_]]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """(at least, at most, whether the rule holds) for each document."""
    low = np.full(rows, -math.inf if rule.min is None else rule.min)
    high = np.full(rows, math.inf if rule.max is None else rule.max)
    on = np.ones(rows, bool)
    for code, here in in_language.items():
        if rule.name not in rules.languages[code].bounds:
            continue
        bounds = rules.languages[code].bounds[rule.name]
        if bounds is None:
            on &= ~here
            continue
        low[here] = -math.inf if bounds[0] is None else bounds[0]
        high[here] = math.inf if bounds[1] is None else bounds[1]
    return low, high, on
