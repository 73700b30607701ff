"""The manifest: everything that a dataset is made of, as frozen dataclasses. No other module reads one by string.

Its canonical JSON is what is stored, and the sha256 of that is the dataset's identity; so what is read here is written
back to the same bytes. Sections that a dataset does not have are None: one of documents (`mill ingest`) has neither
rules nor tokenizer, one that was built has no snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from corpusmill import typed_json
from corpusmill.dataset.funnel import FunnelRow
from corpusmill.errors import CheckFailed, NotFound
from corpusmill.store import Output, Store
from corpusmill.tokens.row_group import RowGroup

FORMAT = 2
"""What is written. Since format 2 later parts add named tables (`Manifest.tables`), not keys; so this number stays."""
FORMATS = (1, 2)
"""What is read, for ever. Format 1 had `leaders` for the keepers of an index, and no table `reasons`."""
HELDOUT = "heldout"
MIN_HELDOUT = 20
"""With fewer held-out documents a loss on them is that of a few pages."""
"""The partition that is not trained on."""
DOCUMENTS = "documents"
"""Kind of a dataset of documents, before any of them is judged."""


@dataclass(frozen=True)
class RuleFile:
    """A file of rules: its name without suffix, its version, the digest of what it says."""

    file: str
    version: int
    digest: str


@dataclass(frozen=True)
class StageFacts:
    """Versions that decide what a stage writes; a stage of several groups of columns has a version of each."""

    version: int | Mapping[str, int]
    libraries: Mapping[str, str] | None = None


@dataclass(frozen=True)
class ScreenedBenchmark:
    """A benchmark that was screened: its file, and how its items are found (docs/how-to/decontaminate.md)."""

    name: str
    fields: tuple[str, ...]
    id: str
    format: str
    ngram: int
    exact_words: int
    min_share: float
    sha256: str
    licence: str | None
    source: str | None


@dataclass(frozen=True)
class Vocabulary:
    """The tokenizer: its file (tokenizer.json), how many ids it has, the token that ends a document."""

    output: Output
    vocab_size: int
    eos: str
    eos_id: int


@dataclass(frozen=True)
class PackedShard:
    """Packed rows (`tokens`), the documents of each row (`rows`), the documents themselves (`docs`).

    `pieces` says again how long the pieces of each row are, in a form that can be mapped; shards packed before pack
    version 4 have none.
    """

    tokens: Output
    rows: Output
    docs: Output
    sequences: int
    payload: tuple[RowGroup, ...]
    pieces: Output | None = None

    def outputs(self) -> dict[str, Output]:
        """Its files, by what they are."""
        found = {"tokens": self.tokens, "rows": self.rows, "docs": self.docs, "pieces": self.pieces}
        return {kind: output for kind, output in found.items() if output is not None}


@dataclass(frozen=True)
class Partition:
    """Shards that share a sequence length, and sums over them; `padding` counts tokens."""

    seq_len: int
    token_bytes: int
    documents: int
    tokens: int
    text_bytes: int
    sequences: int
    padding: int
    shards: tuple[PackedShard, ...]


@dataclass(frozen=True)
class Proofs:
    """What the build proved of itself: facts of the screen's self-test, and of those of stage `near`."""

    decontaminate: Mapping[str, Any]
    near: Mapping[str, Any]


@dataclass(frozen=True)
class IndexPart:
    """What one build kept, for later builds to compare with; `manifest` is None for this dataset itself."""

    manifest: str | None
    keepers: Output
    keys: Output
    sets: Output


@dataclass(frozen=True)
class Index:
    """The index of a dataset and of those it was built against; only equal settings can be compared."""

    settings: Mapping[str, Any]
    snapshots: tuple[str, ...]
    parts: tuple[IndexPart, ...]


@dataclass(frozen=True)
class Snapshot:
    """One snapshot of one source."""

    source: str
    id: str


