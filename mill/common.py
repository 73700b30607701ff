"""What verbs share: their common options, and how a result is printed."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TextIO

from cyclopts import Parameter

from corpusmill.config.defaults import DEFAULT_STORE
from corpusmill.plain_text import json_text, visible

if TYPE_CHECKING:
    from corpusmill.dataset.manifest import Manifest
    from corpusmill.store import Store


def show(text: str, *, to: TextIO | None = None, end: str = "\n") -> None:
    """Print what no terminal obeys.

    Args:
        to: else stdout.
    """
    print(visible(text), end=end, file=to or sys.stdout, flush=to is not None)


def note(text: str) -> None:
    """Print a line on stderr."""
    show(text, to=sys.stderr)


def show_json(document: Mapping[str, Any], *, to: TextIO | None = None) -> None:
    """Print a document in one line, in the letters that the output has."""
    to = to or sys.stdout
    utf8 = (getattr(to, "encoding", None) or "utf-8").lower().replace("_", "-") in ("utf-8", "utf8")
    print(json_text(document, only_ascii=not utf8), file=to)


@Parameter(name="*")
@dataclass(frozen=True)
class Output:
    """Options of every verb."""

    json: Annotated[bool, Parameter(help="Print one JSON document, and errors as JSON.")] = False
    verbose: Annotated[bool, Parameter(name=("--verbose", "-v"), help="Show tracebacks.")] = False

    def answer(self, document: Mapping[str, Any], text: str) -> None:
        """Print the result on stdout: the document with --json, else the text."""
        show_json(document) if self.json else show(text)


@Parameter(name="*")
@dataclass(frozen=True)
class InStore(Output):
    """Options of verbs that read or write a store."""

    store: Annotated[
        str | None,
        Parameter(help="Folder or s3://bucket/prefix; default: CORPUSMILL_STORE, then ./.corpusmill/store."),
    ] = None

    @property
    def uri(self) -> str:
        """The store's URI after defaults."""
        return self.store or os.environ.get("CORPUSMILL_STORE") or DEFAULT_STORE

    def open(self) -> Store:
        """The store, which must exist."""
        from corpusmill.store import open_store

        return open_store(self.uri)

    def dataset(self, ref: str) -> Dataset:
        """The dataset that a REF names: name, name@digest prefix, or digest."""
        from corpusmill.dataset.manifest import open_manifest

        store = self.open()
        name, digest = store.resolve(ref)
        return Dataset(store, name, digest, open_manifest(store, digest, name))


def noted(notices: Sequence[str]) -> str:
    """Notes as lines below a text."""
    return "".join(f"\nnote: {sentence}" for sentence in notices)


@dataclass(frozen=True)
class Dataset:
    """A published dataset of a store."""

    store: Store
    name: str
    digest: str
    manifest: Manifest

    @property
    def short(self) -> str:
        """name@digest, short enough for a line and long enough as a REF."""
        return f"{self.name}@{self.digest[:12]}"
