"""The dataset card: a page for people, made from the manifest alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def card(manifest: Mapping[str, Any], digest: str) -> str:
    """Markdown of a published dataset; the same manifest gives the same text."""
    name, parts = manifest["name"], manifest["partitions"]
    tokens = sum(p["tokens"] for p in parts.values())
    documents = sum(p["documents"] for p in parts.values())
    lines = [
        f"# {name}",
        "",
        f"{documents:,} documents, {tokens:,} tokens, made by Corpusmill. Manifest `sha256:{digest}`.",
        "",
        "| partition | documents | tokens | sequences | sequence length | padding |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for partition, p in sorted(parts.items()):
        share = p["padding"] / max(1, p["sequences"] * (p["seq_len"] + 1))
        counts = " | ".join(f"{p[count]:,}" for count in ("documents", "tokens", "sequences"))
        lines.append(f"| {partition} | {counts} | {p['seq_len']} | {share:.1%} |")
    lines += ["", "## Funnel", "", *funnel_table(manifest["funnel"]), "", "## Sources", ""]
    for source in manifest["inputs"]:
        lines.append(f"- `{source['source']}` {source['snapshot']}: `{source['locator']}` ({source['bytes']:,} bytes)")
    rules = manifest["rules"]
    lines += [
        "",
        "## How it was made",
        "",
        f"Rules `{rules['file']}` version {rules['version']} (`sha256:{rules['digest'][:16]}`); language model "
        f"`sha256:{manifest['models']['language'][:16]}`; benchmarks screened: "
        + (", ".join(b["name"] for b in manifest["benchmarks"]) or "none")
        + ".",
        "",
        "Documents are web pages; rights in their texts stay with their owners. This version masks no personal data.",
        "",
    ]
    return "\n".join(lines)


def documents_card(manifest: Mapping[str, Any], digest: str) -> str:
    """Markdown of the documents of one snapshot, before any of them is judged."""
    documents, snapshot = manifest["funnel"][-1]["docs_out"], manifest["snapshot"]
    size = sum(file["bytes"] for file in manifest["inputs"])
    return "\n".join(
        [
            f"# {manifest['name']}",
            "",
            f"{documents:,} documents, made by Corpusmill. Manifest `sha256:{digest}`.",
            "",
            f"Read from {len(manifest['inputs']):,} files ({size:,} bytes) of `{snapshot['source']}` {snapshot['id']}.",
            "",
            "## Funnel",
            "",
            *funnel_table(manifest["funnel"]),
            "",
            "## Snapshots so far",
            "",
            *(f"- `{source}`: {', '.join(ids)}" for source, ids in sorted(manifest["snapshots"].items())),
            "",
            "Documents are web pages; rights in their texts stay with their owners.",
            "",
        ]
    )


def funnel_table(funnel: list[Mapping[str, Any]]) -> list[str]:
    """The funnel as lines of a Markdown table, reasons under their stage."""
    lines = ["| stage | documents in | documents out | text bytes out |", "|---|---:|---:|---:|"]
    for row in funnel:
        lines.append(f"| **{row['stage']}** | {row['docs_in']:,} | {row['docs_out']:,} | {row['bytes_out']:,} |")
        for reason, counts in sorted(row["reasons"].items(), key=lambda item: (-item[1]["docs"], item[0])):
            lines.append(f"| · {reason} | −{counts['docs']:,} | | |")
    return lines
