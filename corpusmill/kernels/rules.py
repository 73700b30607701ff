"""Rules are data: a measure, a bound, a name. This reads rule files and tells, per document, what it breaks.

Measuring and deciding are separate, so moving a bound reads no text.
"""

from __future__ import annotations

import math
import re
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

DEFINITIONS = ("datatrove",)
"""Whose wording of the measures a bound is for; kernels/measures.py computes them."""

VIEWS = ("raw",)
"""Which text is measured: raw is the extracted text as it is stored."""

_FILE_KEYS = {"version", "definition", "view", "rule"}
_TEXTS = ("name", "measure", "definition", "view", "source", "says")
_BOUNDS = ("min", "max")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_MEASURES = frozenset(schema.MEASURES.names)


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


@dataclass(frozen=True)
class RuleSet:
    """A rule file: rules in the order of the funnel. `digest` covers what decides, not comments or sentences."""

    name: str
    version: int
    digest: str
    rules: tuple[Rule, ...]
    edits: tuple[Any, ...] = ()
    """What is cut from the text before view clean is measured (kernels/line_edits.py)."""
    edits_digest: str = ""
    """Of what decides the edits alone: moving a bound recomputes no edit. Empty where there are none."""


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
    yield from (f"{key}: unknown key" for key in sorted(set(data) - _FILE_KEYS))
    version = data.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        yield f"version: expected a whole number from 1 on, given {version!r}"
    if "definition" not in data:
        yield "definition: missing; it says whose definition of the measures the bounds are for"
    yield from _unknown_choice(data)
    entries = data.get("rule", [])
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        yield "rule: expected at least one [[rule]]"
        return
    if len(entries) > MAX_RULES:
        yield f"rule: {len(entries)} rules; a file may have {MAX_RULES}"
    seen: set[str] = set()
    for i, entry in enumerate(entries):
        name = entry.get("name")
        place = f"rule {i + 1}" + (f" ({name})" if isinstance(name, str) else "")
        yield from (f"{place}: {fault}" for fault in _rule_faults(entry))
        if isinstance(name, str) and (name in seen or name in schema.REASONS):
            yield f"{place}: the name is taken"
        seen.add(str(name))


def _rule_faults(entry: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"unknown key {key!r}" for key in sorted(set(entry) - {*_TEXTS, *_BOUNDS}))
    yield from (f"{key} is missing" for key in ("name", "measure", "says") if key not in entry)
    yield from (
        f"{key}: expected text, given {entry[key]!r}"
        for key in _TEXTS
        if key in entry and not (isinstance(entry[key], str) and entry[key].strip())
    )
    if isinstance(entry.get("name"), str) and not _NAME.fullmatch(entry["name"]):
        yield "name: expected small letters, digits and underscores"
    if isinstance(entry.get("measure"), str) and entry["measure"] not in _MEASURES:
        yield f"no measure {entry['measure']!r}"
    yield from _unknown_choice(entry)
    bounds = {key: entry[key] for key in _BOUNDS if key in entry}
    if not bounds:
        yield "expected min or max"
    wrong = {
        key: bound
        for key, bound in bounds.items()
        if isinstance(bound, bool) or not isinstance(bound, (int, float)) or not math.isfinite(bound)
    }
    yield from (f"{key}: expected a finite number, given {bound!r}" for key, bound in wrong.items())
    if len(bounds) == 2 and not wrong and bounds["min"] > bounds["max"]:
        yield f"min {bounds['min']} is above max {bounds['max']}"


def _unknown_choice(entry: Mapping[str, Any]) -> Iterator[str]:
    for key, known in (("definition", DEFINITIONS), ("view", VIEWS)):
        if key in entry and entry[key] not in known:
            yield f"{key}: expected one of {', '.join(known)}, given {entry[key]!r}"


def apply_rules(measures: pa.RecordBatch, rules: RuleSet) -> tuple[pa.Array, pa.Array, pa.Array, pa.Array]:
    """What each document breaks. A measure that is null or NaN breaks every rule on it.

    Args:
        measures: one row per document, one column per measure (schema.MEASURES).
        rules: in funnel order; a document is counted against its first broken rule only.

    Returns:
        reason: string[n], the first broken rule, null where none is broken.
        failed: int64[n], bit i set where rule i is broken.
        value, bound: float64[n], the measure and the bound of the first broken rule; null where none is broken, the
            value also where there is none.
    """
    rows = measures.num_rows
    first = np.full(rows, -1, np.int64)
    failed = np.zeros(rows, np.int64)
    value, bound = np.zeros(rows), np.zeros(rows)
    for i, rule in enumerate(rules.rules):
        measured = measures.column(rule.measure).cast(pa.float64()).to_numpy(zero_copy_only=False)
        low = -math.inf if rule.min is None else rule.min
        high = math.inf if rule.max is None else rule.max
        broken = ~((measured >= low) & (measured <= high))
        failed |= broken.astype(np.int64) << i
        deciding = broken & (first < 0)
        first[deciding] = i
        value[deciding] = measured[deciding]
        above = measured[deciding] > high
        bound[deciding] = np.where(above, high, low) if rule.min is not None else high
    passed = first < 0
    names = np.array([*(rule.name for rule in rules.rules), None], dtype=object)  # the last for passed ones, -1
    return (
        pa.array(names[first], pa.string(), mask=passed),
        pa.array(failed),
        pa.array(value, mask=passed | np.isnan(value)),
        pa.array(bound, mask=passed),
    )
