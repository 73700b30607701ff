"""Where a key stands in a TOML file: tomllib tells values, not lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

_PART = r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)"""
_KEYS = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_KEYS})\s*\]")
_KEY = re.compile(rf"\s*({_KEYS})\s*=")
_MANY_LINES = re.compile('"""|' + "'''")


def line_of(text: str, key: Sequence[str | int]) -> int | None:
    """The line, from 1, of a key, or of the nearest section around it that has one; None: only the file does."""
    found = _lines(text)
    for length in range(len(key), 0, -1):
        if line := found.get(tuple(key[:length])):
            return line
    return None


@lru_cache(maxsize=4)
def _lines(text: str) -> dict[tuple[str | int, ...], int]:
    found: dict[tuple[str | int, ...], int] = {}
    tables: Counter[tuple[str | int, ...]] = Counter()
    table: tuple[str | int, ...] = ()
    inside = False  # a text of several lines
    for number, line in enumerate(text.split("\n"), 1):
        if inside:
            inside = len(_MANY_LINES.findall(line)) % 2 == 0
            continue
        inside = len(_MANY_LINES.findall(line)) % 2 == 1
        if header := _HEADER.match(line):
            table = _within(_parts(header[2]), tables)
            if header[1] == "[[":
                tables[table] += 1
                table = (*table, tables[table] - 1)
            found.setdefault(table, number)
        elif key := _KEY.match(line):
            parts = _parts(key[1])
            for length in range(1, len(parts) + 1):
                found.setdefault((*table, *parts[:length]), number)
    return found


def _within(parts: Sequence[str], tables: Counter[tuple[str | int, ...]]) -> tuple[str | int, ...]:
    """A header's path, with the number of each list of tables that it goes through."""
    path: tuple[str | int, ...] = ()
    for place, part in enumerate(parts):
        path = (*path, part)
        if path in tables and place < len(parts) - 1:
            path = (*path, tables[path] - 1)
    return path


def _parts(keys: str) -> list[str]:
    return [part.strip("\"'") for part in re.findall(_PART, keys)]
