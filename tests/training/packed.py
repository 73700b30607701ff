"""A small dataset of packed sequences, published in a store: learnable text, written as the packer writes it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from corpusmill.canonical import content_digest, digest_of
from corpusmill.kernels.gather import pieces_of
from corpusmill.schema import PACK_DOCS, PACK_ROWS
from corpusmill.store import Draft, Store, Unit, open_store
from corpusmill.tokens.shards import write_token_shard
from tests.manifests import EMPTY

VOCAB = 97
SEQ_LEN = 48
ROWS_PER_GROUP = 7  # small, so that every shard has several row groups


def tokenizer_json() -> bytes:
    """Every token but the first, which ends documents, is a word of three letters: with its space 4 bytes of text."""
    eos = {"id": 0, "content": "<|endoftext|>", "special": True}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    model = {"type": "WordLevel", "vocab": {word(n): n for n in range(VOCAB)}, "unk_token": word(1)}
    parts = dict.fromkeys(("truncation", "padding", "normalizer", "post_processor", "decoder"))
    made = {"version": "1.0", **parts, "added_tokens": [eos | flags], "pre_tokenizer": {"type": "WhitespaceSplit"}}
    return json.dumps(made | {"model": model}).encode()


def word(token: int) -> str:
    return f"w{token:02d}" if token else "<|endoftext|>"


def documents(count: int, seed: int) -> list[np.ndarray]:
    """Token documents of 2 to 60 tokens, each an arithmetic walk modulo the vocabulary, ended by token 0."""
    rng = np.random.default_rng(seed)
    walks = []
    for _ in range(count):
        length, start, pace = rng.integers(1, 60), rng.integers(1, VOCAB), rng.integers(1, 4)
        walks.append(np.append((start + pace * np.arange(length)) % (VOCAB - 1) + 1, 0))
    return walks


def write_tokens(path: Path, rows: np.ndarray, seq_len: int) -> list[dict[str, int]]:
    """Write uint16[n, seq_len + 1] as a token shard; return the payload of each row group."""
    assert rows.shape[1] == seq_len + 1
    shard = write_token_shard(path, rows.astype(np.uint16), row_group_rows=ROWS_PER_GROUP)
    return [group.to_json() for group in shard.payload]


def pack(docs: Sequence[np.ndarray], seq_len: int) -> tuple[np.ndarray, list[list[int]], list[list[int]]]:
    """Rows, lengths and references: documents one after another, split where they do not fit, some rows padded."""
    rows, lengths, refs = [], [], []
    row: list[int] = []
    held: list[tuple[int, int]] = []

    def close() -> None:
        rows.append(np.array(row + [0] * (seq_len + 1 - len(row))))
        lengths.append([n for n, _ in held])
        refs.append([d for _, d in held])
        row.clear()
        held.clear()

    for d, doc in enumerate(docs):
        left = doc.tolist()
        while left:
            if len(row) >= seq_len - 1:  # leaves up to two tokens of padding
                close()
            take = left[: seq_len + 1 - len(row)]
            row += take
            held.append((len(take), d))
            left = left[len(take) :]
    close()
    return np.stack(rows), lengths, refs


def _partition(store: Store, folder: Path, docs: Sequence[np.ndarray], seq_len: int, shards: int) -> dict[str, object]:
    entries, totals = [], dict.fromkeys(("documents", "tokens", "text_bytes", "sequences", "padding"), 0)
    for s in range(shards):
        part = docs[s::shards]
        rows, lengths, refs = pack(part, seq_len)
        path = folder / f"tokens-{s}"
        payload = write_tokens(path, rows, seq_len)
        sizes = [len(doc) for doc in part]
        ids = [hashlib.sha256(f"{s} {i} {doc.tolist()}".encode()).digest()[:16] for i, doc in enumerate(part)]
        urls = [f"https://toy.example/{doc_id.hex()[:8]}" for doc_id in ids]
        docs_table = pa.table([ids, sizes, [4 * n for n in sizes], urls], schema=PACK_DOCS)
        rows_table = pa.table([lengths, refs], schema=PACK_ROWS)
        ends = np.cumsum([len(row) for row in lengths])
        drafts: dict[str, Draft] = {
            "tokens": store.draft_file(path, content=digest_of(rows.tolist()), rows=len(rows)),
            "rows": store.draft_table(rows_table),
            "docs": store.draft_table(docs_table),
            "pieces": store.draft_bytes(pieces_of(ends, np.concatenate(lengths)).tobytes()),
        }
        unit = Unit("pack", 1, {}, (content_digest(rows_table), digest_of(rows.tolist())))
        receipt = store.commit(unit, drafts)
        entry = {name: output.to_json() for name, output in receipt.outputs.items()}
        entries.append(entry | {"sequences": len(rows), "payload": payload})
        totals["documents"] += len(part)
        totals["tokens"] += sum(sizes)
        totals["text_bytes"] += 4 * sum(sizes)
        totals["sequences"] += len(rows)
        totals["padding"] += sum(seq_len + 1 - sum(row) for row in lengths)
    return {"seq_len": seq_len, "token_bytes": 2, "shards": entries, **totals}


def publish_dataset(
    store_uri: Path | str,
    folder: Path,
    name: str = "toy",
    seed: int = 0,
    count: int = 400,
    seq_len: int = SEQ_LEN,
    made: Callable[[int, int], list[np.ndarray]] = documents,
    more: Mapping[str, int] = MappingProxyType({}),
    tokenizer: bytes | None = None,
) -> str:
    """Write, store and publish a dataset with partitions `crawl` (two shards), `books` and `heldout`; its digest.

    Args:
        more: further partitions, and the lengths of their sequences.
        tokenizer: its file, if another than usual.
    """
    store = open_store(store_uri, create=True)
    folder.mkdir(parents=True, exist_ok=True)
    unit = Unit("tokenizer", 1, {}, (str(seed),) if tokenizer is None else (str(seed), tokenizer.decode()))
    receipt = store.commit(unit, {"tokenizer": store.draft_bytes(tokenizer or tokenizer_json())})
    manifest = {
        **EMPTY,
        "format": 1,
        "name": name,
        "seed": seed,
        "tokenizer": {
            "output": receipt.outputs["tokenizer"].to_json(),
            "vocab_size": VOCAB,
            "eos": "<|endoftext|>",
            "eos_id": 0,
        },
        "partitions": {
            "crawl": _partition(store, folder, made(count, seed), seq_len, shards=2),
            "books": _partition(store, folder, made(count // 4, seed + 1), seq_len, shards=1),
            "heldout": _partition(store, folder, made(count // 10, seed + 2), seq_len, shards=1),
            **{
                partition: _partition(store, folder, made(count // 4, seed + 3), length, shards=1)
                for partition, length in more.items()
            },
        },
    }
    return store.publish(name, manifest, why="a test")
