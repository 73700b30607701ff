"""The sample of rejected documents that every dataset carries, for programs and for people."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from corpusmill.dataset.manifest import Manifest
from corpusmill.errors import NotFound, UsageError
from corpusmill.plain_text import one_line
from corpusmill.store import Store

WIDTH = 110
OWN = (("id", "source_id"), *((name, name) for name in ("date", "title", "author", "licence", "columns")))
"""What a row says of itself, and the field it is in."""
BAR = "  | "
EXCERPT_LINES = 8
"""Lines of a text that are shown; what is cut off is marked."""


def sample(store: Store, manifest: Manifest, reason: str | None, number: int) -> list[dict[str, Any]]:
    """Rejected documents, the first `number` of each reason in the order of the seeded sample.

    Args:
        reason: this one only; None takes all.

    Returns:
        rows of schema.REJECTS with ids as hex.

    Raises:
        NotFound: nothing ended for this reason. UsageError: `number` is not positive.
    """
    if number < 1:
        raise UsageError(f"-n {number}", "expected a positive number")
    if "rejects" not in manifest.tables:
        raise NotFound(
            f"dataset {manifest.name} has no sample of rejects",
            "its documents were not judged yet",
            "`mill export --all` shows where and why every record ended.",
        )
    rows = store.table(manifest.table("rejects")).to_pylist()
    known = sorted({row["reason"] for row in rows})
    if reason is not None and reason not in known:
        raise NotFound(f"no document ended for {reason!r}", f"reasons of this dataset: {', '.join(known) or 'none'}")
    taken: dict[tuple[str, str], int] = {}
    found = []
    for row in rows:
        key = (row["stage"], row["reason"])
        taken[key] = taken.get(key, 0) + 1
        if reason in (None, row["reason"]) and taken[key] <= number:
            hexed = {name: value.hex() if isinstance(value, bytes) else value for name, value in row.items()}
            del hexed["order"]  # the seeded hash that chose it says nothing to a reader
            found.append(hexed)
    return found


def written_out(rows: Sequence[Mapping[str, Any]]) -> str:
    """The sample as text: one paragraph a document, control characters as spaces."""
    return "\n\n".join(_one(row) for row in rows) or "Nothing was rejected."


def _one(row: Mapping[str, Any]) -> str:
    lines = [f"{row['stage']} / {row['reason']}   {plain(row['url'] or '(no URL)')}"]
    facts = [f"{one_line(row['locator'])} at byte {row['offset']:,}"]
    if row["value"] is not None:
        facts.append(f"value {row['value']:.4g}" + (f", bound {row['bound']:.4g}" if row["bound"] is not None else ""))
    for name in ("language", "benchmark", "keeper"):
        if row[name]:
            facts.append(f"{name} {row[name]}")
    facts += [f"{name} {plain(row[field])[:WIDTH]}" for name, field in OWN if row.get(field)]
    if row["similarity"] is not None:
        facts.append(f"similarity {row['similarity']:.3f}")
    lines.append("  " + "; ".join(facts))
    lines += excerpt(row["text"] or "")
    if row.get("keeper_text"):
        lines.append(f"  kept: {plain(row['keeper_url'] or '(no URL)')}")
        lines += excerpt(row["keeper_text"])
    return "\n".join(lines)


def excerpt(text: str) -> list[str]:
    """The beginning of a text behind bars: its own lines, long ones wrapped, several empty ones as one."""
    shown: list[str] = []
    for line in text.strip().splitlines():
        wrapped = textwrap.wrap(plain(line), WIDTH - len(BAR)) or [""]
        shown += wrapped if wrapped != [""] or shown[-1] else []
        if len(shown) > EXCERPT_LINES:
            shown = [*shown[: EXCERPT_LINES - 1], f"{shown[EXCERPT_LINES - 1]} ..."]
            break
    return [f"{BAR}{line}".rstrip() for line in shown]


def plain(text: str) -> str:
    """Crawled text must not drive the terminal: what is not printable becomes a space."""
    return "".join(c if c.isprintable() else " " for c in text)
