"""Verbs that read one published dataset: funnel, rejects, lineage, verify. Nothing is computed again."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from corpusmill.commands.common import InStore, human_bytes, table

Ref = Annotated[str, Parameter(help="name (its newest), name@digest (6 or more hex digits), or a whole digest.")]


def funnel(ref: Ref, /, *, options: InStore = InStore()) -> None:
    """How many documents each stage kept, and why the others ended."""
    from corpusmill import funnel as funnels

    data = options.dataset(ref)
    lines = funnels.rows(data.manifest["funnel"])
    shown = table(("stage", "documents", "kept", "of all", "bytes kept"), lines, numbers=(1, 2, 3, 4))
    options.answer(funnels.document(data.digest, data.manifest["funnel"]), f"{data.short}\n\n{shown}")


def rejects(
    ref: Ref,
    /,
    *,
    reason: Annotated[str | None, Parameter(help="Only this reason.")] = None,
    n: Annotated[int, Parameter(name=("-n", "--number"), help="Documents of each reason.")] = 3,
    options: InStore = InStore(),
) -> None:
    """A seeded sample of what was rejected: text, the measure and the bound that decided, the kept duplicate."""
    from corpusmill.report.rejects import sample, written_out

    data = options.dataset(ref)
    found = sample(data.store, data.manifest, reason, n)
    options.answer({"manifest": data.digest, "rejects": found}, f"{data.short}\n\n{written_out(found)}")


def lineage(ref: Ref, /, *, options: InStore = InStore()) -> None:
    """The chain of a dataset: checkpoints trained on it, shards, objects of each stage, files of the crawl."""
    from corpusmill import lineage as lineages

    data = options.dataset(ref)
    chain = lineages.chain(data.store, data.name, data.digest, data.manifest)
    options.answer(chain, lineages.written_out(chain))


def verify(ref: Ref, /, *, options: InStore = InStore()) -> None:
    """Check every digest, row and count of a dataset; ends with 4 and the first thing that is wrong."""
    from corpusmill.verify import verify as check

    data = options.dataset(ref)
    checked = check(data.store, data.manifest)
    document: dict[str, Any] = {"manifest": data.digest, "ok": True, "checked": checked}
    shown = f"{checked['objects']:,} objects of {human_bytes(checked['bytes'])}"
    rest = f"{checked['documents']:,} documents, {checked['tokens']:,} tokens"
    options.answer(document, f"{data.short}: sound. Checked {shown}: {rest}.")
