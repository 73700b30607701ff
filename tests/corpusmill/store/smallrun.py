"""A run small enough to be stopped at each of its steps, and the invariants that must hold wherever it stops."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from corpusmill.errors import MillError
from corpusmill.store import Draft, Output, Receipt, Store, Unit, keys
from corpusmill.store.receipts import read_receipt, receipt_bytes

Commit = Callable[..., Receipt]
DOCUMENTS = pa.schema([("doc_id", pa.int64()), ("text", pa.large_string())])


def small_run(store: Store, files: int = 2, commit: Commit = Store.commit) -> tuple[str, int]:
    """Extract and judge `files` files, publish; (manifest digest, units that had to run)."""
    ran, rows = 0, []
    for number in range(files):
        extract = Unit("extract", 1, {"mode": "fast"}, (f"file-{number}",), libraries={"lib": "1"})
        documents, fresh = _unit(store, commit, extract, lambda number=number: _documents(number))
        ran += fresh
        judge = Unit("judge", 2, {"floor": 0.5}, (documents.outputs["table"].identity,))
        judged, fresh = _unit(store, commit, judge, lambda text=documents: _measures(store, text))
        ran += fresh
        for receipt in (documents, judged):
            rows += [
                {"stage": receipt.stage, "name": output.name, "digest": output.digest, "size": output.size}
                for output in receipt.outputs.values()
            ]
    lineage = Unit("publish", 1, {}, tuple(row["digest"] for row in rows))
    published, fresh = _unit(store, commit, lineage, lambda: pa.Table.from_pylist(rows))
    manifest = {"format": 1, "name": "small", "tables": {"lineage": published.outputs["table"].to_json()}}
    return store.publish("small", manifest, why="test"), ran + fresh


def _unit(store: Store, commit: Commit, unit: Unit, make: Callable[[], pa.Table]) -> tuple[Receipt, int]:
    if receipt := store.receipt(unit):
        return receipt, 0
    table = make()
    drafts = {"table": store.draft_table(table), "note": store.draft_bytes(f"{unit.stage} {unit.inputs[0]}".encode())}
    return commit(store, unit, drafts, counters={"docs": table.num_rows}), 1


def _documents(number: int) -> pa.Table:
    rows = [{"doc_id": number * 100 + row, "text": f"page {number}.{row} " * 20} for row in range(20)]
    return pa.Table.from_pylist(rows, DOCUMENTS)


def _measures(store: Store, documents: Receipt) -> pa.Table:
    text = store.table(documents.outputs["table"], ["text"])["text"]
    return pa.table({"text_bytes": [len(value.as_py()) for value in text]})


def receipt_first(store: Store, unit: Unit, drafts: Mapping[str, Draft], *, counters: Mapping[str, int]) -> Receipt:
    """The mutant: Store.commit with its two steps in the wrong order."""
    outputs = {
        label: Output(keys.object_name(draft.digest), draft.digest, draft.content, draft.size, draft.rows)
        for label, draft in drafts.items()
    }
    receipt = Receipt(unit.stage, unit.key, outputs, counters, {}, {}, {})
    store.create(keys.receipt_name(unit.stage, unit.key, 1), receipt_bytes(unit, receipt))
    for draft in drafts.values():
        store.create_file(keys.object_name(draft.digest), draft.path)
    return receipt


def inconsistencies(store: Store) -> list[str]:
    """What breaks I1-I4: names hold their bytes; receipts, manifests and history name only what is there."""
    faults: list[str] = []
    sizes = dict(store.backend.list(""))
    for name in sizes:
        try:
            faults += _faults_of(store, name, sizes)
        except (MillError, ValueError, KeyError) as err:
            faults.append(f"{name}: {err!r}")
    return faults


def _faults_of(store: Store, name: str, sizes: Mapping[str, int]) -> list[str]:
    data = store.get(name)
    if digest := keys.object_digest(name):
        return [] if hashlib.sha256(data).hexdigest() == digest else [f"I1 {name} holds other bytes"]
    if parts := keys.receipt_number(name):
        return _missing("I2", name, read_receipt(data, name, parts[0]).outputs.values(), sizes)
    if manifest := keys.manifest_parts(name):
        value: dict[str, Any] = json.loads(data)
        lineage = Output.from_json(value["tables"]["lineage"])
        named = [Output(r["name"], r["digest"], None, r["size"], None) for r in store.table(lineage).to_pylist()]
        wrong = [] if hashlib.sha256(data).hexdigest() == manifest[1] else [f"I3 {name} holds other bytes"]
        return wrong + _missing("I3", name, [lineage, *named], sizes)
    if entry := keys.history_parts(name):
        head = store.history(entry[0])[entry[1] - 1]["manifest"]
        return [] if keys.manifest_name(entry[0], head) in sizes else [f"I4 {name} names manifest {head}"]
    return [] if name == keys.STORE else [f"{name} is no name of the layout"]


def _missing(rule: str, name: str, outputs: Any, sizes: Mapping[str, int]) -> list[str]:
    return [f"{rule} {name} names {output.name}" for output in outputs if sizes.get(output.name) != output.size]
