"""Export: a dataset as files that other tools read. With `all`, the fate of every record that was ever read.

Documents come from the stored text, in the order of files and records; where a document ended is read from its
decisions, and for the last step from the documents that the shards really hold.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpusmill.dataset.manifest import Manifest, open_manifest
from corpusmill.errors import Refused, UsageError
from corpusmill.store import Output, Store
from corpusmill.store.scratch import Scratch
from tasks.folders import made as made_folder
from tasks.views import LAYERS, overlay

FORMATS = ("jsonl",)


@dataclass(frozen=True)
class Exported:
    """The file that was written."""

    file: Path
    lines: int
    size: int
    sha256: str
    partitions: Mapping[str, int]
    """Lines of documents that were packed, by their partition."""


def export(store: Store, digest: str, fmt: str, everything: bool, out: Path, *, raw: bool = False) -> Exported:
    """Write a dataset as JSON lines.

    A line has url, file, offset, doc_id, stage, reason, partition, lang, charset, id, date, title, author, licence,
    columns, text; stage and reason are null where the document was kept, doc_id and text where no document came of the
    record. The partition is that in whose shards the document is, `heldout` if it is not to be trained on; null where
    it was not packed. Copies of held-out documents are in it too, with reason `heldout_copy`.

    Args:
        digest: of the manifest. everything: a line for every record ever read, in `records.jsonl`; else the kept
        documents, in `documents.jsonl`. out: folder, made if it is not there. raw: texts as they are stored, without
        cuts and with the personal data in them.

    Raises:
        Refused: the file exists. UsageError: an unknown format.
    """
    if fmt not in FORMATS:
        raise UsageError(f"--format {fmt}", f"known: {', '.join(FORMATS)}")
    file = out / ("records.jsonl" if everything else "documents.jsonl")
    if out.exists() and not out.is_dir():
        raise Refused(f"{out} is not a folder", "an export never overwrites", "Choose another folder with -o.")
    if file.exists():
        raise Refused(f"{file} exists", "an export never overwrites", "Choose another folder or remove the file.")
    made_folder(out)
    sha, lines, size = hashlib.sha256(), 0, 0
    partitions: Counter[str] = Counter()
    with Scratch(out) as scratch:
        partial = scratch.path()
        with partial.open("wb") as to:
            for row in rows(store, open_manifest(store, digest), raw=raw):
                if everything or (row["doc_id"] is not None and row["stage"] is None):
                    line = json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
                    to.write(line)
                    sha.update(line)
                    lines, size = lines + 1, size + len(line)
                    if row["partition"] is not None:
                        partitions[row["partition"]] += 1
        try:
            os.link(partial, file)  # unlike a rename, this never replaces a file that came meanwhile
        except FileExistsError as err:
            raise Refused(f"{file} exists", "an export never overwrites", "Choose another folder.") from err
    return Exported(file, lines, size, sha.hexdigest(), dict(sorted(partitions.items())))


def rows(store: Store, manifest: Manifest, *, raw: bool = False) -> Iterator[dict[str, Any]]:
    """A row for every record ever read, in the order of files and records."""
    packed = _packed(store, manifest)
    for locator, objects in _by_shard(store, manifest):
        fates = _fates(store, objects, packed, raw)
        for record in store.table(objects["records"]).to_pylist():
            fate = fates.get(record["doc_id"], {})
            yield {
                "url": record["url"],
                "file": record.get("file") or locator,
                "offset": record["offset"],
                "doc_id": record["doc_id"].hex() if record["doc_id"] else None,
                "stage": fate.get("stage", record["stage"]),
                "reason": fate.get("reason", record["reason"]),
                "partition": packed.get(record["doc_id"]),
                "lang": fate.get("lang"),
                "charset": record["charset"],
                "id": record["source_id"],
                "date": record["date"],
                "title": fate.get("title"),
                "author": fate.get("author"),
                "licence": record["licence"],
                "columns": fate.get("columns"),
                "text": fate.get("text"),
            }


def _by_shard(store: Store, manifest: Manifest) -> Iterator[tuple[str, dict[str, Output]]]:
    """(locator, kind -> object) of every shard, in the order of files; of decisions, those of the last stage.

    A shard is called after its file, or the first of several; only blocks have a number behind it.
    """
    places: dict[str, dict[str, Output]] = {}
    for row in store.table(manifest.table("lineage")).to_pylist():
        output = Output(*(row[key] for key in ("name", "digest", "content", "size", "rows")))
        places.setdefault(row["locator"], {})[row["kind"]] = output  # later stages come later in the table
    for file in manifest.inputs:
        if objects := places.get(f"{file.source}/{file.locator}"):
            yield file.locator, objects


def _fates(
    store: Store, objects: Mapping[str, Output], packed: Mapping[bytes, str], raw: bool
) -> dict[bytes, dict[str, Any]]:
    """doc_id -> stage, reason (both null where kept), language and text, of one file's documents."""
    documents = store.table(objects["documents"])
    said = [name for name in ("title", "author", "columns") if name in documents.column_names]
    own = documents.select(said).to_pylist() if said else [{}] * documents.num_rows
    for one in own:
        if one.get("columns"):
            one["columns"] = json.loads(one["columns"])
    documents = documents.select(["doc_id", "text"]).combine_chunks()
    if not raw:
        over = overlay([objects[kind] for kind in LAYERS if kind in objects], store)
        text = over.over(documents.column("text").combine_chunks(), 0)
        documents = documents.set_column(1, "text", text)
    if "decisions" not in objects:  # a dataset of documents, none of them judged yet
        ids, texts = (column.to_pylist() for column in documents.columns)
        return {doc_id: {**own[i], "text": text} for i, (doc_id, text) in enumerate(zip(ids, texts, strict=True))}
    language = store.table(objects["language"], columns=["language"]).column("language").to_pylist()
    decisions = store.table(objects["decisions"], columns=["stage", "reason"]).to_pylist()
    fates = {}
    for i, (doc_id, text) in enumerate(zip(*(column.to_pylist() for column in documents.columns), strict=True)):
        fate = {**own[i], **decisions[i], "lang": language[i], "text": text}
        if fate["stage"] is None and doc_id not in packed:
            fate |= {"stage": "pack", "reason": "empty_document"}
        fates[doc_id] = fate
    return fates


def _packed(store: Store, manifest: Manifest) -> dict[bytes, str]:
    """The partition of each document that was packed."""
    found: dict[bytes, str] = {}
    for name, part in manifest.partitions.items():
        for shard in part.shards:
            column = store.table(shard.docs, columns=["doc_id"]).column("doc_id")
            found.update(dict.fromkeys(column.to_pylist(), name))
    return found
