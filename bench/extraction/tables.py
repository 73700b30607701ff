"""What bench/extraction prints: sets and macro means, differences, then F1 by type and language, and structure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from corpusmill.plain_text import table

OURS = ("auto", "fast", "union")
_FIGURES = ("f1", "precision", "recall")


def shown(document: Mapping[str, Any], modes: Sequence[str]) -> str:
    """The whole result as text."""
    rows = [
        _row(f"{name}{'*' if by_mode[mode]['trained_on'] and mode in OURS else ''}", mode, by_mode[mode])
        for name, by_mode in document["sets"].items()
        for mode in modes
    ]
    rows += [_row("macro", mode, document["macro"][mode]) for mode in modes]
    text = table(("set", "mode", "pages", "F1", "P", "R", "empty %", "ms"), rows, numbers=(2, 3, 4, 5, 6, 7))
    for mode, d in document["minus_trafilatura"].items():
        text += f"\n{mode} minus trafilatura: {d['difference']:+.3f} [{d['low']:+.3f}, {d['high']:+.3f}]"
    for name, by_mode in document["sets"].items():
        for key in ("by_type", "by_language", "structure"):
            if any(key in figures for figures in by_mode.values()):
                text += f"\n\n{name}\n{_groups(by_mode, key, modes)}"
    return text + _published(document.get("published", {}))


def _row(name: str, mode: str, figures: Mapping[str, Any]) -> tuple[Any, ...]:
    numbers = (_number(figures[key]) for key in _FIGURES)
    return (name, mode, figures.get("pages", ""), *numbers, f"{100 * figures['empties']:.1f}", f"{figures['ms']:.2f}")


def _groups(by_mode: Mapping[str, Mapping[str, Any]], key: str, modes: Sequence[str]) -> str:
    """F1 (or recall) of each group, a column a mode."""
    names = sorted({name for figures in by_mode.values() for name in figures.get(key, {})})
    pages = by_mode[modes[0]].get(f"pages_{key}", {})
    rows = [(n, pages.get(n, ""), *(_number(by_mode[m].get(key, {}).get(n)) for m in modes)) for n in names]
    return table((key, "pages", *modes), rows, numbers=tuple(range(1, len(modes) + 2)))


def _published(rows: Mapping[str, Any]) -> str:
    text = ""
    for name, row in rows.items():
        said = row["published"]
        ours, theirs = (" / ".join(_number(values[key]) for key in _FIGURES) for values in (row, said))
        text += f"\n\n{name}, 4-gram F1 / P / R on {row['pages']} pages: {ours}"
        text += f"\npublished, on {said['pages']} pages: {theirs}"
        text += "" if row["same"] is None else f" ({'reproduced' if row['same'] else 'NOT reproduced'})"
    return text


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
