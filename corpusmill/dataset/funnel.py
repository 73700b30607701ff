"""The funnel of a dataset: what entered and left each stage, why the rest ended, and that it all adds up.

Read from a manifest alone. Documents add up at every row; text bytes and words too from `language` on, where every
number is counted on the same stored text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from corpusmill.typed_json import written


@dataclass(frozen=True)
class Ended:
    """Documents that end for one reason, their bytes and, where they were counted, words."""

    docs: int
    bytes: int
    words: int | None = None


@dataclass(frozen=True)
class FunnelRow:
    """What entered and left one stage, and why the rest ended; words are None before they are counted."""

    stage: str
    docs_in: int
    docs_out: int
    bytes_in: int
    bytes_out: int
    words_in: int | None
    words_out: int | None
    reasons: Mapping[str, Ended]

    @property
    def has_text(self) -> bool:
        """Whether documents have their text when they enter: words are counted from then on."""
        return self.words_in is not None

    @property
    def by_frequency(self) -> list[tuple[str, Ended]]:
        """The reasons, those that end most documents first."""
        return sorted(self.reasons.items(), key=lambda item: (-item[1].docs, item[0]))

    def sums(self, unit: str) -> tuple[int, int, int]:
        """Docs, bytes or words (those that were not counted as 0): what came, what left, what ended with a reason."""
        came, left = getattr(self, f"{unit}_in") or 0, getattr(self, f"{unit}_out") or 0
        return came, left, sum(getattr(ended, unit) or 0 for ended in self.reasons.values())


def faults(funnel: Sequence[FunnelRow]) -> list[str]:
    """Every way in which a funnel does not add up, as sentences; an empty list is a sound funnel."""
    found = []
    for row, following in zip(funnel, [*funnel[1:], None], strict=True):
        # Words are known on both sides where both are of the extracted text; bytes of text are then comparable, too.
        of_text = row.has_text and row.words_out is not None
        for unit in ("docs", "bytes", "words") if of_text else ("docs",):
            came, left, ended = row.sums(unit)
            if came != left + ended:
                found.append(f"stage {row.stage}: {came} {unit} in, {left} out, {ended} with a reason")
        for unit in ("docs", "bytes") if following else ():
            left, came = row.sums(unit)[1], following.sums(unit)[0]  # type: ignore[union-attr]
            if left != came:
                found.append(f"{left} {unit} leave {row.stage}, {came} enter {following.stage}")  # type: ignore[union-attr]
    return found


def document(digest: str, funnel: Sequence[FunnelRow]) -> dict[str, Any]:
    """The funnel for programs."""
    return {"manifest": digest, "stages": written(funnel)}


def rows(funnel: Sequence[FunnelRow]) -> list[tuple[str, int, int | None, str, int | None]]:
    """(what, documents, documents out, share of all, bytes out): a line a stage, its reasons under it, most first."""
    total = max((row.docs_in for row in funnel), default=0)
    lines: list[tuple[str, int, int | None, str, int | None]] = []
    for row in funnel:
        share = f"{100 * row.docs_out / total:.1f} %" if total else ""
        lines.append((row.stage, row.docs_in, row.docs_out, share, row.bytes_out))
        for reason, ended in row.by_frequency:
            lines.append((f"  {reason}", ended.docs, None, "", None))
    return lines
