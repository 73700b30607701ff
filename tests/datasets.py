"""A tiny published dataset with every kind of object that a real one has: two files, nine records, five documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from corpusmill import schema
from corpusmill.canonical import content_digest
from corpusmill.store import Output, Store, Unit, open_store
from tasks import stages
from tests.manifests import EMPTY
from tests.training.packed import write_tokens

SEQ_LEN = 7
NAME = "tiny"

# (address, ended at, reason, language, text) of each record, by file.
FILES: dict[str, list[tuple[str, str | None, str | None, str | None, str | None]]] = {
    "a.warc.gz": [
        ("https://a.example/1", None, None, "en", "kept in the first file"),
        ("https://a.example/2", "acquire", "http_status", None, None),
        ("https://a.example/3", "language", "other_language", "de", "ein Text"),
        ("https://a.example/4", "filter", "too_few_words", "en", "short \x1b[31m"),
        ("https://a.example/5", "extract", "no_text", None, None),
    ],
    "b.warc.gz": [
        ("https://b.example/1", None, None, "en", "kept in the second file"),
        ("https://b.example/2", "acquire", "revisit", None, None),
        ("https://b.example/3", "near", "near_duplicate", "en", "kept in the second file too"),
        ("https://b.example/4", "acquire", "redirect", None, None),
    ],
}


def publish(folder: Path, name: str = NAME) -> tuple[Store, str]:
    """Make the store and the dataset; the same digest every time."""
    store = open_store(folder, create=True)
    rows: list[dict[str, Any]] = []
    for locator in FILES:
        _file(store, locator, rows)
    shard = _packed(store, folder.parent / "tokens.parquet", rows)
    tokenizer = store.commit(Unit("tokenizer", 1, {}, ()), {"tokenizer": store.draft_bytes(b"{}")})
    _add(rows, "tokenizer", "", tokenizer.key, tokenizer.outputs)
    tables = store.commit(
        Unit("publish", 1, {}, ()),
        {
            "lineage": store.draft_table(pa.Table.from_pylist(rows, schema=schema.LINEAGE)),
            "rejects": store.draft_table(_rejects()),
        },
    )
    manifest = {
        **EMPTY,
        "format": 1,
        "name": name,
        "seed": 17,
        "tokenizer": {
            "output": tokenizer.outputs["tokenizer"].to_json(),
            "vocab_size": 50,
            "eos": "<|endoftext|>",
            "eos_id": 0,
        },
        "partitions": {
            "crawl": {
                **{"seq_len": SEQ_LEN, "token_bytes": 2, "documents": 2, "tokens": 10, "text_bytes": 45},
                **{"sequences": 2, "padding": 6, "shards": [shard]},
            }
        },
        "funnel": _funnel(),
        "inputs": [
            {"source": "crawl", "snapshot": "s", "locator": locator, "bytes": 10, "sha256": "ab" * 32}
            for locator in FILES
        ],
        "tables": {kind: output.to_json() for kind, output in tables.outputs.items()},
    }
    return store, store.publish(name, manifest, why="build")


def doc_id(locator: str, i: int) -> bytes:
    """The id of the i-th record of a file."""
    return f"{locator}/{i}".encode().ljust(16, b"\0")[:16]


def damage(store: Store, output: Output, data: bytes) -> None:
    """Put other bytes under the name of an object, as a failing disk would."""
    path = Path(store.uri) / output.name
    path.chmod(0o644)
    path.write_bytes(data)


def _add(rows: list[dict[str, Any]], stage: str, locator: str, key: str, outputs: Any) -> None:
    for kind, output in sorted(outputs.items()):
        rows.append({"stage": stage, "locator": locator, "kind": kind, "unit": key, **output.to_json()})


def _file(store: Store, locator: str, rows: list[dict[str, Any]]) -> None:
    records, documents = [], []
    for i, (url, stage, reason, language, text) in enumerate(FILES[locator]):
        ended = stage if stage in ("acquire", "extract") else None
        identity = None if ended else doc_id(locator, i)
        records.append(
            {
                "offset": i * 100,
                "record_type": "response",
                "url": url,
                "payload_bytes": 5,
                "charset": "utf-8",
                "doc_id": identity,
                "stage": ended,
                "reason": reason if ended else None,
            }
        )
        if identity is not None:
            documents.append(
                {
                    "doc_id": identity,
                    "url": url,
                    "offset": i * 100,
                    "payload_bytes": 5,
                    "payload_digest": bytes(16),
                    "extractor": "plain",
                    "text": text,
                    "stage": stage,
                    "reason": reason,
                    "language": language,
                    "language_score_e4": 9000,
                    "language_mixed": False,
                    "failed_rules": 0,
                }
            )
    tables = {
        "extract": {"records": (schema.RECORDS, records), "documents": (schema.DOCUMENTS, documents)},
        "judge": {"language": (schema.LANGUAGE, documents)},
        "decide": {"decisions": (schema.DECISIONS, documents)},
    }
    for stage, kinds in tables.items():
        drafts = {
            kind: store.draft_table(pa.Table.from_pylist(values, schema=table))
            for kind, (table, values) in kinds.items()
        }
        receipt = store.commit(Unit(stage, 1, {"file": locator}, ()), drafts)
        _add(rows, stage, f"crawl/{locator}", receipt.key, receipt.outputs)


def _packed(store: Store, path: Path, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Two sequences: a document of 6 tokens, and one of 4."""
    tokens = np.array([[5, 6, 7, 8, 9, 0, 0, 0], [5, 6, 7, 0, 0, 0, 0, 0]])
    payload = write_tokens(path, tokens, SEQ_LEN)
    stored = pa.table(
        [pa.array([row.astype("<u2").tobytes() for row in tokens], pa.binary(2 * (SEQ_LEN + 1)))],
        schema=schema.tokens_schema(2, SEQ_LEN),
    )
    docs = [
        {"doc_id": doc_id("a.warc.gz", 0), "tokens": 6, "text_bytes": 22, "url": "https://a.example/1"},
        {"doc_id": doc_id("b.warc.gz", 0), "tokens": 4, "text_bytes": 23, "url": "https://b.example/1"},
    ]
    lengths = [{"doc_lens": [6], "doc_refs": [0]}, {"doc_lens": [4], "doc_refs": [1]}]
    receipt = store.commit(
        Unit("pack", 1, {}, ()),
        {
            "tokens": store.draft_file(path, content=content_digest(stored), rows=2),
            "rows": store.draft_table(pa.Table.from_pylist(lengths, schema=schema.PACK_ROWS)),
            "docs": store.draft_table(pa.Table.from_pylist(docs, schema=schema.PACK_DOCS)),
        },
    )
    _add(rows, "pack", "0", receipt.key, receipt.outputs)
    return {**{k: o.to_json() for k, o in receipt.outputs.items()}, "sequences": 2, "payload": payload}


