"""Verbs that read one published dataset: funnel, rejects, lineage, verify. Nothing is computed again."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from cyclopts import Parameter

from corpusmill.plain_text import human_bytes, table
from mill.common import InStore, note, show

Ref = Annotated[
    str, Parameter(help="Name (its newest dataset), name@digest (6 or more hex digits), or a whole digest.")
]


def funnel(ref: Ref, /, *, options: InStore = InStore()) -> None:
    """Show how many documents each stage kept, and why the others ended."""
    from corpusmill.dataset import columns, counts, origins
    from corpusmill.dataset import funnel as funnels

    data = options.dataset(ref)
    lines, found = funnels.rows(data.manifest.funnel), columns.columns(data.store, data.manifest)
    counted = counts.counts(data.store, data.manifest)
    shown = table(("stage", "documents", "kept", "of all", "bytes kept"), lines, numbers=(1, 2, 3, 4))
    listings = (origins.newest(data.digest, data.store) or {}).get("listings", [])
    listed = "".join(f"\n{line}" for line in ("", *origins.lines(listings)) if listings)
    document = {**funnels.document(data.digest, data.manifest.funnel), "listings": listings, "columns": found}
    document["counts"] = counted
    left_out = f"\n{said}" if (said := columns.said(found) + counts.said(counted)) else ""
    options.answer(document, f"{data.short}\n\n{shown}{listed}{left_out}")


def rejects(
    ref: Ref,
    /,
    *,
    reason: Annotated[str | None, Parameter(help="Only this reason.")] = None,
    n: Annotated[int, Parameter(name=("-n", "--number"), help="Number of documents per reason.")] = 3,
    label: Annotated[
        bool, Parameter(help="Ask for each document whether it should have been kept; store the answers.")
    ] = False,
    rates: Annotated[bool, Parameter(help="Show the false-reject rate of each reason, from the labels.")] = False,
    options: InStore = InStore(),
) -> None:
    """Show a seeded sample of rejected documents: text, the measure and the bound that decided, the kept duplicate.

    With --label, each document is shown, and k (should be kept), d (rightly dropped), s (skip) or q (quit) is read from
    the terminal. With --rates, the labels of the dataset are summed up, for near-duplicates also by similarity.
    """
    from corpusmill.dataset import labels
    from corpusmill.dataset.rejects import sample, written_out

    data = options.dataset(ref)
    if rates:
        found = [row for row in labels.rates(labels.labels(data.store, data.name)) if reason in (None, row["reason"])]
        options.answer({"manifest": data.digest, "rates": found}, f"{data.short}\n\n{_rates_text(found)}")
        return
    rows = sample(data.store, data.manifest, reason, n)
    if not label:
        options.answer({"manifest": data.digest, "rejects": rows}, f"{data.short}\n\n{written_out(rows)}")
        return

    def shown(row: Mapping[str, Any]) -> None:
        note(f"\n{written_out([row])}")

    def answer() -> str | None:
        show("keep it, drop it, skip, quit [k/d/s/q]? ", end="", to=sys.stderr)
        return sys.stdin.readline() or None

    done = labels.ask(data.store, data.name, data.digest, rows, shown, answer)
    says = f"{done['keep']} to keep, {done['drop']} to drop, {done['skipped']} skipped"
    options.answer(
        {"manifest": data.digest, "labelled": done}, f"{data.short}: {says}. `mill rejects {data.short} --rates`"
    )


def _rates_text(found: Sequence[Mapping[str, Any]]) -> str:
    if not found:
        return "No labels yet. Add some with `mill rejects REF --reason R --label`."
    rows = [
        (
            row["reason"] + (f" {row['similarity'][0]:.2f} to {row['similarity'][1]:.2f}" if row["similarity"] else ""),
            row["labelled"],
            row["keep"],
            f"{row['rate']:.1%}",
            f"{row['low']:.1%} to {row['high']:.1%}",
        )
        for row in found
    ]
    return table(("reason", "labelled", "to keep", "false-reject rate", "95 % interval"), rows, numbers=(1, 2, 3))


def lineage(ref: Ref, /, *, options: InStore = InStore()) -> None:
    """Show the chain of a dataset: checkpoints trained on it, shards, objects of each stage, files of the crawl."""
    from corpusmill.dataset import lineage as lineages

    data = options.dataset(ref)
    chain = lineages.chain(data.store, data.name, data.digest, data.manifest)
    options.answer(chain, lineages.written_out(chain))


def verify(
    ref: Ref,
    /,
    *,
    sources: Annotated[
        bool, Parameter(help="Also name the source files that have other bytes now; hashes those that were written to.")
    ] = False,
    options: InStore = InStore(),
) -> None:
    """Check every digest, row and count of a dataset; exit code 4 with the first error."""
    from corpusmill.dataset.verify import verify as check

    data = options.dataset(ref)
    checked = check(data.store, data.manifest)
    document: dict[str, Any] = {"manifest": data.digest, "ok": True, "checked": checked}
    now = ""
    if sources:
        from tasks.sources.changed import said, said_gone
        from tasks.sources.origins import changed_files

        changed, gone = changed_files(data.digest, data.manifest, data.store)
        document |= {"changed": changed, "gone": gone}
        now = "".join(f"\n{line}" for line in (said(changed, "in this dataset"), said_gone(gone)) if line)
        now = now or "\nIts source files are as they were."
    shown = f"{checked['objects']:,} objects of {human_bytes(checked['bytes'])}"
    rest = f"{checked['documents']:,} documents, {checked['tokens']:,} tokens"
    options.answer(document, f"{data.short}: sound. Checked {shown}: {rest}.{now}")
