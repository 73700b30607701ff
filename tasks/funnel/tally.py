"""Rows of the funnel: units count documents in and out and the reasons of the rest; publication adds them up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from corpusmill.dataset import funnel
from corpusmill.dataset.funnel import Ended, FunnelRow
from corpusmill.errors import CheckFailed
from corpusmill.store import Receipt
from tasks import stages


@dataclass
class Tally:
    """Documents, bytes and words that enter and leave one funnel row, and by which reason the others end."""

    row: str
    counts: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, Counter[str]] = field(default_factory=dict)

    def add_in(self, docs: int, size: int, words: int = 0) -> None:
        """Count what enters."""
        self.counts.update(docs_in=docs, bytes_in=size, words_in=words)

    def add_out(self, docs: int, size: int, words: int = 0) -> None:
        """Count what is kept."""
        self.counts.update(docs_out=docs, bytes_out=size, words_out=words)

    def add_reason(self, reason: str, docs: int, size: int, words: int = 0) -> None:
        """Count what ends here, and why."""
        self.reasons.setdefault(reason, Counter()).update(docs=docs, bytes=size, words=words)

    def counters(self) -> dict[str, int]:
        """For a receipt: `row.docs_in` and so on."""
        return {f"{self.row}.{name}": self.counts[name] for name in COUNTS}

    def reason_counts(self) -> dict[str, dict[str, int]]:
        """For a receipt."""
        return {reason: dict(counts) for reason, counts in sorted(self.reasons.items())}


COUNTS = ("docs_in", "docs_out", "bytes_in", "bytes_out", "words_in", "words_out")


def merged(receipts: Sequence[Receipt], row: str) -> dict[str, int]:
    """Counters of one funnel row, summed over receipts."""
    return {name: sum(r.counters.get(f"{row}.{name}", 0) for r in receipts) for name in COUNTS}


def funnel_row(row: str, receipts: Sequence[Receipt]) -> FunnelRow:
    """One row of a funnel, summed over receipts. Words are not known before the judge has counted them."""
    counts: dict[str, Any] = dict(merged(receipts, row))
    if row in stages.EXTRACT.rows:
        counts |= {"words_in": None, "words_out": None}
    reasons: dict[str, dict[str, int]] = {}
    for receipt in receipts:
        for reason, numbers in receipt.reasons.items():
            if stages.reason_of(reason).row == row:
                total = reasons.setdefault(reason, {})
                for unit, number in numbers.items():
                    total[unit] = total.get(unit, 0) + number
    return FunnelRow(row, **counts, reasons={name: Ended(**total) for name, total in sorted(reasons.items())})


def check_funnel(rows: Sequence[FunnelRow]) -> None:
    """Raise CheckFailed if a funnel does not add up."""
    if faults := funnel.faults(rows):
        raise CheckFailed(
            faults[0],
            "every document that enters a stage must leave it or have a reason; nothing was published",
            "This is an error in corpusmill: please report it with the recipe.",
        )
