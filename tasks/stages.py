"""The stages of a build, in order: the one table that units, funnel, lineage, publication, golden tests and docs read.

A new stage is its unit, an entry here (with its reasons), and its call in `chain.py`. The library below knows none of
this: what readers of a dataset need of it stands in the manifest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from corpusmill.store import Unit
from tasks.units import libraries as installed


@dataclass(frozen=True)
class Stage:
    """One stage: what its units are named and keyed by.

    `version` is raised when the same input would give other output (a golden test says so); None where only its parts
    have one. `rows` are the rows of the funnel in which its documents end; `libraries` those whose release decides the
    output; `parts` the steps or groups that have units and versions of their own.
    """

    name: str
    version: int | None
    says: str
    rows: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    parts: tuple[Stage, ...] = ()

    def unit(
        self,
        config: Mapping[str, object],
        inputs: tuple[str, ...] = (),
        models: Mapping[str, str] | None = None,
        libraries: Mapping[str, str] | None = None,
    ) -> Unit:
        """A unit of this stage; `libraries` where its inputs decide which are called, not the table."""
        assert self.version is not None, f"units of {self.name} are those of its parts"
        called = installed(self.libraries) if libraries is None else libraries
        return Unit(self.name, self.version, config, inputs, models or {}, called)

    def part(self, name: str) -> Stage:
        """One of the parts, named as its units: `near.plan`."""
        found = next(part for part in self.parts if part.name == name)
        return replace(found, name=f"{self.name}.{name}")

    @property
    def versions(self) -> int | dict[str, int | None] | None:
        """The version, or those of the parts where it has none."""
        return {part.name: part.version for part in self.parts} if self.version is None else self.version


SIZES = Stage("sizes", 1, "Asks servers how large listed files are, once.")
SOURCE = Stage("source", 4, "Notes which bytes a source file had when it was read.")
EXTRACT = Stage(
    "extract",
    4,
    "Reads a source file, an outcome for each record, and extracts the main text of its pages.",
    rows=("acquire", "extract"),
)
JUDGE = Stage(
    "judge",
    None,
    "Measures every document; decides nothing.",
    parts=(
        Stage("language", 2, "Which language it is in, and how surely.", libraries=("fasttext-community",)),
        Stage("measures", 2, "The measures that rules read; `measures:clean` are those of the edited text."),
        Stage("digests", 1, "Digest of the normalised text, shingles and their MinHash signature."),
        Stage("edits", 1, "Spans that the rule file's edits take out."),
        Stage("pii", 1, "Spans of personal data, by kind.", libraries=("python-stdnum",)),
        Stage("quality", 1, "Scores of a quality classifier.", libraries=("fasttext-community",)),
        Stage("perplexity", 1, "Cross entropy under a language model."),
    ),
)
FILTER = Stage("filter", 1, "Ends documents by language, floors, rules and scores.", rows=("language", "filter"))
DECONTAMINATE = Stage(
    "decontaminate", 2, "Looks for items of benchmarks, after a test on planted ones.", rows=("decontaminate",)
)
EXACT = Stage("exact", 2, "Finds documents with equal text, payload or URL, over all shards.", rows=("exact",))
NEAR = Stage(
    "near",
    2,
    "Finds near duplicates by MinHash, verified by exact similarity, over all shards.",
    rows=("near",),
    libraries=("datasketch",),  # the oracle whose verdict stands in the receipt
    parts=(
        Stage("plan", 1, "Ranks documents and cuts the search into parts that fit memory."),
        Stage("bands", 1, "Band keys of a group of shards, by ranges of keys."),
        Stage("buckets", 1, "Which pairs of a range of keys to compare in a round."),
        Stage("sets", 1, "Shingle sets that a group of shards needs in a round."),
        Stage("verify", 1, "Exact similarities of a group's pairs."),
        Stage("removed", 1, "Which documents go, by all pairs verified so far."),
    ),
)
_PASSAGES = (
    Stage("plan", 1, "Which documents take part, in order of preference."),
    Stage("items", 1, "Hashes of the passages of a group of shards, by ranges of hashes."),
    Stage("merge", 1, "What is repeated within a range of hashes."),
    Stage("summary", 1, "The passages that are in most documents."),
)
LINES = Stage("lines", 1, "Marks lines or paragraphs that many documents have.", parts=_PASSAGES)
SUBSTRINGS = Stage("substrings", 1, "Marks long runs of words that several documents have.", parts=_PASSAGES)
DECIDE = Stage("decide", 2, "Joins what deduplication found to the decisions of a shard, and samples rejects.")
TOKENIZER = Stage("tokenizer", 1, "Trains the tokenizer, or takes the given one.", libraries=("tokenizers",))
PACK = Stage("pack", 1, "Writes token shards of a window of shards.", rows=("pack",), libraries=("tokenizers",))
PUBLISH = Stage("publish", 3, "Writes the tables that the manifest names, and the manifest.")
INGEST = Stage("ingest", 1, "Writes the lineage of a snapshot's documents, and their manifest.")

STAGES = (
    SIZES,
    SOURCE,
    EXTRACT,
    JUDGE,
    FILTER,
    DECONTAMINATE,
    EXACT,
    NEAR,
    LINES,
    SUBSTRINGS,
    DECIDE,
    TOKENIZER,
    PACK,
    PUBLISH,
    INGEST,
)
"""In the order of the chain, but for `ingest`, which publishes what `extract` made."""

ROWS = tuple(row for stage in STAGES for row in stage.rows)
"""Rows of the funnel, in order."""


def named(name: str) -> Stage:
    """The stage of this name."""
    return next(stage for stage in STAGES if stage.name == name)


Class = Literal["policy", "quality", "fault"]


@dataclass(frozen=True)
class Reason:
    """Why a document ended: `row` is its row of the funnel, `kind` says whose doing it is, `says` is one sentence for
    people."""

    row: str
    kind: Class
    says: str


REASONS: dict[str, Reason] = {
    "http_status": Reason("acquire", "policy", "The server answered with a status other than 200."),
    "redirect": Reason("acquire", "policy", "The server or the page sends the visitor to another URL."),
    "revisit": Reason("acquire", "policy", "The archive holds only a note that the page was unchanged."),
    "not_html": Reason("acquire", "policy", "The payload is no web page or text, whatever its name or header claims."),
    "url_domain": Reason("acquire", "policy", "The host or the beginning of the URL is on the recipe's list."),
    "url_word": Reason("acquire", "policy", "The URL holds a word, or part of one, that is on the recipe's list."),
    "url_soft_words": Reason("acquire", "policy", "The URL holds two words of the recipe's list of soft words."),
    "empty_body": Reason("acquire", "quality", "There is no payload, or no text in it."),
    "robots_meta": Reason("acquire", "policy", "The owner forbids indexing or reuse by header or meta element."),
    "truncated": Reason("acquire", "fault", "The file ends inside the record."),
    "damaged": Reason("acquire", "fault", "The record cannot be read: broken compression or headers."),
    "unsupported_encoding": Reason("acquire", "fault", "The payload is compressed in a way that is not known."),
    "bad_encoding": Reason("acquire", "fault", "The payload is not what its transfer or content encoding promises."),
    "too_large": Reason("acquire", "policy", "The payload is larger than extract.max_payload_bytes."),
    "bad_row": Reason("acquire", "fault", "The line, row or page does not parse as its format promises."),
    "no_text_column": Reason("acquire", "fault", "The row has no string in the column that the recipe names for text."),
    "other_namespace": Reason("acquire", "policy", "The wiki page is not in a namespace that the recipe lets in."),
    "no_main_file": Reason("acquire", "quality", "No file of the paper begins a LaTeX document."),
    "vendored": Reason("acquire", "policy", "The source file is somebody else's, carried along, as in node_modules."),
    "generated": Reason("acquire", "quality", "A program wrote the source file, by its name or its own words."),
    "minified": Reason("acquire", "quality", "The source file is minified or data: its lines are for no reader."),
    "not_code": Reason("acquire", "policy", "The file is in no programming or markup language, or in none let in."),
    "licence_unknown": Reason("acquire", "policy", "No licence is stated for the source file, or none that is known."),
    "licence_refused": Reason("acquire", "policy", "The source file's licence is not among those the recipe lets in."),
    "too_deep": Reason("extract", "fault", "Elements are nested deeper than extract.max_depth."),
    "timeout": Reason(
        "extract", "fault", "Extraction took longer than its limit, twice (the second time alone, at 4 times)."
    ),
    "crashed": Reason("extract", "fault", "The extraction worker died on this document, twice."),
    "unwanted_language": Reason(
        "extract", "policy", "The page is surely in a language that is not in extract.languages; it was not extracted."
    ),
    "no_text": Reason("extract", "quality", "The page has no main text."),
    "other_language": Reason("language", "policy", "The language is not among those the recipe keeps."),
    "uncertain_language": Reason(
        "language", "quality", "The language is wanted, but its score is under the recipe's bound."
    ),
    "below_floor": Reason("filter", "quality", "A measure is outside the floor below which costly judges are spared."),
    "personal_data": Reason("filter", "policy", "It holds more personal data than judge.personal_data.drop_above."),
    "low_quality": Reason("filter", "quality", "A quality classifier gives less than its judge.quality.*.min_score."),
    "contaminated": Reason("decontaminate", "quality", "It shares a word n-gram with a benchmark item."),
    "exact_duplicate": Reason("exact", "quality", "Another kept document has the same normalised text."),
    "same_payload": Reason("exact", "quality", "Another kept document has the same payload, byte for byte."),
    "same_url": Reason("exact", "policy", "Another kept document has the same URL, normalised."),
    "near_duplicate": Reason(
        "near", "quality", "A kept document is verified to be at least as similar as min_jaccard."
    ),
    "edited": Reason("pack", "quality", "Edits and masks took this text out of documents that stay (0 documents)."),
    "empty_document": Reason("pack", "quality", "Tokenisation leaves nothing."),
}
"""Every reason but those of rules, which rule files name (`rules/*.toml`): see `reason_of`."""


def reason_of(name: str) -> Reason:
    """The reason of this name; those of rule files end documents in row `filter`, for their quality."""
    return REASONS.get(name) or Reason("filter", "quality", "A measure is outside a rule's bounds.")
