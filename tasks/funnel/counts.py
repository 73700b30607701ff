"""What readers count beside the rows of a source: templates that were dropped, records that are no pages, odd heads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from corpusmill import schema
from corpusmill.store import Receipt

MAX_NAMES = 1000
"""Names of a source that a count is told of; what the rarer ones have in common is counted together, without a name."""


def counts_of(receipts: Iterable[tuple[str, Receipt]]) -> pa.Table:
    """A row for each source, count and name, in this order.

    Args:
        receipts: (source, receipt of its extraction) of every file. Their order makes no difference.
    """
    found: dict[tuple[str, str], Counter[str]] = {}
    for source, receipt in receipts:
        file: Any = receipt.facts["file"]
        for counted, times in file.get("counts", {}).items():
            count, _, name = counted.partition(":")
            found.setdefault((source, count), Counter())[name] += times
        for kind, times in file.get("not_content", {}).items():
            found.setdefault((source, "not_content"), Counter())[kind] += times
    rows = [
        {"source": source, "count": count, "name": name, "times": times}
        for (source, count), names in sorted(found.items())
        for name, times in sorted(_most(names).items())
    ]
    return pa.Table.from_pylist(rows, schema=schema.COUNTS)


def _most(names: Counter[str]) -> Counter[str]:
    if len(names) <= MAX_NAMES:
        return names
    by_times = sorted(names.items(), key=lambda item: (not item[0], -item[1], item[0]))
    most = Counter(dict(by_times[:MAX_NAMES]))
    most[""] += sum(times for _, times in by_times[MAX_NAMES:])
    return most
