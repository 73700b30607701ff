"""Rows with named columns: which column becomes which field of a document, and what is counted of the others.

A row costs its own faults only: an optional value that has no form is null and counted, a text that is none costs the
row. Names may lead into columns within columns (`content.text`); a column that is really called so comes first.
"""

from __future__ import annotations

import datetime
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from corpusmill.config import Rows
from corpusmill.readers.dates import instant
from corpusmill.readers.outcomes import Outcome, ReadOptions
from corpusmill.readers.records import MAX_COLUMNS, FileFacts
from corpusmill.readers.text import clean_text
from tasks.acquire.texts import cell, document, ended

VERSION = 2
FIELDS = {"id": "source_id", "url": "url", "date": "date", "title": "title", "author": "author", "licence": "licence"}
"""Key of the recipe -> field of a document."""
USUAL = {"licence": ("licence", "license")}
"""Names of the column where the recipe gives none, if they are not that of the key."""
MAX_CELL = 2**16
"""Characters of a value beside the text; a longer one is not read."""
MAX_SHAPES = 100
TYPES = {str: "string", bool: "boolean", int: "number", float: "number", dict: "object", list: "array"}


class Unread:
    """A value that a reader could not convert: why, and what it shows of it."""

    def __init__(self, reason: str, shown: str) -> None:
        self.reason, self.shown = reason, shown

    def __str__(self) -> str:
        return self.shown


def reading(config: Rows) -> dict[str, object]:
    """Which columns are read, and how."""
    names = {key: getattr(config, key) for key in ("text", *FIELDS, "day_first")}
    return {"version": VERSION, **names, "columns": list(config.columns)}


