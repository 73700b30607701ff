"""Texts to train small models on: JSON lines, Parquet, plain text, folders of them, or the documents of a dataset.

Unlike a crawl, such a file is chosen by somebody, so what cannot be read is an error and not a counted loss.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from corpusmill.dataset.manifest import Manifest, open_manifest
from corpusmill.errors import NotFound, Unavailable, UsageError
from corpusmill.readers.text import clean_text
from corpusmill.store import Store, open_store
from tasks.acquire.streams import Damage, Line, lines, pieces, whole

BLOCK_BYTES = 2**20
"""A plain text read by lines comes in blocks of about so much."""
MAX_TEXT_BYTES = 2**28
"""Largest row or whole file that is one document."""

_JSONL = re.compile(r"\.(jsonl|ndjson|json)(\.(gz|bz2|xz|zst))?$")
_BOM = b"\xef\xbb\xbf"


def texts(sources: Sequence[str], store: str, field: str = "text", by_line: bool = False) -> Iterator[str]:
    """The texts of some sources, in their order; in a folder by path.

    Args:
        sources: files, folders, or datasets (name, name@digest) of the store.
        store: address of the store, opened where a source is a dataset.
        field: column of JSON lines and Parquet files that holds the text.
        by_line: a plain text file is cut at newlines into blocks, whatever its size; else it is one document.

    Raises:
        NotFound: neither a file nor a dataset. UsageError: a row without text, or a text that is not UTF-8.
        Unavailable: a damaged file.
    """
    opened: Store | None = None
    for source in sources:
        path = Path(source)
        if path.is_dir():
            files = sorted(file for file in path.rglob("*") if file.is_file())
            if not files:
                raise NotFound(f"{source}: the folder has no file", "expected JSON lines, Parquet or text files")
            for file in files:
                yield from _file_texts(file, field, by_line)
        elif path.is_file():
            yield from _file_texts(path, field, by_line)
        else:
            try:
                opened = opened or open_store(store)
                name, digest = opened.resolve(source)
            except (NotFound, UsageError) as err:
                raise NotFound(f"{source}: no such file or folder", f"nor a dataset: {err.what}", err.do) from err
            yield from _dataset_texts(opened, open_manifest(opened, digest, name))


def _file_texts(path: Path, field: str, by_line: bool) -> Iterator[str]:
    if path.suffix == ".parquet":
        found = _parquet_texts(path, field)
    elif _JSONL.search(path.name):
        found = _jsonl_texts(path, field)
    else:
        found = _blocks(path) if by_line else _whole(path)
    for text in found:
        yield clean_text(text)[0]


def _jsonl_texts(path: Path, field: str) -> Iterator[str]:
    for number, line in enumerate(lines(pieces(path), MAX_TEXT_BYTES), 1):
        data = _sound(path, line).removeprefix(_BOM)
        if not data.strip():
            continue
        try:
            row: Any = json.loads(data)
        except (ValueError, RecursionError) as err:
            raise UsageError(
                f"{path}, line {number}: not JSON", str(err), "Expected one JSON object per line."
            ) from err
        if not isinstance(row, dict) or not isinstance(row.get(field), str):
            has = f"it has {', '.join(sorted(row)[:8])}" if isinstance(row, dict) else f"it is {type(row).__name__}"
            raise UsageError(f"{path}, line {number}: no text in {field!r}", has, "Name the column with --field.")
        yield row[field]


def _parquet_texts(path: Path, field: str) -> Iterator[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as table:
            names = table.schema_arrow.names
            if field not in names:
                has = f"it has {', '.join(names[:8])}"
                raise UsageError(f"{path}: no column {field!r}", has, "Name the column with --field.")
            for batch in table.iter_batches(1024, columns=[field]):
                for number, text in enumerate(batch.column(0).to_pylist()):
                    if not isinstance(text, str):
                        kind = type(text).__name__
                        raise UsageError(f"{path}: a row without text in {field!r}", f"row {number} of a batch: {kind}")
                    yield text
    except (pa.ArrowException, OSError) as err:
        raise Unavailable(f"{path} cannot be read", str(err)[:300], "Check the file; it may be damaged.") from err


def _whole(path: Path) -> Iterator[str]:
    try:
        data = whole(pieces(path), MAX_TEXT_BYTES)
    except Damage as err:
        raise _damaged(path, err) from err
    if data is None:
        raise UsageError(f"{path} is too large for one document", f"at most {MAX_TEXT_BYTES:,} bytes")
    yield _decoded(path, data)


def _blocks(path: Path) -> Iterator[str]:
    held: list[bytes] = []
    size = 0
    for line in lines(pieces(path), MAX_TEXT_BYTES):
        held.append(_sound(path, line))
        size += line.size + 1
        if size >= BLOCK_BYTES:
            yield _decoded(path, b"\n".join(held))
            held, size = [], 0
    if held:
        yield _decoded(path, b"\n".join(held))


def _decoded(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as err:
        raise UsageError(f"{path}: not UTF-8", str(err), "Convert it, for example with iconv.") from err


def _sound(path: Path, line: Line) -> bytes:
    if line.damage:
        raise _damaged(path, line.damage)
    if line.fault:
        raise UsageError(f"{path}: a line of {line.size:,} bytes", f"at most {MAX_TEXT_BYTES:,} bytes per line")
    return line.data


def _damaged(path: Path, damage: Damage) -> Unavailable:
    if damage.needs:
        return Unavailable(f"{path} takes too much memory to unpack", f"it has {damage.needs}", "Pack it with less.")
    return Unavailable(f"{path} is {damage.reason}", "expected a complete file, plain or compressed", "Fetch it again.")


def _dataset_texts(store: Store, manifest: Manifest) -> Iterator[str]:
    from tasks.queries.export import rows

    for row in rows(store, manifest):
        if row["doc_id"] is not None and row["stage"] is None:
            yield row["text"]
