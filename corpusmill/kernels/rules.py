"""Rules are data: a measure, a bound, a name. This reads rule files and tells, per document, what it breaks.

Measuring and deciding are separate, so moving a bound reads no text.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from corpusmill import schema
from corpusmill.canonical import digest_of
from corpusmill.errors import NotFound, UsageError

MAX_RULES = 62
"""Bits of `failed_rules` that stay positive in an int64."""

_KEYS = {"name", "measure", "definition", "view", "min", "max", "source", "says"}
_MEASURES = frozenset(schema.MEASURES.names)


@dataclass(frozen=True)
class Rule:
    """One bound (inclusive) on one measure. The name is the reason that a document it ends is counted under."""

    name: str
    measure: str
    definition: str
    view: str
    min: float | None
    max: float | None
    source: str
    says: str

    @property
    def bound(self) -> float:
        """The bound's value."""
        return self.min if self.min is not None else self.max  # type: ignore[return-value]


@dataclass(frozen=True)
class RuleSet:
    """A rule file: rules in the order of the funnel. `digest` covers what decides, not comments or sentences."""

    name: str
    version: int
    digest: str
    rules: tuple[Rule, ...]


def load_rules(path: Path) -> RuleSet:
    """Read and check a rule file.

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
    faults = list(_faults(data))
    if faults:
        raise UsageError(
            f"{path}: {len(faults)} fault{'s' if len(faults) > 1 else ''} in the rules",
            "\n".join(f"  {fault}" for fault in faults),
            f"Measures: {', '.join(schema.MEASURES.names)}",
        )
    shared = {"definition": data["definition"], "view": data.get("view", "raw"), "source": "", "min": None, "max": None}
    rules = tuple(Rule(**{**shared, **entry}) for entry in data["rule"])
    deciding = [[r.name, r.measure, r.definition, r.view, r.min, r.max] for r in rules]
    return RuleSet(path.stem, data["version"], digest_of({"version": data["version"], "rules": deciding}), rules)


def _faults(data: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted(set(data) - {"version", "definition", "view", "rule"}):
        yield f"{key}: unknown key"
    if not isinstance(data.get("version"), int):
        yield f"version: expected an integer, given {data.get('version')!r}"
    if not isinstance(data.get("definition"), str):
        yield "definition: missing; it says whose definition of the measures the bounds are for"
    entries = data.get("rule", [])
    if not isinstance(entries, list) or not entries:
        yield "rule: expected at least one [[rule]]"
        return
    if len(entries) > MAX_RULES:
        yield f"rule: {len(entries)} rules; a file may have {MAX_RULES}"
    seen: set[str] = set()
    for i, entry in enumerate(entries):
        place = f"rule[{i}]" + (f" {entry['name']}" if isinstance(entry.get("name"), str) else "")
        yield from (f"{place}: unknown key {key!r}" for key in sorted(set(entry) - _KEYS))
        yield from (f"{place}: {key} is missing" for key in ("name", "measure", "says") if key not in entry)
        if entry.get("name") in seen or entry.get("name") in schema.REASONS:
            yield f"{place}: the name is taken"
        seen.add(str(entry.get("name")))
        if "measure" in entry and entry["measure"] not in _MEASURES:
            yield f"{place}: no measure {entry['measure']!r}"
        if ("min" in entry) == ("max" in entry):
            yield f"{place}: expected either min or max"
        for bound in ("min", "max"):
            if bound in entry and (isinstance(entry[bound], bool) or not isinstance(entry[bound], (int, float))):
                yield f"{place}: {bound} is not a number, given {entry[bound]!r}"


def apply_rules(measures: pa.RecordBatch, rules: RuleSet) -> tuple[pa.Array, pa.Array, pa.Array, pa.Array]:
    """What each document breaks.

    Args:
        measures: one row per document, one column per measure (schema.MEASURES).
        rules: in funnel order; a document is counted against its first broken rule only.

    Returns:
        reason: string[n], the first broken rule, null where none is broken.
        failed: int64[n], bit i set where rule i is broken.
        value, bound: float64[n], of the first broken rule, null where none is broken. Null and NaN break every rule.
    """
    rows = measures.num_rows
    first = np.full(rows, -1, np.int64)
    failed = np.zeros(rows, np.int64)
    value = np.zeros(rows)
    for i, rule in enumerate(rules.rules):
        measured = measures.column(rule.measure).cast(pa.float64()).to_numpy(zero_copy_only=False)
        low = -np.inf if rule.min is None else rule.min
        high = np.inf if rule.max is None else rule.max
        broken = ~((measured >= low) & (measured <= high))
        failed |= broken.astype(np.int64) << i
        deciding = broken & (first < 0)
        first[deciding] = i
        value[deciding] = measured[deciding]
    passed = first < 0
    names = np.array([rule.name for rule in rules.rules], dtype=object)
    bounds = np.array([rule.bound for rule in rules.rules], dtype=np.float64)
    return (
        pa.array(names[first], pa.string(), mask=passed),
        pa.array(failed),
        pa.array(value, mask=passed | np.isnan(value)),
        pa.array(bounds[first], mask=passed),
    )
