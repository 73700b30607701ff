"""The store: units with receipts, verified reads, published datasets, on a local folder or any S3.

Write order: objects, then receipt, then manifest, then history entry; every name is create-if-absent and nothing
visible is ever changed. So a kill leaves a prefix of the writes, and every prefix is a valid store: run again and
only what is missing is done.
"""

from __future__ import annotations

import builtins
import os
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from corpusmill.canonical import sha256
from corpusmill.errors import NotFound, Refused, Unavailable, UsageError
from corpusmill.store import keys, published
from corpusmill.store.backend import Absent, Backend, Source
from corpusmill.store.create import create
from corpusmill.store.folder import FolderBackend, disk_fault
from corpusmill.store.parquet import ROW_GROUP_BYTES, TableWriter, read_batches, read_table
from corpusmill.store.reader import Reader
from corpusmill.store.receipts import Draft, Output, Receipt, Unit, read_receipt, receipt_bytes, seal, unseal
from corpusmill.store.scratch import Scratch, process_scratch


def open_store(uri: str | Path, *, create: bool = False) -> Store:
    """Open the store in a folder (a path) or a bucket (`s3://bucket/prefix`).

    Args:
        create: make an empty store where there is none; buckets are never made.

    Raises:
        NotFound: there is no store (no STORE.json), and `create` is off.
        Refused: the folder holds other things, or the store has a newer format.
        Unavailable: server, bucket, credentials or disk.
        UsageError: an address of another kind.
    """
    backend = _backend(str(uri))
    try:
        marker = backend.read(keys.STORE)
    except Absent:
        if not create:
            raise NotFound(
                f"There is no store at {backend.uri}.",
                "A store has a file STORE.json; there is none.",
                "Check --store or CORPUSMILL_STORE, or create a store there with `mill build … --create-store`.",
            ) from None
        return _create_store(backend)
    unseal(marker, keys.STORE)
    return Store(backend)


def _backend(uri: str) -> Backend:
    scheme, separator, rest = uri.partition("://")
    if separator and scheme == "s3":
        from corpusmill.store.s3 import S3Backend  # boto3 takes 0.3 s to import; folders do without

        return S3Backend.open(rest)
    if separator and scheme != "file":
        raise UsageError(f"{uri} is not a store URI.", "Expected a folder or s3://bucket/prefix.", "Check --store.")
    try:
        folder = Path(rest if separator else uri).expanduser().absolute()
    except RuntimeError as err:
        raise UsageError(f"{uri} cannot be a store.", f"{err} HOME is not set.", "Give a whole path.") from err
    if file := next(filter(os.path.isfile, (folder, *folder.parents)), None):  # False also where it may not be seen
        raise UsageError(f"{uri} cannot be a store.", f"{file} is a file; a store is a folder.", "Check --store.")
    return FolderBackend(folder)


def _create_store(backend: Backend) -> Store:
    others = [] if not isinstance(backend, FolderBackend) else [name for name, _ in backend.list("")]
    if others and keys.STORE not in others:
        raise Refused(
            f"{backend.uri} is not empty and is not a store.",
            f"It contains {others[0]!r} and more.",
            "Choose an empty folder.",
        )
    if not isinstance(backend, FolderBackend):
        _require_working(backend)
    if not create(backend, keys.STORE, Source.of(seal({"digest": "sha256"}))):
        unseal(backend.read(keys.STORE), keys.STORE)  # somebody else's, made meanwhile: it must be one that we know
    return Store(backend)


def _require_working(backend: Backend) -> None:
    """A short probe before a server is trusted with a store; in a folder the first write shows all."""
    from corpusmill.store.doctor import probe_backend

    for check in probe_backend(backend, writers=4, rounds=2, keys=10):
        if not check.ok:
            raise Unavailable(
                f"{backend.uri} cannot hold a store: check {check.name!r} failed.",
                check.says,
                "Use another server or a newer version of it.",
            )


