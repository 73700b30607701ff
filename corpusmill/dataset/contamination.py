"""The report of the benchmark screen, both ways: the documents that hold an item, the items that a document holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from corpusmill.dataset.manifest import Manifest, ScreenedBenchmark
from corpusmill.dataset.rejects import plain
from corpusmill.errors import NotFound
from corpusmill.plain_text import table
from corpusmill.store import Store

CANNOT_SEE = (
    "paraphrases, translations, and items of which one word in every n is changed",
    "items marked too_short, and items whose every n-gram is exempted",
    "words broken at the end of a line, pictures of text, and text that extraction left out",
    "answers and choices, unless they are among the benchmark's fields",
    "benchmarks that the recipe does not name",
)
"""What no screen by word n-grams can find. No hit is therefore no proof of absence."""

TOP = 10


def report(
    store: Store,
    manifest: Manifest,
    benchmark: str | None = None,
    item: str | None = None,
    document: str | None = None,
) -> dict[str, Any]:
    """What the screen of a dataset found.

    Args:
        benchmark, item: only these.
        document: only this one: its URL, or the first hex digits of its doc_id.

    Raises:
        NotFound: the dataset was not screened, or it has no such benchmark, item or document.
    """
    if "contamination" not in manifest.tables or manifest.proofs is None:
        raise NotFound(
            f"dataset {manifest.name} has no report of a benchmark screen",
            "its documents were not screened yet, or an earlier version built it",
            "Build it again.",
        )
    screened, hits = (store.table(manifest.table(name)) for name in ("benchmark_items", "contamination"))
    benchmarks = {entry.name: entry for entry in manifest.benchmarks or ()}
    if benchmark is not None and benchmark not in benchmarks:
        raise NotFound(
            f"no benchmark {benchmark!r}", f"this dataset was screened against {', '.join(benchmarks) or 'none'}"
        )
    for column, wanted in (("benchmark", benchmark), ("item", item)):
        if wanted is not None:
            screened, hits = (t.filter(pc.equal(t.column(column), wanted)) for t in (screened, hits))
    if item is not None and not screened.num_rows:
        raise NotFound(f"no item {item!r}", f"in {benchmark or 'any benchmark of this dataset'}")
    rows = [{**row, "doc_id": row["doc_id"].hex()} for row in hits.to_pylist()]
    if document is not None:
        rows = [row for row in rows if row["url"] == document or row["doc_id"].startswith(document.lower())]
        if not rows:
            raise NotFound(f"no document {document!r} among the hits", "expected its URL or hex digits of its doc_id")
    exempted = manifest.table("exempted_ngrams") if "exempted_ngrams" in manifest.tables else None
    return {
        "action": manifest.screen_action,
        "benchmarks": [
            _benchmark(facts, screened, rows) for name, facts in benchmarks.items() if benchmark in (None, name)
        ],
        "items": _by(rows, ("benchmark", "item"), "documents"),
        "documents": _by(rows, ("doc_id", "url", "locator"), "items"),
        "exempted_ngrams": store.table(exempted).to_pylist() if exempted else [],
        "planted": manifest.proofs.decontaminate,
        "cannot_see": list(CANNOT_SEE),
    }


def _benchmark(facts: ScreenedBenchmark, screened: pa.Table, rows: Sequence[Mapping[str, Any]]) -> dict:
    ours = [row for row in rows if row["benchmark"] == facts.name]
    items = screened.filter(pc.equal(screened.column("benchmark"), facts.name))
    how = items.column("screened").to_pylist()
    too_short = items.filter(pc.equal(items.column("screened"), "too_short")).column("item").to_pylist()
    return {
        "benchmark": facts.name,
        "licence": facts.licence,
        "ngram": facts.ngram,
        "exact_words": facts.exact_words,
        "screened": {kind: how.count(kind) for kind in ("ngrams", "whole", "too_short")},
        "too_short": too_short,
        "items_found": len({row["item"] for row in ours}),
        "documents": len({row["doc_id"] for row in ours}),
    }


def _by(rows: Sequence[Mapping[str, Any]], keys: tuple[str, ...], inside: str) -> list[dict[str, Any]]:
    """Hits grouped one way; those with most hits first, then in the order of their keys."""

    def key(row: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(row[name] or "" for name in keys)

    groups = []
    for _, members in groupby(sorted(rows, key=lambda row: (key(row), row["doc_id"], row["offset"])), key=key):
        found = list(members)
        others = [{name: value for name, value in row.items() if name not in keys} for row in found]
        groups.append({**{name: found[0][name] for name in keys}, inside: others})
    return sorted(groups, key=lambda group: -len(group[inside]))


def written_out(found: Mapping[str, Any], everything: bool) -> str:
    """The report as text.

    Args:
        everything: all items and documents; else only those with most hits, as one line each.
    """
    rows = [
        (
            entry["benchmark"],
            entry["ngram"],
            *(entry["screened"][how] for how in ("ngrams", "whole", "too_short")),
            entry["items_found"],
            entry["documents"],
            entry["licence"],
        )
        for entry in found["benchmarks"]
    ]
    heads = ("benchmark", "n", "by n-grams", "whole", "too short", "items found", "documents", "licence")
    if not rows:
        return "screened against no benchmark: the recipe of this dataset names none in [decontaminate]"
    shown = [table(heads, rows, numbers=(1, 2, 3, 4, 5, 6)), "", *planted(found["planted"])]
    if found["exempted_ngrams"]:
        shown += ["", "exempted n-grams (common phrases), with their contexts:"]
        shown += [f"  {row['contexts']:,}  {row['ngram']}" for row in found["exempted_ngrams"]]
    for title, groups, inside in (("item", found["items"], "documents"), ("document", found["documents"], "items")):
        listed = groups if everything else groups[:TOP]
        shown += ["", f"{title}s found: {len(groups):,}" + ("" if len(listed) == len(groups) else f", the first {TOP}")]
        for group in listed:
            shown.append(
                f"  {_name(group)}: {len(group[inside]):,} {inside if len(group[inside]) > 1 else inside[:-1]}"
            )
            if everything:
                shown += [f"    {_hit(hit)}" for hit in group[inside]]
    shown += ["", "What such a screen cannot see:", *(f"  {line}" for line in found["cannot_see"])]
    return "\n".join(shown)


def planted(proof: Mapping[str, Any]) -> list[str]:
    """The run's own test of its screen, a line each length in use."""
    return [
        f"screen       {one['found']} of {one['planted']} planted items found, "
        f"{one['false_hits']} of {one['lookalikes']} look-alikes: "
        + (f"whole items of {one['words']} words or more" if one["whole"] else f"{one['words']}-grams")
        for one in proof.get("by_length", ())
    ]


def _name(group: Mapping[str, Any]) -> str:
    if "doc_id" in group:
        return f"{plain(group['url'] or group['locator'])} ({group['doc_id'][:12]})"
    return f"{group['benchmark']}/{plain(group['item'])}"


def _hit(hit: Mapping[str, Any]) -> str:
    how = f"all {hit['words']} words" if hit["whole"] else f"{hit['share']:.0%} of its {hit['words']}-grams"
    return f"{_name(hit)} at byte {hit['offset']:,}, {how}: {plain(hit['ngram'])[:80]}"
