"""Made-up shards of documents, judged and ready for deduplication, without a crawl or an extractor."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from corpusmill import schema
from corpusmill.canonical import sha256
from corpusmill.config import Recipe, parse_recipe
from corpusmill.store import Store, Unit, open_store
from tasks.judge import judge
from tasks.shards import Shard


@dataclass(frozen=True)
class Doc:
    """A document; its name stands for its identity wherever it lies."""

    name: str
    text: str
    date: str | None = None
    url: str | None = None
    payload: str | None = None


def recipe(**deduplicate: Any) -> Recipe:
    return parse_recipe(
        {
            "name": "made",
            "source": {"made": {"kind": "jsonl", "root": "nowhere"}},
            "deduplicate": deduplicate,
        },
        "made",
    )


def doc_id(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()[:16]


def shard(docs: Sequence[Doc], locator: str, made: Recipe, store: Store, snapshot: str = "files") -> Shard:
    """One documents shard with the attribute groups that deduplication reads; every document is alive."""
    table = pa.Table.from_pylist(
        [
            {
                "doc_id": doc_id(doc.name),
                "url": doc.url,
                "date": doc.date,
                "offset": i,
                "payload_bytes": len(doc.text),
                "payload_digest": bytes.fromhex(sha256((doc.payload or doc.name).encode()))[:16],
                "extractor": "text",
                "text": doc.text,
            }
            for i, doc in enumerate(docs)
        ],
        schema=schema.DOCUMENTS,
    )
    unit = Unit("extract", 1, {"locator": locator, "snapshot": snapshot}, (sha256(str(docs).encode()),))
    facts: dict[str, object] = {"locator": locator}
    documents = store.commit(unit, {"documents": store.draft_table(table)}, facts=facts)
    groups = {
        name: done.receipt for name, done in judge.judge_shard(documents, made, store, without=("language",)).items()
    }
    decisions = pa.Table.from_pylist(
        [{"doc_id": doc_id(doc.name), "failed_rules": 0} for doc in docs], schema=schema.DECISIONS
    )
    decided = store.commit(
        Unit("filter", 1, {"locator": locator, "snapshot": snapshot}, unit.inputs),
        {"decisions": store.draft_table(decisions)},
    )
    return Shard("made", snapshot, locator, documents, groups, decided, decided, decided)


def shards(parts: Mapping[str, Sequence[Doc]] | Sequence[Sequence[Doc]], made: Recipe, store: Store) -> list[Shard]:
    """Shards of documents: by number, or by `snapshot/locator`."""
    named = parts if isinstance(parts, Mapping) else {f"files/{i:03d}.jsonl": part for i, part in enumerate(parts)}
    found = []
    for place, docs in named.items():
        snapshot, _, locator = place.partition("/")
        found.append(shard(docs, locator, made, store, snapshot))
    return found


def store_at(folder: Path) -> Store:
    return open_store(folder, create=True)


WORDS = [a + b for a in ("mill", "stone", "wheel", "grain", "river", "lamp", "field") for b in "abcdefghijklmnop"]


def sentence(seed: str, words: int) -> list[str]:
    drawn = hashlib.shake_128(seed.encode()).digest(2 * words)
    return [WORDS[int.from_bytes(drawn[2 * i : 2 * i + 2], "little") % len(WORDS)] for i in range(words)]


def families(count: int, copies: int, words: int = 200) -> list[Doc]:
    """`count` different documents, each with `copies` more of which a word or three are changed."""
    docs = []
    for i in range(count):
        base = sentence(f"family {i}", words)
        docs.append(Doc(f"{i}-0", " ".join(base), date=f"2026-01-{i % 28 + 1:02d}"))
        for c in range(1, copies + 1):
            changed = list(base)
            for k in range(c % 3 + 1):
                changed[(7 * c + 29 * k + i) % words] = f"changed{i}x{c}x{k}"
            docs.append(Doc(f"{i}-{c}", " ".join(changed), date=f"2026-02-{c % 28 + 1:02d}"))
    return docs
