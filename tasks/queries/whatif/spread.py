"""How a measure is distributed over the documents of a dataset."""

from __future__ import annotations

from typing import Any

from corpusmill.dataset.manifest import Manifest
from corpusmill.errors import NotFound, UsageError
from corpusmill.store import Store
from tasks.queries.whatif.moves import of_dataset
from tasks.queries.whatif.sql import quoted
from tasks.queries.whatif.table import measures_of

PERCENTS = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99)


def quantiles(store: Store, digest: str, manifest: Manifest, measure: str, fraction: float | None) -> dict[str, Any]:
    """How a measure is distributed over the documents that break no bound but those on it, whole and by language.

    Args:
        measure: a column of the measures, `perplexity_bits`, `quality_<name>`, `pii_<kind>`, `own_<name>` or another.
        fraction: also the bound that keeps this share of the documents with the highest values.

    Returns:
        {"manifest", "measure", "fraction", "rows": [{"language" (null: all), "docs", "unknown", "bound", "percents":
        {percent: value}}]}; percentiles are values that documents have.

    Raises:
        NotFound: no such measure. UsageError: a fraction outside of 0 to 1.
    """
    if fraction is not None and not 0 < fraction <= 1:
        raise UsageError(f"--fraction {fraction}", "expected a share from 0 to 1")
    before, _ = of_dataset(store, manifest)
    own = sum(1 << i for i, bound in enumerate(before) if bound.column == measure)
    with measures_of(store, digest, manifest, before) as db:
        kinds = dict(db.execute("SELECT column_name, column_type FROM (DESCRIBE measures)").fetchall())
        known = sorted(set(kinds) - {"language", "drawn", "row", "file", "stage", "reason", "fails"})
        if measure not in known:
            raise NotFound(f"no measure {measure!r}", f"this dataset has {', '.join(known)}", "")
        asked = [percent / 100 for percent in PERCENTS] + ([1 - fraction] if fraction is not None else [])
        column = quoted(measure)
        rows = db.execute(
            f"""SELECT language, count(*), count(*) - count({column}), quantile_disc({column}, {asked})
            FROM measures WHERE fails & {~own} = 0
            GROUP BY GROUPING SETS ((), (language)) ORDER BY grouping(language) DESC, count(*) DESC, language"""
        ).fetchall()
    return {
        "manifest": digest,
        "measure": measure,
        "fraction": fraction,
        "rows": [
            {
                "language": language,
                "docs": docs,
                "unknown": unknown,
                "percents": {str(p): v for p, v in zip(PERCENTS, values or [None] * len(PERCENTS), strict=False)},
                "bound": values[-1] if fraction is not None and values else None,
            }
            for language, docs, unknown, values in rows
        ],
    }
