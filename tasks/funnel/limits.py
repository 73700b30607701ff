"""Whether a build or an ingestion read enough to be published: nothing kept, or too many faults, is no success.

Judged from receipts when all else is done, so that what was read stays: with another bound the same work is published.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from corpusmill.config import Recipe
from corpusmill.dataset.funnel import FunnelRow
from corpusmill.dataset.rejects import plain
from corpusmill.errors import Incomplete
from corpusmill.store import Receipt, Store
from tasks import stages

MIN_RECORDS = 20
"""Sources of fewer records are not judged by their share of faults."""
SHOWN, COLUMNS = 5, 12

Read = tuple[str, Receipt]
"""A source, and the receipt of the extraction of one of its files."""


def check(recipe: Recipe, read: Sequence[Read], funnel: Sequence[FunnelRow], store: Store) -> None:
    """Raise if what was read is not to be published.

    Args:
        recipe: whose `limits`.
        read: every file.
        funnel: of what would be published.

    Raises:
        Incomplete: too large a share of a source's records has faults, or no document was kept.
    """
    bound = recipe.limits.max_fault_share
    for source in dict.fromkeys(source for source, _ in read):
        receipts = [receipt for name, receipt in read if name == source]
        records = sum(receipt.counters["acquire.docs_in"] for receipt in receipts)
        faults = _faults(receipts)
        if records >= MIN_RECORDS and faults.total() > bound * records:
            raise Incomplete(
                f"source {source!r}: {faults.total():,} of {records:,} records have faults "
                f"({faults.total() / records:.0%}; limits.max_fault_share is {bound:g}); nothing was published",
                "\n".join(_found([(source, receipt) for receipt in receipts], faults, store)),
                "Correct the source or its section of the recipe, or raise limits.max_fault_share.",
            )
    if not funnel[-1].docs_out:
        ended = Counter({reason: ended.docs for row in funnel for reason, ended in row.reasons.items() if ended.docs})
        raise Incomplete(
            f"recipe {recipe.name!r}: no document was kept; nothing was published",
            "\n".join(_found(read, ended, store)),
            "Correct the sources, or the sections of the recipe that reject their documents.",
        )


def _faults(receipts: Sequence[Receipt]) -> Counter[str]:
    """Records that ended for a fault, by reason."""
    found: Counter[str] = Counter()
    for receipt in receipts:
        for reason, numbers in receipt.reasons.items():
            if stages.reason_of(reason).kind == "fault":
                found[reason] += numbers["docs"]
    return found


def _found(read: Sequence[Read], reasons: Counter[str], store: Store) -> Iterator[str]:
    """What was found, for people: why records ended, where the first faults are, which columns there are."""
    count = sum(receipt.counters["acquire.docs_in"] for _, receipt in read)
    ended = ", ".join(f"{reason} {number:,}" for reason, number in reasons.most_common())
    yield f"{count:,} records in {len(read):,} files" + (f"; {ended}" if ended else "")
    if first := list(_first(read, store)):
        yield "first faults: " + "; ".join(first)
    if needs := sorted({plain(name) for _, receipt in read for name in _needs(receipt)}):
        yield "not unpacked for want of memory: " + "; ".join(needs[:SHOWN])
    if columns := list(_columns(read)):
        yield "columns seen: " + ", ".join(columns)


def _first(read: Sequence[Read], store: Store) -> Iterator[str]:
    shown = 0
    for source, receipt in read:
        if not _faults([receipt]):
            continue
        table = store.table(receipt.outputs["records"], columns=["offset", "reason", "file"])
        for row in table.to_pylist():
            if row["reason"] and stages.reason_of(row["reason"]).kind == "fault":
                file = row["file"] or str(receipt.facts["locator"])
                yield f"{plain(source)}/{plain(file)} at {row['offset']:,}: {row['reason']}"
                shown += 1
                if shown == SHOWN:
                    return


def _needs(receipt: Receipt) -> Iterator[str]:
    """What would have taken too much memory to unpack (`FileFacts.too_much`)."""
    file: Any = receipt.facts["file"]
    yield from (name.removeprefix("memory:") for name in file.get("counts", {}) if name.startswith("memory:"))


def _columns(read: Sequence[Read]) -> Iterator[str]:
    """Names of columns that have values, with their types and what a text column is not."""
    types: dict[str, str] = {}
    for _, receipt in read:
        file: Any = receipt.facts["file"]
        for name, column in file.get("columns", {}).items():
            if column["values"] or column["unreadable"]:
                types.setdefault(plain(name), plain(column["type"]))
    for name, kind in list(types.items())[:COLUMNS]:
        yield f"{name} ({kind})" if kind else name
    if len(types) > COLUMNS:
        yield f"and {len(types) - COLUMNS:,} more"