def _rejects() -> pa.Table:
    rows = []
    for locator, records in FILES.items():
        for i, (url, stage, reason, language, text) in enumerate(records):
            if stage is not None:
                rows.append(
                    {
                        "stage": stage,
                        "reason": reason,
                        "order": i.to_bytes(8, "big"),
                        "url": url,
                        "locator": locator,
                        "offset": i * 100,
                        "language": language,
                        "text": text,
                        "value": 2.0 if text else None,
                        "keeper": doc_id("b.warc.gz", 0) if stage == "near" else None,
                        "similarity": 0.9 if stage == "near" else None,
                    }
                )
    rows.sort(key=lambda row: (row["stage"], row["reason"], row["order"]))
    return pa.Table.from_pylist(rows, schema=schema.REJECTS)


def _funnel() -> list[dict[str, Any]]:
    alive = [record for records in FILES.values() for record in records]
    rows: list[dict[str, Any]] = []
    for stage in stages.ROWS:
        reasons: dict[str, dict[str, int]] = {}
        came, left = alive, [record for record in alive if record[1] != stage]
        for _, ended, reason, _, text in alive:
            if ended == stage and reason:
                counts = reasons.setdefault(reason, {"docs": 0, "bytes": 0, "words": 0})
                counts["docs"] += 1
                counts["bytes"] += len(text or "")
                counts["words"] += len((text or "").split())
        alive = left
        rows.append({"stage": stage, "reasons": reasons, **_sums("in", came), **_sums("out", left)})
    return rows


def _sums(side: str, records: list[tuple[str, str | None, str | None, str | None, str | None]]) -> dict[str, int]:
    texts = [record[4] or "" for record in records]
    return {
        f"docs_{side}": len(records),
        f"bytes_{side}": sum(map(len, texts)),
        f"words_{side}": sum(len(text.split()) for text in texts),
    }
