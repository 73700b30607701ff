"""The funnel of a dataset: what entered and left each stage, why the rest ended, and that it all adds up.

Read from a manifest alone. Documents add up at every row; text bytes and words too from `language` on, where every
number is counted on the same stored text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]


def faults(funnel: Sequence[Row]) -> list[str]:
    """Every way in which a funnel does not add up, as sentences; an empty list is a sound funnel."""
    found = []
    for row, following in zip(funnel, [*funnel[1:], None], strict=True):
        # Words are known on both sides where both are of the extracted text; bytes of text are then comparable, too.
        of_text = row["words_in"] is not None and row["words_out"] is not None
        units = ("docs", "bytes", "words") if of_text else ("docs",)
        for unit in units:
            came, left = row[f"{unit}_in"], row[f"{unit}_out"]
            ended = sum(counts.get(unit, 0) for counts in row["reasons"].values())
            if came != left + ended:
                found.append(f"stage {row['stage']}: {came} {unit} in, {left} out, {ended} with a reason")
        for unit in ("docs", "bytes") if following else ():
            if row[f"{unit}_out"] != following[f"{unit}_in"]:  # type: ignore[index]
                found.append(
                    f"{row[f'{unit}_out']} {unit} leave {row['stage']}, "
                    f"{following[f'{unit}_in']} enter {following['stage']}"  # type: ignore[index]
                )
    return found


def document(digest: str, funnel: Sequence[Row]) -> dict[str, Any]:
    """The funnel for programs."""
    return {"manifest": digest, "stages": [dict(row) for row in funnel]}


def rows(funnel: Sequence[Row]) -> list[tuple[str, int, int | None, str, int | None]]:
    """(what, documents, documents out, share of all, bytes out): a line a stage, its reasons under it, most first."""
    total = max((row["docs_in"] for row in funnel), default=0)
    lines: list[tuple[str, int, int | None, str, int | None]] = []
    for row in funnel:
        share = f"{100 * row['docs_out'] / total:.1f} %" if total else ""
        lines.append((row["stage"], row["docs_in"], row["docs_out"], share, row["bytes_out"]))
        for reason, counts in sorted(row["reasons"].items(), key=lambda item: (-item[1]["docs"], item[0])):
            lines.append((f"  {reason}", counts["docs"], None, "", None))
    return lines
