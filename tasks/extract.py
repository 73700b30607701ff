"""Acquire and extract one source file: every record gets one outcome, every page that yields text becomes a document.

Equal payloads within one file are extracted once (the last 2,000 are remembered); removing duplicates is not done here.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from corpusmill import schema, typed_json
from corpusmill.config import Recipe
from corpusmill.dataset.manifest import Input, RuleFile
from corpusmill.errors import Unavailable
from corpusmill.extractor.model.load import MODEL
from corpusmill.extractor.modes import EXTRACTORS, MODEL_MODES, Extraction
from corpusmill.file_state import while_unchanged
from corpusmill.models import loading, model_digest, model_path
from corpusmill.readers.outcomes import Outcome, ReadOptions
from corpusmill.readers.urls import UrlRules, load_url_rules
from corpusmill.readers.warc import FileFacts
from corpusmill.schema import doc_id
from corpusmill.store import Receipt, Store, TableWriter, Unit
from tasks import acquire, stages
from tasks.acquire import SourceUnit, notes
from tasks.funnel.tally import Tally
from tasks.units import Done, begin, once

if TYPE_CHECKING:
    from corpusmill.extractor.gate import Gate
    from corpusmill.extractor.sandbox.sandbox import Sandbox
    from corpusmill.kernels.language.identify import LanguageModel

# The extractor and its models are imported where a page is extracted: finding finished work does without.

BATCH_RECORDS, BATCH_BYTES = 64, 32 * 2**20
REMEMBERED = 2000
_PLACE = ("url", "date", "offset", "file", "source_id", "licence")
_KNOWN = (*_PLACE, "charset", "charset_origin", "payload_bytes", "payload_digest")
RECORD_FIELDS = (*_KNOWN, "record_type", "status", "mime")
DOCUMENT_FIELDS = (*_KNOWN, "code_language", "title", "author", "columns")


def extract_file(source: SourceUnit, recipe: Recipe, store: Store) -> tuple[Done, Done]:
    """Receipts of one source file: what was read (facts `source`), and its records and documents.

    Other bytes are another input: what was made of the bytes before stays, and is not used. A file that was only
    touched, or that no note speaks of, is hashed again, and nothing else (tasks/acquire/notes.py).

    Raises:
        Unavailable: the file or its source is unavailable, or somebody writes to the file while it is read.
    """
    if known := notes.known(source, store):
        unit, seen = units_of(source, known.sha256, recipe)
        if (receipt := store.receipt(unit)) and (read_before := store.receipt(seen)):
            return Done(read_before, reused=True), Done(receipt, reused=True)
    begin()
    with acquire.fetched(source, recipe) as file:
        unit, seen = units_of(source, file.sha256, recipe)
        read = once(store, seen, lambda: _note(seen, source, file, store))
        made = once(store, unit, lambda: _extract(unit, source, file, recipe, store))
        notes.keep(source, file, store)
        return read, made


def units_of(source: SourceUnit, sha256: str, recipe: Recipe) -> tuple[Unit, Unit]:
    """The unit that extracts a source file with these bytes, and the one that records which bytes were read."""
    rules = url_rules(recipe)
    config: dict[str, Any] = {"source": acquire.identity(source, recipe), "extract": recipe.extract.what()}
    if recipe.extract.verify_digests:
        config["verify_digests"] = True
    made = stages.EXTRACT.unit(
        {**config, "urls": rules.digest} if rules else config,
        (sha256,),
        models=model_digests(recipe),
        libraries=acquire.libraries(source, recipe),
    )
    return made, stages.SOURCE.unit(source.identity(), (sha256,))


def model_digests(recipe: Recipe) -> dict[str, str]:
    """Digests of the models that extraction uses: the mode's and the language gate's, where there are any."""
    extractor = {"extractor": model_digest(MODEL)} if recipe.extract.mode in MODEL_MODES else {}
    return {**extractor, "gate": model_digest(_gate_model(recipe))} if recipe.extract.languages else extractor


def _gate_model(recipe: Recipe) -> Path:
    return model_path(recipe.language.model)


def gate_of(recipe: Recipe) -> Gate | None:
    """The language gate that a recipe asks for.

    Raises:
        NotFound: its model was not fetched.
    """
    if not recipe.extract.languages:
        return None
    from corpusmill.extractor.gate import Gate

    return Gate(_loaded(_gate_model(recipe)), frozenset(recipe.extract.languages))


@while_unchanged(2)
def _loaded(path: Path) -> LanguageModel:
    from corpusmill.kernels.language.identify import LanguageModel

    with loading(path):
        return LanguageModel(path)


def url_rules(recipe: Recipe) -> UrlRules | None:
    """The URL rules that a recipe names.

    Raises:
        NotFound: there are none of that name. UsageError: they have faults.
    """
    return load_url_rules(recipe.extract.urls) if recipe.extract.urls else None


def url_file(recipe: Recipe) -> RuleFile | None:
    """For a manifest: which URL rules were used."""
    rules = url_rules(recipe)
    return RuleFile(rules.name, rules.version, rules.digest) if rules else None


def _note(unit: Unit, source: SourceUnit, file: acquire.Fetched, store: Store) -> Receipt:
    of = {"source": source.source, "snapshot": source.snapshot}
    read = [
        {**of, "locator": place, "bytes": part.size, "sha256": part.sha256}
        for place, part in zip(source.places, file.parts or (file,), strict=True)
    ]
    return store.commit(unit, {}, facts={"files": read})


def inputs_of(read: Receipt) -> list[Input]:
    """The files that a receipt of stage `source` speaks of."""
    files: Any = read.facts["files"]
    return [typed_json.read(Input, file) for file in files]


def _extract(unit: Unit, source: SourceUnit, file: acquire.Fetched, recipe: Recipe, store: Store) -> Receipt:
    from corpusmill.extractor.sandbox.sandbox import Limits, shared_sandbox

    config = recipe.extract
    facts = FileFacts()
    options = ReadOptions(
        max_payload_bytes=config.max_payload_bytes,
        robots=config.robots,
        urls=url_rules(recipe),
        timeout_s=config.timeout_s,
        memory_mb=config.memory_mb,
        verify_digests=config.verify_digests,
    )
    limits = Limits(timeout_s=config.timeout_s, memory_mb=config.memory_mb, max_depth=config.max_depth)
    acquired, extracted = Tally("acquire"), Tally("extract")
    repairs = 0
    extractors: Counter[str] = Counter()
    with (
        store.table_writer(schema.RECORDS) as records,
        store.table_writer(schema.DOCUMENTS) as documents,
    ):
        memory = Memory(shared_sandbox(config.mode, limits), gate_of(recipe))
        for batch in batches(acquire.read(source, file, recipe, options, facts, unit.key)):
            rows = [
                Row(source, outcome, extraction)
                for outcome, extraction in zip(batch, memory.extract(batch), strict=True)
            ]
            for row in rows:
                row.count(acquired, extracted)
                repairs += row.outcome.repairs
                if row.text is not None:
                    extractors[row.extractor] += 1
            _write(records, [row.record() for row in rows], schema.RECORDS)
            _write(documents, [row.document() for row in rows if row.text is not None], schema.DOCUMENTS)
    if not file.unchanged():
        raise Unavailable(
            f"{source.locator} of source {source.source!r} was written to while it was read",
            "what was read may be of two states of the file",
            "Run again when nobody writes to it.",
        )
    read = facts.as_dict()
    return store.commit(
        unit,
        {"records": records.draft, "documents": documents.draft},
        counters={
            **acquired.counters(),
            **extracted.counters(),
            "not_content": sum(facts.not_content.values()),
            "repaired_characters": repairs,
        },
        reasons={**acquired.reason_counts(), **extracted.reason_counts()},
        facts={
            "locator": source.place,
            "file": read,
            "extractors": dict(sorted(extractors.items())),
            "fallback": _fallback(extractors),
        },
        versions=dict(unit.libraries),
    )


def _fallback(extractors: Counter[str]) -> dict[str, int]:
    """Of the documents from pages: how many came from another extractor than the line model."""
    made = {name: extractors[name] for name in EXTRACTORS if extractors[name]}
    return {"pages": sum(made.values()), "others": sum(made.values()) - made.get("lines", 0)}


def batches(stream: Iterable[Outcome]) -> Iterator[list[Outcome]]:
    """Outcomes in file order, cut by number and size of their texts."""
    batch: list[Outcome] = []
    size = 0
    for outcome in stream:
        batch.append(outcome)
        size += outcome.payload_bytes
        if len(batch) >= BATCH_RECORDS or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class Memory:
    """Extraction through a gate and a sandbox that remembers the pages it saw last, by digest of their payload and
    charset."""

    def __init__(self, sandbox: Sandbox, gate: Gate | None = None) -> None:
        self.sandbox = sandbox
        self.gate = gate
        self.known: OrderedDict[tuple[bytes | None, str | None], Extraction] = OrderedDict()

    def extract(self, batch: list[Outcome]) -> list[Extraction | None]:
        """One extraction per outcome that carries HTML, None for the others."""
        todo: dict[tuple[bytes | None, str | None], str] = {}
        for outcome in batch:
            if outcome.html is not None and (key := (outcome.payload_digest, outcome.charset)) not in self.known:
                todo.setdefault(key, outcome.html)
        if todo and self.gate:
            for key, refused in zip(list(todo), self.gate.refused(list(todo.values())), strict=True):
                if refused:
                    self.known[key] = Extraction(None, reason="unwanted_language")
                    del todo[key]
        if todo:
            self.known.update(zip(todo, self.sandbox.extract(list(todo.values())), strict=True))
        found = [self.known[o.payload_digest, o.charset] if o.html is not None else None for o in batch]
        while len(self.known) > REMEMBERED:
            self.known.popitem(last=False)
        return found


@dataclass(frozen=True)
class Row:
    """One record with its outcome: how it is counted and what is stored of it."""

    source: SourceUnit
    outcome: Outcome
    extraction: Extraction | None

    @property
    def text(self) -> str | None:
        """The text of a document; None where the record ended."""
        return self.extraction.text if self.extraction else self.outcome.text

    @property
    def ended(self) -> tuple[str | None, str | None]:
        """(stage, reason); both None if the record gave a document."""
        if self.extraction and self.extraction.reason:
            return "extract", self.extraction.reason
        return self.outcome.stage, self.outcome.reason

    @property
    def doc_id(self) -> bytes | None:
        """Identity of the document."""
        if self.text is None:
            return None
        s, o = self.source, self.outcome
        return doc_id(s.source, s.snapshot, o.file or s.locator, o.offset, o.index)

    @property
    def extractor(self) -> str:
        """What made the text."""
        return str(self.extraction.extractor if self.extraction else self.outcome.extractor)

    def count(self, acquired: Tally, extracted: Tally) -> None:
        """Add this record to the two funnel rows."""
        size = self.outcome.payload_bytes
        stage, reason = self.ended
        acquired.add_in(1, size)
        if stage == "acquire" and reason:
            acquired.add_reason(reason, 1, size)
            return
        acquired.add_out(1, size)
        extracted.add_in(1, size)
        if reason:
            extracted.add_reason(reason, 1, size)
        else:
            extracted.add_out(1, len((self.text or "").encode("utf-8")))

    def record(self) -> dict[str, Any]:
        """A row of the records table."""
        stage, reason = self.ended
        known = {name: getattr(self.outcome, name) for name in RECORD_FIELDS}
        return {**known, "doc_id": self.doc_id, "stage": stage, "reason": reason}

    def document(self) -> dict[str, Any]:
        """A row of the documents table."""
        from corpusmill.extractor.meta import meta

        known = {name: getattr(self.outcome, name) for name in DOCUMENT_FIELDS}
        page = self.outcome.html
        said = asdict(meta(page, self.outcome.url)) if page is not None else {}
        return {**known, **said, "doc_id": self.doc_id, "extractor": self.extractor, "text": self.text}


def _write(writer: TableWriter, rows: list[dict[str, Any]], kind: pa.Schema) -> None:
    if rows:
        writer.write(pa.RecordBatch.from_pylist(rows, schema=kind))
