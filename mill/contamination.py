"""The verb `contamination`: what the benchmark screen of a dataset found."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from mill.common import InStore
from mill.datasets import Ref


def contamination(
    ref: Ref,
    /,
    *,
    benchmark: Annotated[str | None, Parameter(help="Only this benchmark.")] = None,
    item: Annotated[str | None, Parameter(help="Only this item: the documents that contain it.")] = None,
    document: Annotated[
        str | None, Parameter(help="Only this document (URL, or digits of its id): the items that it contains.")
    ] = None,
    options: InStore = InStore(),
) -> None:
    """Show which documents contain benchmark items, where, and how much of each; and what the screen cannot find.

    With --json it prints all hits; else a summary, and all hits of the given benchmark, item or document.
    """
    from corpusmill.dataset.contamination import report, written_out

    data = options.dataset(ref)
    found = report(data.store, data.manifest, benchmark, item, document)
    everything = any(asked is not None for asked in (benchmark, item, document))
    options.answer({"manifest": data.digest, **found}, f"{data.short}\n\n{written_out(found, everything)}")
