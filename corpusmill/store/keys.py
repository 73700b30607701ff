"""Names in a store: the layout in one place, and the one validator every name passes.

    STORE.json                              format; created once
    objects/<2 hex>/<sha256>[.<n>]          immutable bytes; `.<n>` is for a collector that has condemned the plain name
    receipts/<stage>/<unit key>.<n>         what a unit produced; the highest n counts
    datasets/<name>/<sha256>.json           a manifest, named by its own digest (signed: `<sha256>.json.sig`)
    history/<name>/<8 digits>               append-only; the highest number is "latest"
    runs/...                                times, hosts, divergences, stamps of files: nothing a digest depends on
    checkpoints/<run id>/<step>/...         COMMIT.json last
    labels/<name>/<reason>/<document>.<n>   what people say of rejected documents; the highest n counts
    gc/, erasures/, tombstones/             kept free for garbage collection and takedown

Readers never derive the name of an object: receipts and manifests record it.
"""

from __future__ import annotations

import re

STORE = "STORE.json"

_COMPONENT = re.compile(r"[a-z0-9._-]{1,255}|STORE\.json|COMMIT\.json")
_OBJECT = re.compile(r"objects/([0-9a-f]{2})/(\1[0-9a-f]{62})(?:\.[0-9]{1,9})?")
_RECEIPT = re.compile(r"receipts/[a-z0-9._-]+/([0-9a-f]{64})\.([0-9]{1,9})")
_MANIFEST = re.compile(r"datasets/([a-z0-9._-]+)/([0-9a-f]{64})\.json")
_HISTORY = re.compile(r"history/([a-z0-9._-]+)/([0-9]{8})")
_DATASET = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
DIGEST = re.compile(r"[0-9a-f]{64}")
MAX_NAME_BYTES = 800  # S3 allows 1,024 bytes for the prefix of the store and the name together


def check_name(name: str) -> str:
    """The name itself, if it is a legal one.

    Raises:
        ValueError: empty, absolute, with `..` or a character outside `[a-z0-9._/-]`, too long, or in `tmp/`.
    """
    parts = name.split("/")
    legal = all(_COMPONENT.fullmatch(part) and part not in (".", "..") for part in parts)
    if not legal or len(name) > MAX_NAME_BYTES or parts[0] == "tmp":
        raise ValueError(
            f"{name!r} is no name in a store: /-separated parts of [a-z0-9._-], at most {MAX_NAME_BYTES} bytes"
        )
    return name


def check_prefix(prefix: str) -> str:
    """The prefix itself, if it stays inside the store. Raises ValueError."""
    if prefix.startswith("/") or ".." in prefix.split("/"):
        raise ValueError(f"{prefix!r} is no prefix of names in a store")
    return prefix


def check_dataset(name: str) -> str:
    """The dataset name itself, if it is legal: it starts with a letter or digit and is not shaped like a digest."""
    if not is_dataset(name):
        raise ValueError(
            f"{name!r} is no dataset name: lower-case letters, digits, '.', '_', '-', at most 100, not a digest"
        )
    return name


def is_dataset(name: str) -> bool:
    """Whether `check_dataset` would accept it."""
    return bool(_DATASET.fullmatch(name)) and not DIGEST.fullmatch(name)


def object_name(digest: str) -> str:
    """Where bytes of this sha256 are created. The place for `.<n>`, once a collector can condemn a name."""
    return f"objects/{digest[:2]}/{digest}"


def object_digest(name: str) -> str | None:
    """The sha256 that the name of an object promises; None if it is not the name of an object."""
    match = _OBJECT.fullmatch(name)
    return match[2] if match else None


def receipt_name(stage: str, key: str, number: int) -> str:
    """Name of the number-th receipt (from 1) of a unit."""
    return f"receipts/{stage}/{key}.{number}"


def receipt_number(name: str) -> tuple[str, int] | None:
    """(unit key, number) of the name of a receipt."""
    match = _RECEIPT.fullmatch(name)
    return (match[1], int(match[2])) if match else None


def manifest_name(dataset: str, digest: str) -> str:
    """Name of a manifest."""
    return f"datasets/{dataset}/{digest}.json"


def manifest_parts(name: str) -> tuple[str, str] | None:
    """(dataset, digest) of the name of a manifest."""
    match = _MANIFEST.fullmatch(name)
    return (name.split("/")[1], match[2]) if match else None


def history_name(dataset: str, number: int) -> str:
    """Name of the number-th history entry (from 1)."""
    return f"history/{dataset}/{number:08d}"


def history_parts(name: str) -> tuple[str, int] | None:
    """(dataset, number) of the name of a history entry."""
    match = _HISTORY.fullmatch(name)
    return (name.split("/")[1], int(match[2])) if match else None