class Store:
    """One store. Safe to use from several threads and processes at once; pickles as its address."""

    def __init__(self, backend: Backend) -> None:
        self.backend, self.uri = backend, backend.uri
        self._scratch = process_scratch(Path(tempfile.gettempdir()))
        self._reader = Reader(backend, self._scratch)
        self._numbers: dict[str, dict[str, int]] = {}  # stage -> unit key -> highest receipt number
        self._listed: set[str] = set()  # objects/<2 hex>/ prefixes listed so far
        self._present: set[str] = set()  # objects seen there or acknowledged to us
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return open_store, (self.uri,)

    # units

    def receipt(self, unit: Unit) -> Receipt | None:
        """The receipt of a finished unit, None if it has to run.

        A stage's receipts are listed once per Store. A receipt whose objects are gone counts as none: run again.

        Raises:
            CheckFailed: the receipt is damaged.
        """
        with self._lock:
            if unit.stage not in self._numbers:
                self._numbers[unit.stage] = self._highest(f"receipts/{unit.stage}/")
            number = self._numbers[unit.stage].get(unit.key)
        if number is None:
            return None
        receipt = self._read_receipt(unit, number)
        return receipt if receipt is not None and self._complete(receipt) else None

    def commit(
        self,
        unit: Unit,
        outputs: Mapping[str, Draft],
        *,
        counters: Mapping[str, int] | None = None,
        reasons: Mapping[str, Mapping[str, int]] | None = None,
        facts: Mapping[str, object] | None = None,
        versions: Mapping[str, str] | None = None,
    ) -> Receipt:
        """Store the outputs, then the receipt; return what the store says, which may be another worker's equal result.

        If the store already has a receipt of this unit with another result, that one counts, and the difference is kept
        under runs/divergences/. Scratch files of the drafts are removed.

        Raises:
            Refused: an object of this name is stored with other bytes (damage); nothing is committed.
        """
        stored = {label: self._store_object(draft) for label, draft in outputs.items()}
        ours = Receipt(unit.stage, unit.key, stored, counters or {}, reasons or {}, versions or {}, facts or {})
        data = receipt_bytes(unit, ours)
        number = self._highest(f"receipts/{unit.stage}/{unit.key}.").get(unit.key, 1)
        while True:
            _ = self._create(keys.receipt_name(unit.stage, unit.key, number), Source.of(data))  # read back, whose ever
            kept = self._read_receipt(unit, number)
            if kept is not None and self._complete(kept):
                break
            number += 1  # that receipt's objects are gone: ours repairs it
        with self._lock:
            self._numbers.setdefault(unit.stage, {})[unit.key] = number
        if not kept.agrees(ours):
            difference = seal({"kept": kept.to_json(), "tried": ours.to_json()})
            self.put(f"runs/divergences/{unit.stage}/{unit.key}.{sha256(difference)[:16]}.json", difference)
        for draft in outputs.values():
            self._scratch.discard(draft.path)
        return kept

    def _highest(self, prefix: str) -> dict[str, int]:
        """Unit key -> highest receipt number, of the receipts under a prefix."""
        found: dict[str, int] = {}
        for name, _ in self.backend.list(prefix):
            if parts := keys.receipt_number(name):
                found[parts[0]] = max(parts[1], found.get(parts[0], 0))
        return found

    def _read_receipt(self, unit: Unit, number: int) -> Receipt | None:
        name = keys.receipt_name(unit.stage, unit.key, number)
        try:
            return read_receipt(self.backend.read(name), name, unit.key)
        except Absent:
            return None

    def _store_object(self, draft: Draft) -> Output:
        name = keys.object_name(draft.digest)
        self._put(name, Source(draft.digest, draft.size, path=draft.path))
        with self._lock:
            self._present.add(name)
        return Output(name, draft.digest, draft.content, draft.size, draft.rows)

    def _complete(self, receipt: Receipt) -> bool:
        return all(self._has_object(output.name) for output in receipt.outputs.values())

    def _has_object(self, name: str) -> bool:
        """One LIST answers for up to 1,000 objects, so a rerun over many receipts needs no request per object."""
        prefix = name[: name.rfind("/") + 1]
        with self._lock:
            if name not in self._present and prefix not in self._listed:
                self._listed.add(prefix)
                self._present.update(found for found, _ in self.backend.list(prefix))
            if name not in self._present and self.backend.stat(name) is not None:
                self._present.add(name)
            return name in self._present

    # drafts

    def table_writer(self, schema: pa.Schema, *, row_group_bytes: int = ROW_GROUP_BYTES) -> TableWriter:
        """Context manager with `.write(RecordBatch | Table)`; `.draft` after it. The file depends on the rows only."""
        return TableWriter(self._scratch.path(), schema, row_group_bytes)

    def draft_table(self, table: pa.Table) -> Draft:
        """A whole table as a draft."""
        with self.table_writer(table.schema) as out:
            out.write(table)
        return out.draft

    def draft_bytes(self, data: builtins.bytes) -> Draft:
        """Bytes as a draft."""
        path = self._scratch.path()
        try:
            path.write_bytes(data)
        except OSError as err:
            path.unlink(missing_ok=True)
            raise disk_fault(err, path.parent) from err
        return Draft(path, sha256(data), None, len(data), None)

    def draft_file(self, path: Path, *, content: str | None = None, rows: int | None = None) -> Draft:
        """A local file as a draft; it must not change until it is committed, and stays where it is."""
        source = Source.of_file(path)
        return Draft(path, source.digest, content, source.size, rows)

    # verified reads: each raises CheckFailed for damaged bytes, NotFound where the object is gone

    def table(self, output: Output, columns: Sequence[str] | None = None) -> pa.Table:
        """The table, or some columns of it in the order asked for."""
        return read_table(self._reader.source(output), columns, output.name)

    def batches(
        self, output: Output, columns: Sequence[str] | None = None, batch_rows: int = 4096
    ) -> Iterator[pa.RecordBatch]:
        """Stream the table in batches of at most `batch_rows` rows."""
        return read_batches(self._reader.source(output), columns, batch_rows, output.name)

    def bytes(self, output: Output) -> builtins.bytes:
        """The whole object."""
        return self._reader.bytes(output)

    def local_path(self, output: Output) -> Path:
        """A verified local file with the object: the object itself in a folder store, else a copy fetched once."""
        return self._reader.local_path(output)

    def is_local(self, output: Output) -> bool:
        """Whether the object is a file of a folder store."""
        return self.backend.local(output.name) is not None

    def local_parts(self, output: Output) -> Path:
        """As `local_path`, for readers that verify the parts that they read: a file of a folder store is not hashed."""
        return self._reader.local_parts(output)

    # low level

    def create(self, name: str, data: builtins.bytes) -> bool:
        """Create if absent. True: the store holds our bytes (or equal ones); False: it holds others.

        For names that several writers want; where only these bytes may be, `put` refuses others.
        """
        return self._create(name, Source.of(data))

    def create_file(self, name: str, path: Path) -> bool:
        """`create` from a local file."""
        return self._create(name, Source.of_file(path))

    def put(self, name: str, data: builtins.bytes) -> None:
        """Create if absent.

        Raises:
            Refused: the store holds other bytes under this name.
        """
        self._put(name, Source.of(data))

    def _put(self, name: str, source: Source) -> None:
        if not self._create(name, source):
            raise Refused(
                f"{name} is damaged: the store {self.uri} has other bytes under this name.",
                f"expected {source.size} bytes of sha256 {source.digest}",
                "Run `mill verify`; remove the damaged file and run again: it is then written anew.",
            )

    def _create(self, name: str, source: Source) -> bool:
        return create(self.backend, keys.check_name(name), source)

    def get(self, name: str) -> builtins.bytes:
        """All bytes under a name. Objects are better read through their Output, which says what they must be.

        Raises:
            NotFound: nothing has this name.
        """
        try:
            data = self.backend.read(keys.check_name(name))
        except Absent:
            raise self._not_found(name) from None
        return data

    def get_file(self, name: str, to: Path) -> None:
        """Fetch into a local file, which appears whole or not at all."""
        try:
            with Scratch(to.parent) as scratch:
                self._reader.fetch(keys.check_name(name), to, scratch)
        except Absent:
            raise self._not_found(name) from None

    def _not_found(self, name: str) -> NotFound:
        return NotFound(f"{name} is not in the store {self.uri}.", do="Run `mill verify` to see what is missing.")

    def remove(self, name: str) -> None:
        """Remove a file of a checkpoint; no fault if it is not there. All else stays for ever.

        Raises:
            ValueError: the name is not below `checkpoints/`.
        """
        if not keys.check_name(name).startswith("checkpoints/"):
            raise ValueError(f"{name} is never removed")
        self.backend.delete(name)

    def list(self, prefix: str) -> builtins.list[str]:
        """All names that start with `prefix`, sorted."""
        return [name for name, _ in self.backend.list(keys.check_prefix(prefix))]

    def refuse_links(self) -> None:
        """In a folder, look for links and the like; they are refused (folder.py). A bucket has none."""
        if isinstance(self.backend, FolderBackend):
            self.backend.refuse_links()

    def exists(self, name: str) -> bool:
        """Whether something has this name."""
        return self.backend.stat(keys.check_name(name)) is not None

    # publish

    def publish(
        self,
        name: str,
        manifest: Mapping[str, object],
        *,
        why: str,
        expect_head: str | None = None,
        lineage: Output | None = None,
    ) -> str:
        """Verify every object the manifest refers to, store it, append to the history; return its digest.

        Publishing what is the head already changes nothing.

        Args:
            expect_head: refuse if the newest manifest of this name is another one.
            lineage: a table whose rows name further objects to verify.

        Raises:
            CheckFailed: an object is missing or not what the manifest says. Refused: the head has moved.
        """
        return published.publish(self, name, manifest, why, expect_head, lineage)

    def manifest(self, digest: str, name: str | None = None) -> dict[str, Any]:
        """The manifest of this digest, verified. Without `name` all datasets are searched."""
        return published.manifest(self, digest, name)

    def resolve(self, ref: str) -> tuple[str, str]:
        """(name, digest) of REF: a name (its newest), name@digest prefix (6 or more hex digits), or a full digest."""
        return published.resolve(self, ref)

    def history(self, name: str) -> builtins.list[dict[str, Any]]:
        """The entries of a dataset, oldest first, their chain verified."""
        return published.history(self, name)

    def names(self) -> builtins.list[str]:
        """The names of all published datasets, sorted."""
        return published.names(self)