@dataclass(frozen=True)
class Input:
    """A file that was read: where it is in its source, its bytes and their sha256."""

    source: str
    snapshot: str
    locator: str
    bytes: int | None
    sha256: str | None


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """One dataset.

    `recipe` is what its recipe says of the bytes. `tables` names every table and file beside the shards; readers take
    those that they know, `mill verify` checks all. `content` is
    the same wherever the packed rows are. `snapshots` and `awaited` are the watermark of an ingestion.
    """

    format: int
    name: str
    recipe: Mapping[str, Any]
    stages: Mapping[str, StageFacts]
    partitions: Mapping[str, Partition]
    funnel: tuple[FunnelRow, ...]
    inputs: tuple[Input, ...]
    tables: Mapping[str, Output]
    parents: tuple[str, ...]
    content: str
    kind: str | None = None
    seed: int | None = None
    rules: RuleFile | None = None
    urls: RuleFile | None = None
    models: Mapping[str, str] | None = None
    benchmarks: tuple[ScreenedBenchmark, ...] | None = None
    tokenizer: Vocabulary | None = None
    proofs: Proofs | None = None
    deduplicate: Mapping[str, Any] | None = None
    index: Index | None = None
    snapshot: Snapshot | None = None
    snapshots: Mapping[str, tuple[str, ...]] | None = None
    awaited: Mapping[str, tuple[str, ...]] | None = None

    @classmethod
    def from_json(cls, value: object) -> Manifest:
        """Read a parsed manifest of any format so far.

        Raises:
            CheckFailed: it has a format of the future, or is malformed; the first fault is named.
        """
        try:
            if isinstance(value, Mapping) and value.get("format", FORMAT) not in FORMATS:
                raise _other_format(value.get("name"), value["format"])
            return typed_json.read(cls, _with_keepers(value, "leaders", "keepers"))
        except typed_json.Mismatch as fault:
            raise _malformed(value, fault) from fault

    def to_json(self) -> dict[str, Any]:
        """The form that is stored; its canonical JSON has the bytes that were read."""
        found: dict[str, Any] = typed_json.written(self)
        return _with_keepers(found, "keepers", "leaders") if self.format == 1 else found

    def table(self, name: str) -> Output:
        """One of the named tables.

        Raises:
            NotFound: the dataset has none of this name.
        """
        if name not in self.tables:
            raise NotFound(
                f"dataset {self.name} has no table {name!r}",
                f"it has {', '.join(sorted(self.tables)) or 'none'}",
                "One of documents has less than one that was built; build it again to get what newer versions add.",
            )
        return self.tables[name]

    def row(self, stage: str) -> FunnelRow:
        """The funnel's row of a stage.

        Raises:
            NotFound: the funnel of this dataset has no such row.
        """
        for row in self.funnel:
            if row.stage == stage:
                return row
        raise NotFound(f"the funnel of dataset {self.name} has no row {stage!r}")

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokenizer.

        Raises:
            NotFound: there is none, so there are no tokens either.
        """
        if self.tokenizer is None:
            raise NotFound(
                f"dataset {self.name} has no tokenizer", "it holds documents only", "Build it: `mill build`."
            )
        return self.tokenizer

    @property
    def ingested(self) -> Snapshot:
        """The snapshot whose documents this dataset has.

        Raises:
            NotFound: it was built, not ingested.
        """
        if self.snapshot is None:
            raise NotFound(f"dataset {self.name} was built, not ingested", "only documents have one snapshot")
        return self.snapshot

    @property
    def documents(self) -> int:
        """Documents that came out of the last stage."""
        return self.funnel[-1].docs_out if self.funnel else 0

    @property
    def heldout_copies(self) -> int:
        """Documents that are packed as held out, but are not counted as out: copies of those drawn."""
        copies = self.funnel[-1].reasons.get("heldout_copy") if self.funnel else None
        return copies.docs if copies else 0

    @property
    def tokens(self) -> int:
        """Tokens of all partitions, padding not counted."""
        return sum(part.tokens for part in self.partitions.values())

    @property
    def input_bytes(self) -> int:
        """Bytes of all files that were read, of those whose size is known."""
        return sum(file.bytes or 0 for file in self.inputs)

    @property
    def screen_action(self) -> str | None:
        """What the benchmark screen did with documents that hold an item (`decontaminate.action`)."""
        action: str | None = self.recipe.get("decontaminate", {}).get("action")
        return action

    @property
    def masked(self) -> tuple[str, ...]:
        """Kinds of personal data that are masked wherever text leaves the store."""
        return tuple(self.recipe.get("judge", {}).get("personal_data", {}).get("kinds", ()))

    @property
    def buckets(self) -> tuple[str, tuple[float, ...]] | None:
        """The classifier by whose scores partitions are divided, and the bounds; None where none is."""
        asked = self.recipe.get("judge", {}).get("quality", {})
        return next(
            ((name, tuple(asked[name]["buckets"])) for name in sorted(asked) if asked[name].get("buckets")), None
        )


def open_manifest(store: Store, digest: str, name: str | None = None) -> Manifest:
    """The manifest of this digest, its bytes verified. Without `name` all datasets are searched.

    Raises:
        NotFound: there is none. CheckFailed: it is damaged, malformed, or of a future format.
    """
    return Manifest.from_json(store.manifest(digest, name))


def publish(store: Store, manifest: Manifest, *, why: str, expect_head: str | None = None) -> str:
    """Publish it, once all that it and its lineage name is stored; its digest. See `Store.publish`."""
    lineage = manifest.tables.get("lineage")
    return store.publish(manifest.name, manifest.to_json(), why=why, expect_head=expect_head, lineage=lineage)


def _with_keepers(value: Any, old: str, new: str) -> Any:
    """The manifest with the keepers of its index under another name: format 1 called them leaders."""
    match value:
        case {"format": 1, "index": {"parts": [*parts]} as index} if all(isinstance(part, dict) for part in parts):
            renamed = [{new if name == old else name: part[name] for name in part} for part in parts]
            return {**value, "index": {**index, "parts": renamed}}
    return value


def _other_format(name: object, came: object) -> CheckFailed:
    known = " and ".join(map(str, FORMATS))
    return CheckFailed(
        f"the manifest of dataset {name} has format {came!r}",
        f"this version of Corpusmill reads format {known}",
        "Use the version that made it, or a newer one.",
    )


def _malformed(value: object, fault: typed_json.Mismatch) -> CheckFailed:
    name = value.get("name") if isinstance(value, Mapping) else None
    place = fault.place.removeprefix(".")
    return CheckFailed(
        f"the manifest of dataset {name or '(no name)'} is malformed" + (f" at {place}" if place else ""),
        f"expected {fault.expected}; came {fault.came}",
        "It was published like this: build the dataset again, or use the version that made it.",
    )
