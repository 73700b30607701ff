"""Verify a dataset: every digest, row and count that its manifest states, in an order that names the first thing wrong.

Every object is read from the store itself (never from a cache) and its bytes and rows are hashed; then what the objects
say about each other is compared: rows of attributes and decisions with documents, token counts with the shards.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from corpusmill.canonical import content_digest
from corpusmill.dataset import funnel
from corpusmill.dataset.manifest import Manifest, PackedShard, Partition
from corpusmill.errors import CheckFailed, NotFound
from corpusmill.kernels.gather import pieces_of
from corpusmill.store import Output, Store

ALIGNED = ("documents", "language", "measures", "digests", "decisions")
"""Kinds of objects that have one row per document of their file."""

SUMS = ("documents", "tokens", "text_bytes", "sequences", "padding")


def verify(store: Store, manifest: Manifest) -> dict[str, int]:
    """Check a whole dataset.

    Args:
        manifest: as read from the store, which has verified its digest.

    Returns:
        {"objects", "bytes", "documents", "tokens"}: how much was checked.

    Raises:
        CheckFailed: names the first thing that is not as it should be. Refused: a link in a folder store.
    """
    store.refuse_links()
    for fault in funnel.faults(manifest.funnel):
        raise CheckFailed("the funnel does not add up", fault, "Build the dataset again with this version.")
    checked: dict[str, Output] = {}
    lineage = _object(store, manifest.table("lineage"), "tables.lineage", checked)
    rows = store.table(lineage).to_pylist()
    for where, output in _named(manifest):
        _object(store, output, where, checked)
    for row in rows:
        _object(store, Output(*(row[k] for k in ("name", "digest", "content", "size", "rows"))), _place(row), checked)
    documents = _aligned(store, rows)
    _documents_are_those_of_the_funnel(documents, manifest)
    tokens = sum(_partition(store, name, part) for name, part in sorted(manifest.partitions.items()))
    if manifest.partitions:  # a dataset of documents has none
        _packed_are_those_of_the_funnel(manifest)
    return {
        "objects": len(checked),
        "bytes": sum(output.size for output in checked.values()),
        "documents": documents,
        "tokens": tokens,
    }


def _named(manifest: Manifest) -> Iterator[tuple[str, Output]]:
    if manifest.tokenizer:
        yield "tokenizer", manifest.tokenizer.output
    for name, output in sorted(manifest.tables.items()):
        yield f"tables.{name}", output
    for partition, part in sorted(manifest.partitions.items()):
        for i, shard in enumerate(part.shards):
            for kind, output in shard.outputs().items():
                yield f"partitions.{partition}.shards[{i}].{kind}", output


def _object(store: Store, output: Output, where: str, checked: dict[str, Output]) -> Output:
    """The bytes of one object, once; its size, its rows and their content digest."""
    known = checked.get(output.digest)
    if known == output:
        return output
    try:
        data = store.bytes(output)
    except NotFound as err:
        raise _wrong(f"{where}: {output.name} is missing", err.what) from err
    except CheckFailed as err:
        raise _wrong(f"{where}: {err.what}", err.why) from err
    if len(data) != output.size:
        raise _wrong(f"{where}: {output.name} has {len(data)} bytes", f"the manifest says {output.size}")
    if output.rows is not None:
        table = store.table(output)
        if table.num_rows != output.rows:
            raise _wrong(f"{where}: {output.name} has {table.num_rows} rows", f"the manifest says {output.rows}")
        if output.content is not None and (found := content_digest(table)) != output.content:
            raise _wrong(f"{where}: the rows of {output.name} have the content digest {found}", f"not {output.content}")
    checked[output.digest] = output
    return output


def _aligned(store: Store, rows: list[dict[str, Any]]) -> int:
    """Attributes and decisions have the rows of their documents, and decisions their ids; returns the documents."""
    total = 0
    documents = {row["locator"]: row for row in rows if row["kind"] == "documents"}
    for row in rows:
        of = documents.get(row["locator"])
        if row["kind"] not in ALIGNED or of is None:
            continue
        if row["rows"] != of["rows"]:
            raise _wrong(f"{_place(row)} has {row['rows']} rows", f"its documents have {of['rows']}")
        if row["kind"] == "documents":
            total += row["rows"]
        elif row["kind"] == "decisions" and _ids(store, row) != _ids(store, of):
            raise _wrong(f"{_place(row)}: its rows are not those of the documents", "doc_id differs")
    return total


def _ids(store: Store, row: Mapping[str, Any]) -> pa.ChunkedArray:
    output = Output(*(row[k] for k in ("name", "digest", "content", "size", "rows")))
    return store.table(output, columns=["doc_id"]).column("doc_id")


def _documents_are_those_of_the_funnel(documents: int, manifest: Manifest) -> None:
    extracted = manifest.row("extract").docs_out
    if extracted != documents:
        raise _wrong(f"the shards hold {documents} documents", f"the funnel says {extracted} were extracted")


def _packed_are_those_of_the_funnel(manifest: Manifest) -> None:
    packed = sum(part.documents for part in manifest.partitions.values())
    counted = manifest.documents + manifest.heldout_copies
    if packed != counted:
        raise _wrong(f"the partitions hold {packed} documents", f"the funnel says {counted} were packed")


def _partition(store: Store, name: str, part: Partition) -> int:
    """Sums over the shards of one partition are what the manifest says; returns its tokens."""
    sums = dict.fromkeys(SUMS, 0)
    for i, shard in enumerate(part.shards):
        counts = _shard(store, shard, part, f"partitions.{name}.shards[{i}]")
        sums = {key: sums[key] + counts[key] for key in SUMS}
    for key in SUMS:
        if sums[key] != (stated := getattr(part, key)):
            raise _wrong(f"partitions.{name}.{key} is {stated}", f"its shards hold {sums[key]}")
    return sums["tokens"]


def _shard(store: Store, shard: PackedShard, part: Partition, where: str) -> dict[str, int]:
    row_tokens = part.seq_len + 1
    docs = store.table(shard.docs, columns=["tokens", "text_bytes"])
    lengths = store.table(shard.rows, columns=["doc_lens"]).column("doc_lens")
    in_rows = pc.sum(pc.list_flatten(lengths)).as_py() or 0
    tokens = pc.sum(docs.column("tokens")).as_py() or 0
    if in_rows != tokens:
        raise _wrong(f"{where}: its rows hold {in_rows} tokens", f"its documents have {tokens}")
    sequences = shard.sequences
    if not len(lengths) == sequences == shard.tokens.rows == sum(group.rows for group in shard.payload):
        raise _wrong(f"{where}: it has {len(lengths)} rows", f"the manifest says {sequences} sequences")
    if shard.pieces is not None:
        column = lengths.combine_chunks()
        pieces = pieces_of(column.offsets.to_numpy()[1:], column.values.to_numpy())
        if pieces.tobytes() != store.bytes(shard.pieces):
            raise _wrong(f"{where}: its pieces are not those of its rows", "the two say other lengths")
    data = memoryview(store.bytes(shard.tokens))
    for group in shard.payload:
        start, size = group.offset, group.rows * row_tokens * part.token_bytes
        if zlib.crc32(data[start : start + size]) != group.crc32:
            raise _wrong(f"{where}: the rows at byte {start} are not what the manifest says", "crc32 differs")
    return {
        "documents": docs.num_rows,
        "tokens": tokens,
        "text_bytes": pc.sum(docs.column("text_bytes")).as_py() or 0,
        "sequences": sequences,
        "padding": sequences * row_tokens - tokens,
    }


def _place(row: Mapping[str, Any]) -> str:
    return f"{row['stage']} {row['locator']} {row['kind']}".replace("  ", " ")


def _wrong(what: str, why: str) -> CheckFailed:
    return CheckFailed(what, why, "Remove the damaged object and build again: only the units that made it run again.")
