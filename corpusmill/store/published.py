"""Datasets: manifests, their history, and references to them.

A history entry carries the digest of the entry before it, so a rewritten past does not fit its present.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from corpusmill.canonical import canonical_json, parse_canonical, sha256
from corpusmill.errors import CheckFailed, NotFound, Refused, UsageError
from corpusmill.store import keys
from corpusmill.store.create import stored_digest
from corpusmill.store.receipts import Output, seal, unseal

if TYPE_CHECKING:
    from corpusmill.store.store import Store

_OUTPUT_KEYS = {"name", "digest", "content", "size", "rows"}


def publish(
    store: Store, name: str, manifest: Mapping[str, object], why: str, expect_head: str | None, lineage: Output | None
) -> str:
    """See Store.publish."""
    keys.check_dataset(name)
    check_references(store, manifest, lineage)
    data = canonical_json(manifest)
    digest = sha256(data)
    store.put(keys.manifest_name(name, digest), data)
    while True:
        number, entry = _last(store, name)
        head = entry["manifest"] if entry else None
        if head == digest:
            return digest
        if expect_head is not None and head != expect_head:
            raise Refused(
                f"{name} was published by another process in the meantime.",
                f"expected {expect_head} as its newest manifest, found {head}",
                "Inspect the newest with `mill lineage`, then publish again.",
            )
        previous = sha256(seal(entry)) if entry else None
        new = {"name": name, "number": number + 1, "manifest": digest, "previous": previous, "why": why}
        _ = store.create(keys.history_name(name, number + 1), seal(new))  # whoever won: look at the last entry again


def check_references(store: Store, manifest: Mapping[str, object], lineage: Output | None) -> None:
    """Every object that the manifest or its lineage table names is stored, with its size and its sha256.

    Servers keep the sha256 of what they store; what lies in a folder is read.

    Raises:
        CheckFailed: with the first few that are not.
    """
    wanted = {output.name: output for output in outputs_in(manifest)}
    if lineage is not None:
        for row in store.table(lineage, ["name", "digest", "size"]).to_pylist():
            wanted.setdefault(row["name"], Output(row["name"], row["digest"], None, row["size"], None))
    with ThreadPoolExecutor(16) as pool:
        faults = [fault for fault in pool.map(lambda output: _fault(store, output), wanted.values()) if fault]
    if faults:
        raise CheckFailed(
            f"{len(faults)} of the {len(wanted)} objects of this dataset are missing or wrong; not published.",
            "; ".join(sorted(faults)[:5]),
            "Remove those that are wrong and run the build again: units whose objects are missing run again.",
        )


def _fault(store: Store, output: Output) -> str | None:
    if keys.object_digest(output.name) != output.digest:
        return f"{output.name} is not the name of sha256 {output.digest}"
    stat = store.backend.stat(output.name)
    if stat is None:
        return f"{output.name} is missing"
    if stat.size != output.size:
        return f"{output.name} has {stat.size} bytes, not {output.size}"
    found = stat.digest or stored_digest(store.backend, output.name)
    if found != output.digest:
        return f"{output.name} is damaged: its bytes have sha256 {found}"
    return None


def outputs_in(value: object) -> Iterator[Output]:
    """Every Output inside a manifest, in order."""
    if isinstance(value, Mapping):
        if value.keys() == _OUTPUT_KEYS:
            yield Output.from_json(value)
        else:
            for inner in value.values():
                yield from outputs_in(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from outputs_in(inner)


def manifest(store: Store, digest: str, name: str | None) -> dict[str, Any]:
    """See Store.manifest."""
    if not keys.DIGEST.fullmatch(digest):
        raise UsageError(f"{digest!r} is not a manifest digest.", "A digest has 64 hex digits.")
    path = keys.manifest_name(name or _dataset_of(store, digest), digest)
    data = store.get(path)
    if sha256(data) != digest:
        raise CheckFailed(f"{path} is damaged.", f"its bytes have sha256 {sha256(data)}", "Remove it and build again.")
    return dict(parse_canonical(data))


def _dataset_of(store: Store, digest: str) -> str:
    for name, found in _manifests(store, "datasets/"):
        if found == digest:
            return name
    raise NotFound(
        f"No dataset in {store.uri} has the manifest {digest}.", do="`mill lineage NAME` shows what is there."
    )


def _manifests(store: Store, prefix: str) -> list[tuple[str, str]]:
    return [parts for path in store.list(prefix) if (parts := keys.manifest_parts(path))]


_REF = re.compile(r"([^@]+)(?:@([0-9a-f]{6,64}))?")


def resolve(store: Store, ref: str) -> tuple[str, str]:
    """See Store.resolve."""
    if keys.DIGEST.fullmatch(ref):
        return _dataset_of(store, ref), ref
    match = _REF.fullmatch(ref)
    if match is None or not keys.is_dataset(match[1]):
        raise UsageError(
            f"{ref!r} is not a reference to a dataset.",
            "A reference is name, name@digest (6 or more hex digits of it), or a whole digest.",
            "For example: web-en or web-en@51aa03.",
        )
    name, prefix = match[1], match[2]
    if prefix is None:
        _, entry = _last(store, name)
        if entry is None:
            raise NotFound(
                f"There is no dataset {name!r} in {store.uri}.",
                f"Published datasets: {', '.join(names(store)) or 'none'}.",
            )
        return name, entry["manifest"]
    found = sorted({digest for dataset, digest in _manifests(store, f"datasets/{name}/{prefix}") if dataset == name})
    if len(found) > 1:
        raise UsageError(f"{ref!r} is ambiguous.", f"It matches {', '.join(found)}.", "Give more digits.")
    if not found:
        raise NotFound(f"Dataset {name!r} in {store.uri} has no manifest that starts with {prefix}.")
    return name, found[0]


def _numbers(store: Store, name: str) -> list[int]:
    return [parts[1] for path in store.list(f"history/{name}/") if (parts := keys.history_parts(path))]


def _last(store: Store, name: str) -> tuple[int, dict[str, Any] | None]:
    number = max(_numbers(store, name), default=0)
    return number, _entry(store, name, number) if number else None


def _entry(store: Store, name: str, number: int) -> dict[str, Any]:
    path = keys.history_name(name, number)
    entry = unseal(store.get(path), path)
    if (entry["name"], entry["number"]) != (name, number):
        raise CheckFailed(
            f"{path} is the entry of {entry['name']}, number {entry['number']}.", do="Restore it from a backup."
        )
    return entry


def history(store: Store, name: str) -> list[dict[str, Any]]:
    """See Store.history."""
    entries: list[dict[str, Any]] = []
    for number in _numbers(store, name):
        entry = _entry(store, name, number)
        previous = sha256(seal(entries[-1])) if entries else None
        if entry["previous"] != previous or number != len(entries) + 1:
            raise CheckFailed(
                f"{keys.history_name(name, number)} does not follow the entry before it.",
                f"it names {entry['previous']}, the entry before it has {previous}",
                "The history was changed or an entry is missing; restore it from a backup.",
            )
        entries.append(entry)
    return entries


def names(store: Store) -> list[str]:
    """See Store.names."""
    return sorted({parts[0] for path in store.list("history/") if (parts := keys.history_parts(path))})
