"""What verbs share: the options every one of them has, and how an answer is printed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

if TYPE_CHECKING:
    from corpusmill.store import Store

DEFAULT_STORE = "./.corpusmill/store"


@Parameter(name="*")
@dataclass(frozen=True)
class Output:
    """Options of every verb."""

    json: Annotated[bool, Parameter(help="Print one JSON document, and errors as JSON.")] = False
    verbose: Annotated[bool, Parameter(name=("--verbose", "-v"), help="Show tracebacks.")] = False

    def answer(self, document: Mapping[str, Any], text: str) -> None:
        """The result on stdout: the document with --json, else the text."""
        print(json.dumps(document, ensure_ascii=False, sort_keys=True) if self.json else text)


@Parameter(name="*")
@dataclass(frozen=True)
class InStore(Output):
    """Options of verbs that read or write a store."""

    store: Annotated[
        str | None,
        Parameter(help="Folder or s3://bucket/prefix; else CORPUSMILL_STORE, else ./.corpusmill/store."),
    ] = None

    @property
    def uri(self) -> str:
        """The store's address after defaults."""
        return self.store or os.environ.get("CORPUSMILL_STORE") or DEFAULT_STORE

    def open(self) -> Store:
        """The store, which must exist."""
        from corpusmill.store import open_store

        return open_store(self.uri)

    def dataset(self, ref: str) -> Dataset:
        """The dataset that a REF names: name, name@digest prefix, or digest."""
        store = self.open()
        name, digest = store.resolve(ref)
        return Dataset(store, name, digest, store.manifest(digest, name))


@dataclass(frozen=True)
class Dataset:
    """A published dataset of a store."""

    store: Store
    name: str
    digest: str
    manifest: dict[str, Any]

    @property
    def short(self) -> str:
        """name@digest, short enough for a line and long enough as a REF."""
        return f"{self.name}@{self.digest[:12]}"


def table(header: Sequence[str], rows: Sequence[Sequence[object]], numbers: Sequence[int] = ()) -> str:
    """A table as plain text, the same on a terminal and in a pipe.

    Args:
        rows: cells; an int gets thousands separators, None is empty.
        numbers: columns aligned to the right.
    """
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(len(row[i]) for row in [list(header), *cells]) for i in range(len(header))]

    def line(row: Sequence[str]) -> str:
        padded = (c.rjust(w) if i in numbers else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))
        return "  ".join(padded).rstrip()

    return "\n".join([line(header), *(line(row) for row in cells)])


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def human_bytes(size: int) -> str:
    """1,536 -> 1.5 KiB."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:,.0f} {unit}" if unit == "B" else f"{amount:,.1f} {unit}"
        amount /= 1024
    return f"{amount:,.1f} TiB"
