"""The dataset card: a page for people, made from the manifest alone. The same manifest gives the same text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from corpusmill.dataset.funnel import FunnelRow
from corpusmill.dataset.manifest import Manifest
from corpusmill.store import Store

BAR = 24
"""Width of the longest bar, in characters."""
FILES = 50
"""Files of the crawl that are listed one by one."""
PERSONAL = {
    "email": "e-mail addresses",
    "ip": "IP addresses",
    "phone": "telephone numbers",
    "card": "payment card numbers",
    "iban": "IBANs",
    "national_id": "national identity numbers",
    "api_key": "API keys",
}


def card(manifest: Manifest, digest: str) -> str:
    """Markdown of a published dataset, of documents or of shards: each section where the manifest has something for it.

    The store keeps it beside the manifest, and runs show it as an artifact.
    """
    sections = (_head(manifest, digest), _partitions(manifest), _funnel(manifest), _sources(manifest), _made(manifest))
    return "\n".join(line for section in sections for line in section)


def store_card(store: Store, manifest: Manifest, digest: str) -> str | None:
    """Keep the card beside the manifest.

    Returns:
        a note where the store has another one: nothing reads it, and another version words it otherwise, so it is no
        error.
    """
    name = f"datasets/{manifest.name}/{digest}.md"
    if store.create(name, card(manifest, digest).encode()):
        return None
    return f"{name} is not the card that this version writes: it is damaged, or of another version; remove it to renew"


def _head(manifest: Manifest, digest: str) -> Iterator[str]:
    tokens = f", {manifest.tokens:,} tokens" if manifest.partitions else ""
    yield f"# {manifest.name}"
    yield ""
    yield f"{manifest.documents:,} documents{tokens}, made by Corpusmill. Manifest `sha256:{digest}`."
    yield ""


def _partitions(manifest: Manifest) -> Iterator[str]:
    if not manifest.partitions:
        return
    yield "| partition | documents | tokens | sequences | shards | sequence length | padding |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for name, part in sorted(manifest.partitions.items()):
        share = part.padding / max(1, part.sequences * (part.seq_len + 1))
        counts = (part.documents, part.tokens, part.sequences, len(part.shards))
        numbers = " | ".join(f"{count:,}" for count in counts)
        yield f"| {name} | {numbers} | {part.seq_len} | {share:.1%} |"
    yield ""


def _funnel(manifest: Manifest) -> Iterator[str]:
    yield "## Funnel"
    yield ""
    yield from funnel_table(manifest.funnel)
    yield ""


def funnel_table(funnel: Sequence[FunnelRow]) -> Iterator[str]:
    """The funnel as lines of a Markdown table, reasons under their stage."""
    most = max((row.docs_in for row in funnel), default=0)
    yield "| stage | documents in | documents out | | text bytes out |"
    yield "|---|---:|---:|---|---:|"
    for row in funnel:
        drawn = bar(row.docs_out, most)
        yield f"| **{row.stage}** | {row.docs_in:,} | {row.docs_out:,} | `{drawn}` | {row.bytes_out:,} |"
        for reason, ended in row.by_frequency:
            yield f"| · {reason} | −{ended.docs:,} | | | |"


def bar(value: int, most: int) -> str:
    """A bar of block characters; anything above zero shows."""
    filled = round(BAR * value / most) if most else 0
    return ("█" * max(filled, 1 if value else 0)).ljust(BAR, "·")


def _sources(manifest: Manifest) -> Iterator[str]:
    yield "## Sources"
    yield ""
    yield f"{len(manifest.inputs):,} files, {manifest.input_bytes:,} bytes."
    yield ""
    for file in manifest.inputs[:FILES]:
        size = "unknown size" if file.bytes is None else f"{file.bytes:,} bytes"
        yield f"- `{file.source}` {file.snapshot}: `{file.locator}` ({size})"
    if len(manifest.inputs) > FILES:
        yield f"- and {len(manifest.inputs) - FILES:,} more, which the manifest names"
    yield ""
    if manifest.snapshots:
        yield "Snapshots so far:"
        yield ""
        yield from (f"- `{source}`: {', '.join(ids)}" for source, ids in sorted(manifest.snapshots.items()))
        yield ""


def _made(manifest: Manifest) -> Iterator[str]:
    yield "## How it was made"
    yield ""
    if manifest.rules:
        rules, names = manifest.rules, [benchmark.name for benchmark in manifest.benchmarks or ()]
        yield f"Rules `{rules.file}` version {rules.version} (`sha256:{rules.digest[:16]}`), seed {manifest.seed}."
        yield f"Benchmarks screened: {', '.join(names) or 'none'}."
    for model, digest in sorted((manifest.models or {}).items()):
        yield f"Model `{model}`: `sha256:{digest[:16]}`."
    yield ""
    yield f"Documents are web pages; rights in their texts stay with their owners. {personal_data(manifest)}"
    yield ""


def personal_data(manifest: Manifest) -> str:
    """A sentence: what is masked, as the recipe says."""
    if not manifest.masked:
        return "Personal data in them is not masked."
    kinds = [PERSONAL.get(kind, kind) for kind in manifest.masked]
    listed = " and ".join([", ".join(kinds[:-1]), kinds[-1]] if len(kinds) > 1 else kinds)
    return f"Personal data is masked wherever text leaves the store: {listed}. Other kinds are not looked for."
