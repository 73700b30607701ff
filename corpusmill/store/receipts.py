"""Units of work, their outputs and receipts, and the sealed JSON that receipts and history entries are stored as."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from corpusmill.canonical import canonical_json, digest_of, parse_canonical
from corpusmill.errors import CheckFailed

FORMAT = 1


@dataclass(frozen=True)
class Output:
    """A stored object: where it is, the sha256 of its bytes, the content digest of its rows (tables only), its size."""

    name: str
    digest: str
    content: str | None
    size: int
    rows: int | None

    def to_json(self) -> dict[str, object]:
        """The form in receipts and manifests."""
        return {"name": self.name, "digest": self.digest, "content": self.content, "size": self.size, "rows": self.rows}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Output:
        """Read the form in receipts and manifests."""
        return cls(value["name"], value["digest"], value["content"], value["size"], value["rows"])

    @property
    def identity(self) -> str:
        """What must be equal when a unit is run again: the content of a table, else the bytes."""
        return self.content or self.digest


@dataclass(frozen=True)
class Draft:
    """A local scratch file, hashed, not yet stored. `content` and `rows` are None unless it is a table."""

    path: Path
    digest: str
    content: str | None
    size: int
    rows: int | None


@dataclass(frozen=True)
class Unit:
    """One piece of work: what decides its outputs, and nothing else.

    Args:
        stage: its name, `[a-z0-9._-]`.
        version: the stage's VERSION, raised by hand.
        config: the recipe fields that the stage reads.
        inputs: content digests (or other identities) of what it reads, in order.
        models: file name -> sha256.
        libraries: those whose version decides the output -> version.
    """

    stage: str
    version: int
    config: Mapping[str, object]
    inputs: tuple[str, ...]
    models: Mapping[str, str] = field(default_factory=dict)
    libraries: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """All six fields."""
        return {
            "stage": self.stage,
            "version": self.version,
            "config": self.config,
            "inputs": self.inputs,
            "models": self.models,
            "libraries": self.libraries,
        }

    @cached_property
    def key(self) -> str:
        """sha256 of the canonical JSON of all six fields."""
        return digest_of(self.to_json())


@dataclass(frozen=True)
class Receipt:
    """What a unit produced.

    `reasons` maps a reason to {"docs", "bytes"}; `facts` is any canonical JSON without time, host or path.
    """

    stage: str
    key: str
    outputs: Mapping[str, Output]
    counters: Mapping[str, int]
    reasons: Mapping[str, Mapping[str, int]]
    versions: Mapping[str, str]
    facts: Mapping[str, object]

    def to_json(self) -> dict[str, object]:
        """All but stage and key, which are the unit's."""
        return {
            "outputs": {label: output.to_json() for label, output in self.outputs.items()},
            "counters": self.counters,
            "reasons": self.reasons,
            "versions": self.versions,
            "facts": self.facts,
        }

    def agrees(self, other: Receipt) -> bool:
        """Whether both tell of the same result; file digests and library versions may differ."""
        return self._result() == other._result()

    def _result(self) -> bytes:
        outputs = {label: output.identity for label, output in self.outputs.items()}
        return canonical_json([self.key, outputs, self.counters, self.reasons, self.facts])


def receipt_bytes(unit: Unit, receipt: Receipt) -> bytes:
    """The stored form; the unit itself is in it, so that the key can be derived again."""
    return seal({"unit": unit.to_json(), **receipt.to_json()})


def read_receipt(data: bytes, name: str, key: str) -> Receipt:
    """Parse and verify a stored receipt.

    Raises:
        CheckFailed: torn, edited, or of another unit than its name says.
    """
    value = unseal(data, name)
    if digest_of(value["unit"]) != key:
        raise CheckFailed(
            f"{name} belongs to another unit than its name states.", do="Run `mill verify`; remove this receipt."
        )
    outputs = {label: Output.from_json(output) for label, output in value["outputs"].items()}
    stage = value["unit"]["stage"]
    return Receipt(stage, key, outputs, value["counters"], value["reasons"], value["versions"], value["facts"])


def seal(value: Mapping[str, object]) -> bytes:
    """Canonical JSON with `format` and, as `sealed`, the sha256 of the rest: a torn or edited file is recognised."""
    body = {"format": FORMAT, **value}
    return canonical_json({**body, "sealed": digest_of(body)})


def unseal(data: bytes, name: str) -> dict[str, Any]:
    """The value that was sealed.

    Raises:
        CheckFailed: these are not the bytes that were sealed.
    """
    try:
        value = parse_canonical(data)
        sealed = value.pop("sealed")
        whole = canonical_json({**value, "sealed": sealed}) == data and digest_of(value) == sealed
    except (ValueError, KeyError, AttributeError, TypeError):
        whole = False
    if not whole:
        raise CheckFailed(
            f"{name} is damaged.",
            "The digest inside does not match its content.",
            "Run `mill verify`. You may remove a damaged receipt: its unit then runs again.",
        )
    if value.pop("format") != FORMAT:
        raise CheckFailed(f"{name} has a format that this version does not know.", do="Upgrade corpusmill.")
    return dict(value)
