"""Artifacts: a rendering of the manifest for people who look at a run.

The numbers come from the manifest, never from here.

Texts of rejected documents are shown inside fences longer than any run of backticks in them, so that no markup or
URL of a crawled page becomes a link or a picture in the reader's browser.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact

from corpusmill.dataset.card import card
from corpusmill.dataset.funnel import FunnelRow
from corpusmill.dataset.manifest import Manifest
from corpusmill.dataset.rejects import OWN, plain

SAMPLE_REASONS = 12
SAMPLE_TEXT = 280
TABLES = {"columns": "Columns of the sources' rows", "counts": "What readers counted beside rows"}
"""Further artifacts of a build, and what they say."""


def show_dataset(
    name: str,
    digest: str,
    manifest: Manifest,
    store_uri: str,
    rejects: Iterable[Mapping[str, Any]],
    tables: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
) -> None:
    """All artifacts of a finished build: `funnel`, `dataset-card`, `rejects-sample`, `manifest`, and the given
    tables that have rows.

    Args:
        rejects: rows of `schema.REJECTS`; the first of each reason is shown.
        tables: rows of `schema.COLUMNS` and `schema.COUNTS`, by the keys of `TABLES`.
    """
    create_table_artifact(key="funnel", table=funnel_rows(manifest), description=f"Funnel of {name}@{digest[:12]}")
    create_markdown_artifact(key="dataset-card", markdown=card(manifest, digest))
    create_markdown_artifact(key="rejects-sample", markdown=rejects_sample(rejects))
    for key, rows in (tables or {}).items():
        if rows:
            create_table_artifact(key=key, table=printable(rows), description=TABLES[key])
    create_link_artifact(
        key="manifest",
        link=manifest_link(store_uri, name, digest),
        link_text=f"{name}@{digest}",
        description="The manifest in the store",
    )


def funnel_rows(manifest: Manifest) -> list[dict[str, Any]]:
    """One row per stage, as in the manifest; reasons in one column, the most frequent first."""
    columns = ("stage", "docs_in", "docs_out", "bytes_in", "bytes_out")
    return [{**{name: getattr(row, name) for name in columns}, "reasons": _reasons(row)} for row in manifest.funnel]


def _reasons(row: FunnelRow) -> str:
    return ", ".join(f"{reason} {ended.docs:,}" for reason, ended in row.by_frequency)


def printable(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows; what cannot be printed of names and values is a space."""
    return [{key: plain(value) if isinstance(value, str) else value for key, value in row.items()} for row in rows]


def rejects_sample(rejects: Iterable[Mapping[str, Any]]) -> str:
    """The first rejected document of each reason, as text in fences."""
    chosen: dict[tuple[str, str], Mapping[str, Any]] = {}
    for row in rejects:
        chosen.setdefault((row["stage"], row["reason"]), row)
        if len(chosen) == SAMPLE_REASONS:
            break
    if not chosen:
        return "# Rejected documents\n\nNone: every document was kept."
    lines = ["# Rejected documents", "", "One of each reason. More: `mill rejects`.", ""]
    for (stage, reason), row in chosen.items():
        own = "; ".join(f"{name} {str(row[field])[:SAMPLE_TEXT]}" for name, field in OWN if row.get(field))
        place = f"{row['locator']} at byte {row['offset']:,}" + (f"; {own}" if own else "")
        shown = f"{place}\n{(row['text'] or '')[:SAMPLE_TEXT]}".strip()
        lines += [f"## {stage}: {reason}", "", *fenced(shown), ""]
    return "\n".join(lines)


def fenced(text: str) -> Sequence[str]:
    """The text as a fenced block that nothing inside can close; control characters become spaces."""
    plain = "".join(c if c.isprintable() or c == "\n" else " " for c in text)
    longest = max((len(run) for run in re.findall(r"`+", plain)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", plain, fence]


def manifest_link(store_uri: str, name: str, digest: str) -> str:
    """Where the manifest is: `s3://…` as it is, a folder as `file://…`."""
    base = store_uri if "://" in store_uri else f"file://{store_uri}"
    return f"{base.rstrip('/')}/datasets/{name}/{digest}.json"


def show_ingested(
    name: str,
    newest: str | None,
    published: Sequence[tuple[str, Manifest]],
    store_uri: str,
    notes: Sequence[str] = (),
) -> None:
    """Artifacts of an ingestion: markdown `ingested`, and for each new manifest a `funnel` and a link `manifest`.

    Args:
        notes: sentences shown below the ingested snapshots: requests, and what was skipped.
    """
    below = "".join(f"\n\n{note}" for note in notes)
    create_markdown_artifact(key="ingested", markdown=ingested_card(name, newest, published) + below)
    for digest, manifest in published:
        what = f"{name}@{digest[:12]}, {manifest.ingested.id}"
        create_table_artifact(key="funnel", table=funnel_rows(manifest), description=f"Funnel of {what}")
        link = manifest_link(store_uri, name, digest)
        create_link_artifact(key="manifest", link=link, link_text=f"{name}@{digest}", description=what)


def ingested_card(name: str, newest: str | None, published: Sequence[tuple[str, Manifest]]) -> str:
    """The ingested snapshots as text."""
    lines = [f"# {name}", ""]
    if not published:
        return "\n".join([*lines, f"Nothing new. The newest manifest is `{newest or 'none'}`."])
    lines += ["| source | snapshot | files | bytes | documents | manifest |", "|---|---|---:|---:|---:|---|"]
    for digest, manifest in published:
        snapshot = manifest.ingested
        counts = (len(manifest.inputs), manifest.input_bytes, manifest.documents)
        numbers = " | ".join(f"{count:,}" for count in counts)
        lines.append(f"| {snapshot.source} | {snapshot.id} | {numbers} | `{digest[:16]}` |")
    return "\n".join(lines)


def show_training(result: Mapping[str, Any]) -> None:
    """Artifacts of a training run: table `training` and markdown `training-run`.

    Args:
        result: what `training.launch.train_ref` returns; a run that is trained elsewhere has no figures yet.
    """
    create_table_artifact(key="training", table=training_rows(result), description=f"Training run {result['run_id']}")
    create_markdown_artifact(key="training-run", markdown=training_card(result))


def training_rows(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What was measured, before and after."""
    rows = [
        {"measure": "loss (nats a token)", "before": result.get("loss_first"), "after": result.get("loss_last")},
        {
            "measure": "held-out (bits a byte)",
            "before": result.get("heldout_before"),
            "after": result.get("heldout_after"),
        },
    ]
    return [{k: f"{v:.4f}" if isinstance(v, float) else v or "–" for k, v in row.items()} for row in rows]


def training_card(result: Mapping[str, Any]) -> str:
    """A training run as text."""
    facts = {
        "dataset": f"`{result['name']}@{result['manifest']}`",
        "outcome": result["outcome"],
        "steps": f"{result.get('step', 0):,} of {result['steps']:,}" if "steps" in result else "–",
        "tokens": f"{result.get('tokens', 0):,}",
        "ranks": f"{result.get('world_size', '–')} ({result.get('mode', '–')})",
        "checkpoint": f"`{result.get('checkpoint') or '–'}`",
    }
    lines = [
        f"# Training run {result['run_id']}",
        "",
        "| | |",
        "|---|---|",
        *(f"| {k} | {v} |" for k, v in facts.items()),
    ]
    lines += ["", "| | before | after |", "|---|---:|---:|"]
    lines += [f"| {row['measure']} | {row['before']} | {row['after']} |" for row in training_rows(result)]
    return "\n".join(lines)
