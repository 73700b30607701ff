"""Rules are data: a measure, a bound, a name. This reads rule files; kernels/bounds.py tells what a document breaks.

Measuring and deciding are separate, so moving a bound reads no text. A file may also cut the text before it is measured
(edits) and have other bounds for some languages.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from corpusmill.canonical import digest_of
from corpusmill.errors import NotFound, UsageError
from corpusmill.kernels.edits.rules import EditRule, make_edit
from corpusmill.kernels.measures.families import BASE, FAMILIES, FAMILY_OF, STOP_WORD_MEASURE, MeasureSpec, families_for
from corpusmill.kernels.rules.bounds import Bound, Limits
from corpusmill.kernels.rules.faults import VIEWS, file_faults


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

    bounds: Mapping[str, Limits | None]
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

    def bounds(self) -> tuple[Bound, ...]:
        """What the rules decide by, in their order."""
        found = []
        for i, rule in enumerate(self.rules):
            own = {code: table.bounds[rule.name] for code, table in self.languages.items() if rule.name in table.bounds}
            lists = {code: f"{rule.column}_{code}" for code, table in self.languages.items() if table.stop_words}
            columns = lists if rule.measure == STOP_WORD_MEASURE else {}
            found.append(Bound("filter", rule.name, rule.column, rule.min, rule.max, own, columns, rule=i))
        return tuple(found)


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
    bounds: dict[str, Limits | None] = {}
    stop_words: tuple[str, ...] = ()
    for key, value in table.items():
        if key == "stop_words":
            assert isinstance(value, list)
            stop_words = tuple(value)
        else:
            bounds[key] = (value.get("min"), value.get("max")) if isinstance(value, dict) else None
    return LanguageRules(bounds, stop_words)