class RowReader:
    """Outcomes of rows by the columns that the recipe names; `count` and `done` note columns in the facts of the file.

    Args:
        config: which column is what.
        options: bounds.
        facts: of the file.
        extractor: what documents say made their text.
    """

    def __init__(self, config: Rows, options: ReadOptions, facts: FileFacts, extractor: str) -> None:
        self._options, self._facts, self._extractor = options, facts, extractor
        self.text, self._own, self._day_first = config.text, config.columns, config.day_first
        named = {key: getattr(config, key) for key in FIELDS}
        self._fields = [
            (FIELDS[key], (name,) if name is not None else USUAL.get(key, (key,))) for key, name in named.items()
        ]
        self.becomes = dict.fromkeys(self._own, "columns")
        self.becomes |= {name: field for field, names in reversed(self._fields) for name in names}
        self.becomes[self.text] = "text"
        self.named = (self.text, *(name for name in named.values() if name is not None), *self._own)
        for name in self.named:  # a name that no row has is to be seen, too
            facts.column(name, "", self.becomes[name])
        paths = [name.split(".") for name in self.becomes if "." in name]
        self._inner = {".".join(path[:depth]) for path in paths for depth in range(1, len(path))}
        self._shapes: Counter[tuple[str, ...]] = Counter()
        self._nulls: Counter[str] = Counter()
        self._present: dict[tuple[str, ...], list[tuple[str, str]]] = {}
        self._types: dict[str, str] = {}

    def outcome(self, row: Mapping[str, Any], size: int, **place: Any) -> Outcome:
        """The outcome of a row.

        Args:
            row: column -> value: as of JSON, a date as text, or Unread.
            size: payload bytes to count where there is no text.
            place: fields of Outcome.
        """
        present = self._present.get(tuple(row))
        for field, name in self._fields_of(row) if present is None else present:
            if (value := row[name] if name in row else self._value(row, name)) is not None and field not in place:
                if type(value) is str and field != "date" and 0 < len(value) <= MAX_CELL:
                    place[field] = value if value.isascii() and value.isprintable() else clean_text(value)[0] or None
                else:
                    place[field] = self._read(field, name, value)
        if self._own:
            place["columns"] = self._kept(row)
        text = row[self.text] if self.text in row else self._value(row, self.text)
        if isinstance(text, str):
            return document(text, self._options, **place, extractor=self._extractor)
        if text is not None:
            self._unread(self.text, text)
        return ended(text.reason if isinstance(text, Unread) else "no_text_column", **place, payload_bytes=size)

    def count(self, row: Mapping[str, Any]) -> None:
        """Count the values of a row by column. Rows of the same columns are counted together."""
        shape = tuple(_names(row, self._inner)) if self._inner else tuple(row)
        if shape not in self._shapes:
            if len(self._shapes) >= MAX_SHAPES:
                self.done()
            for name in shape:
                if name not in self._types and len(self._types) < MAX_COLUMNS:
                    self._types[name] = TYPES.get(type(self._value(row, name)), "")
        self._shapes[shape] += 1
        if None in row.values():
            self._nulls.update(name for name, value in row.items() if value is None)

    def done(self) -> None:
        """Note what was counted."""
        counts = -self._nulls
        counts.subtract(self._nulls)
        for shape, number in self._shapes.items():
            counts.update(dict.fromkeys(shape, number))
        for name, number in counts.items():
            self._facts.column(name, self._types.get(name, ""), self.becomes.get(name)).values += number
        self._shapes.clear()
        self._nulls.clear()

    def _fields_of(self, row: Mapping[str, Any]) -> list[tuple[str, str]]:
        """(field, column) that a row with these columns may fill; remembered by its columns."""
        if len(self._present) >= MAX_SHAPES:
            self._present.clear()
        here = [
            (f, name) for f, names in self._fields for name in names if name.partition(".")[0] in row or name in row
        ]
        return self._present.setdefault(tuple(row), here)

    def _value(self, row: Mapping[str, Any], name: str) -> Any:
        value = row.get(name)
        if value is None and "." in name:
            value = row
            for step in name.split("."):
                value = value.get(step) if isinstance(value, dict) else None
        return value

    def _read(self, field: str, name: str, value: Any) -> str | None:
        """A value as the text of a field; None, and counted, where it has no form."""
        if field == "author" and isinstance(value, list) and all(isinstance(part, str) for part in value):
            value = ", ".join(value)
        text = cell(value) if not isinstance(value, str) or len(value) <= MAX_CELL else None
        if text and field == "date":
            text = instant(text, day_first=self._day_first)
        if text is None and value != "":
            self._unread(name, value)
        return text

    def _kept(self, row: Mapping[str, Any]) -> str | None:
        """The columns that the recipe names, as a JSON object; those without a value are not in it."""
        parts = []
        for name in self._own:
            if (value := self._value(row, name)) is not None:
                try:
                    text = json.dumps(plain(value), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
                except (ValueError, RecursionError):
                    text = ""
                if 0 < len(text) <= MAX_CELL:
                    parts.append(f"{json.dumps(name, ensure_ascii=False)}:{text}")
                else:
                    self._unread(name, value)
        return clean_text("{" + ",".join(parts) + "}")[0] if parts else None

    def _unread(self, name: str, value: Any) -> None:
        self._facts.column(name, TYPES.get(type(value), ""), self.becomes.get(name)).unread(shown(value))


def shown(value: Any) -> str:
    """A value for people, in a few characters; a number may be too long to be written out."""
    try:
        text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    except (ValueError, RecursionError):
        text = type(value).__name__
    return text


def plain(value: Any) -> Any:
    """A value as JSON has it: texts clean, bytes as UTF-8, times by ISO 8601, other types as they are written.

    Raises:
        ValueError: it has no such form. RecursionError: it is nested too deep.
    """
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("not a number")
        return value
    if isinstance(value, bytes):
        value = value.decode("utf-8")
    if isinstance(value, str):
        return clean_text(value)[0]
    if isinstance(value, Mapping):
        return {clean_text(str(key))[0]: plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if isinstance(value, Unread):
        raise ValueError(value.reason)
    return value.isoformat() if isinstance(value, (datetime.date, datetime.time)) else str(value)


def _names(row: Mapping[str, Any], inner: set[str], above: str = "") -> Iterator[str]:
    """Names of the columns with values; of those that a name of the recipe leads into, the columns within."""
    for key, value in row.items():
        name = above + key
        if name in inner and isinstance(value, dict):
            yield from _names(value, inner, f"{name}.")
        else:
            yield name
