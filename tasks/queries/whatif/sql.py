"""Bounds as SQL over the measures of documents."""

from __future__ import annotations

from corpusmill.kernels.rules.bounds import Bound


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def broken(bound: Bound) -> str:
    """Whether a document breaks a bound, as SQL; a null breaks it."""
    if bound.is_none:
        return "false"
    if bound.among:
        return f"NOT coalesce({quoted(bound.column)} IN ({', '.join(map(_text, bound.among))}), false)"
    column = quoted(bound.column)
    if bound.columns:
        cases = " ".join(f"WHEN {_text(code)} THEN {quoted(name)}" for code, name in sorted(bound.columns.items()))
        column = f"(CASE language {cases} ELSE {column} END)"
    own = {code: "false" if b is None else _outside(column, *b) for code, b in sorted(bound.by_language.items())}
    plain = _outside(column, bound.low, bound.high)
    if not own:
        return plain
    return (
        f"(CASE language {' '.join(f'WHEN {_text(code)} THEN {test}' for code, test in own.items())} ELSE {plain} END)"
    )


def _outside(column: str, low: float | None, high: float | None) -> str:
    tests = [f"{column} >= {low!r}::DOUBLE"] if low is not None else []
    tests += [f"{column} <= {high!r}::DOUBLE"] if high is not None else []
    return f"NOT coalesce({' AND '.join(tests) or f'{column} IS NOT NULL'}, false)"
