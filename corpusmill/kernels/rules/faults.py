"""What can be wrong with a rule file: every fault of it at once, each with its place."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from corpusmill.kernels.edits.rules import edit_faults, text_faults
from corpusmill.kernels.measures.families import BASE, DEFINITIONS, FAMILIES, FAMILY_OF

MAX_RULES = 62
"""Bits of `failed_rules` that stay positive in an int64."""

VIEWS = ("raw", "clean")
"""Which text is measured: raw is the extracted text as it is stored, clean the same after the file's edits."""

OTHER_MEASURES = re.compile(r"removed_words|removed_word_ratio|perplexity\w*|(language|quality|own|pii)_[a-z0-9._-]+")
"""Measures of other attribute groups, which rules may read too; whether they exist is known with a recipe."""

_FILE_KEYS = {"version", "definition", "view", "rule", "edit", "language"}
_TEXTS = ("name", "measure", "definition", "view", "source", "says")
_BOUNDS = ("min", "max")


def file_faults(data: Mapping[str, Any]) -> Iterator[str]:
    """Everything that is wrong with a rule file, read from TOML."""
    yield from (f"{key}: unknown key" for key in sorted(set(data) - _FILE_KEYS))
    version = data.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        yield f"version: expected a whole number from 1 on, given {version!r}"
    if "definition" not in data:
        yield "definition: missing; it says whose definition of the measures the bounds are for"
    yield from _unknown_choice(data)
    edits = data.get("edit", [])
    if not isinstance(edits, list) or not all(isinstance(entry, dict) for entry in edits):
        yield "edit: expected [[edit]] entries"
        edits = []
    yield from _entries("edit", edits, edit_faults)
    entries = data.get("rule", [])
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        yield "rule: expected at least one [[rule]]"
        return
    if len(entries) > MAX_RULES:
        yield f"rule: {len(entries)} rules; a file may have {MAX_RULES}"
    shared = {key: data[key] for key in ("definition", "view") if key in data}
    yield from _entries("rule", entries, lambda entry: _rule_faults(entry, shared, bool(edits)))
    yield from _language_faults(data.get("language", {}), entries)


def _entries(kind: str, entries: list[dict[str, Any]], faults: Any) -> Iterator[str]:
    seen: set[str] = set()
    for i, entry in enumerate(entries):
        name = entry.get("name")
        place = f"{kind} {i + 1}" + (f" ({name})" if isinstance(name, str) else "")
        yield from (f"{place}: {fault}" for fault in faults(entry))
        if isinstance(name, str) and name in seen:
            yield f"{place}: the name is taken"
        seen.add(str(name))


def _rule_faults(entry: Mapping[str, Any], shared: Mapping[str, Any], edited: bool) -> Iterator[str]:
    yield from (f"unknown key {key!r}" for key in sorted(set(entry) - {*_TEXTS, *_BOUNDS}))
    yield from text_faults(entry, ("name", "measure", "says"), _TEXTS)
    yield from _unknown_choice(entry)
    yield from _measure_faults(entry, {**shared, **entry}, edited)
    bounds = {key: entry[key] for key in _BOUNDS if key in entry}
    if not bounds:
        yield "expected min or max"
    yield from _bound_faults(bounds)


def _measure_faults(entry: Mapping[str, Any], whole: Mapping[str, Any], edited: bool) -> Iterator[str]:
    measure, definition = entry.get("measure"), whole.get("definition")
    if not isinstance(measure, str):
        return
    known = measure in BASE or measure in FAMILY_OF
    if not known and not OTHER_MEASURES.fullmatch(measure):
        yield f"no measure {measure!r}"
    if measure in FAMILY_OF and definition in DEFINITIONS:
        own = FAMILIES[FAMILY_OF[measure]].definition
        if own != definition:
            like = f"{definition}_{measure.removeprefix(f'{own}_')}"
            hint = f"; {definition} has {like}" if like in FAMILY_OF else ""
            yield f"{measure} is a measure of definition {own}, not {definition}{hint}"
    if known and whole.get("view") == "clean" and not edited:
        yield "view: clean is the text after the file's edits, and it has none"


def _bound_faults(bounds: Mapping[str, Any]) -> Iterator[str]:
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


def _language_faults(languages: Any, rules: list[dict[str, Any]]) -> Iterator[str]:
    if not isinstance(languages, dict) or not all(isinstance(table, dict) for table in languages.values()):
        yield "language: expected [language.CODE] tables"
        return
    names = {rule.get("name") for rule in rules}
    for code, table in languages.items():
        for key, value in table.items():
            place = f"language.{code}.{key}"
            if key == "stop_words":
                if not (isinstance(value, list) and value and all(isinstance(w, str) and w.strip() for w in value)):
                    yield f"{place}: expected a list of words, given {value!r}"
            elif key not in names:
                yield f"{place}: no rule of this name in the file"
            elif value is not False:
                if not isinstance(value, dict) or not value or set(value) - set(_BOUNDS):
                    yield f"{place}: expected min, max or both, or false, given {value!r}"
                else:
                    yield from (f"{place}: {fault}" for fault in _bound_faults(value))
