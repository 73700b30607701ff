"""The stages of a build, in order: the one table that units, funnel, lineage, publication, golden tests and docs read.

A new stage is its unit, an entry here (with its reasons), and its call in `chain.py`. The library below does not read
this table: readers of a dataset find what they need in the manifest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from corpusmill.store import Unit
from tasks.units import libraries as installed


@dataclass(frozen=True)
class Stage:
    """One stage: the name and the key of its units.

    `version` is raised when the same input would give other output (a golden test checks it); None if only its parts
    have one. `rows` are the rows of the funnel in which its documents end; `libraries` are those whose release affects
    the output; `parts` are steps or groups with their own units and versions.
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


SIZES = Stage("sizes", 1, "Requests the sizes of listed files from servers, once.")
SOURCE = Stage("source", 5, "Records the digests of source files when they were read.")
EXTRACT = Stage(
    "extract",
    10,
    "Reads a source file, with one outcome per record, and extracts the main text of its pages.",
    rows=("acquire", "extract"),
)
JUDGE = Stage(
    "judge",
    None,
    "Measures every document; decides nothing.",
    parts=(
        Stage("language", 2, "The language of a document, with a score.", libraries=("fasttext-community",)),
        Stage("measures", 3, "The measures that rules read; `measures:clean` are those of the edited text."),
        Stage("digests", 2, "Digest of the normalised text, shingles and their MinHash signature."),
        Stage("edits", 2, "Spans that the rule file's edits remove."),
        Stage("pii", 1, "Spans of personal data, by kind.", libraries=("python-stdnum",)),
        Stage("quality", 1, "Scores of a quality classifier.", libraries=("fasttext-community",)),
        Stage("perplexity", 1, "Cross entropy under a language model."),
    ),
)
FILTER = Stage("filter", 1, "Ends documents by language, floors, rules and scores.", rows=("language", "filter"))
DECONTAMINATE = Stage(
    "decontaminate", 4, "Searches documents for benchmark items, after a test on planted ones.", rows=("decontaminate",)
)
EXACT = Stage("exact", 3, "Finds documents with equal text, payload or URL, over all shards.", rows=("exact",))
NEAR = Stage(
    "near",
    3,
    "Finds near-duplicates by MinHash, verified by exact similarity, over all shards.",
    rows=("near",),
    libraries=("datasketch",),  # the oracle whose result is in the receipt
    parts=(
        Stage("plan", 1, "Ranks documents and cuts the search into ranges that fit into memory."),
        Stage("bands", 1, "Band keys of a group of shards, by ranges of keys."),
        Stage("buckets", 1, "Pairs of a range of keys to compare in a round."),
        Stage("sets", 2, "Shingle sets that a group of shards needs in a round."),
        Stage("verify", 1, "Exact similarities of a group's pairs."),
        Stage("removed", 1, "Documents to remove, by all pairs verified so far."),
    ),
)
_PASSAGES = (
    Stage("plan", 1, "Documents that take part, in order of preference."),
    Stage("items", 2, "Hashes of the passages of a group of shards, by ranges of hashes."),
    Stage("merge", 1, "Repeated passages within a range of hashes."),
    Stage("summary", 1, "The passages that are in most documents."),
)
LINES = Stage("lines", 1, "Marks lines or paragraphs that many documents have.", parts=_PASSAGES)
SUBSTRINGS = Stage("substrings", 1, "Marks long runs of words that several documents have.", parts=_PASSAGES)
HELDOUT = Stage("heldout", 2, "Finds the documents that equal a held-out one or are near one, over all shards.")
DECIDE = Stage("decide", 5, "Adds the results of deduplication to the decisions of a shard, and samples rejects.")
TOKENIZER = Stage("tokenizer", 2, "Trains the tokenizer, or uses the given one.", libraries=("tokenizers",))
PACK = Stage("pack", 4, "Writes token shards of a window of shards.", rows=("pack",))
LEAKS = Stage("leaks", 2, "Compares what was packed to train on with what was packed as held out, over all shards.")
PUBLISH = Stage("publish", 6, "Writes the tables that the manifest names, and the manifest.")
INGEST = Stage("ingest", 3, "Writes the lineage of a snapshot's documents, and their manifest.")

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
    HELDOUT,
    DECIDE,
    TOKENIZER,
    PACK,
    LEAKS,
    PUBLISH,
    INGEST,
)
"""In the order of the chain, except `ingest`, which publishes the output of `extract`."""

ROWS = tuple(row for stage in STAGES for row in stage.rows)
"""Rows of the funnel, in order."""


def named(name: str) -> Stage:
    """The stage of this name."""
    return next(stage for stage in STAGES if stage.name == name)


Class = Literal["policy", "quality", "fault"]


@dataclass(frozen=True)
class Reason:
    """Why a document ended: `row` is its row of the funnel, `kind` its class, `says` one sentence for people."""

    row: str
    kind: Class
    says: str


REASONS: dict[str, Reason] = {
    "http_status": Reason("acquire", "policy", "The server answered with a status other than 200."),
    "redirect": Reason("acquire", "policy", "The server or the page sends the visitor to another URL."),
    "revisit": Reason("acquire", "policy", "The archive has only a note that the page is unchanged."),
    "not_html": Reason("acquire", "policy", "The payload is not a web page or text, whatever its name or header says."),
    "pointer": Reason(
        "acquire",
        "fault",
        "The file only says where its content is, since that was not fetched: `git lfs pull` (or `git annex get`).",
    ),
    "url_domain": Reason(
        "acquire", "policy", "The host, or the host and the beginning of the path, is on the recipe's list."
    ),
    "url_word": Reason("acquire", "policy", "The URL contains a word or substring of the recipe's lists."),
    "url_soft_words": Reason("acquire", "policy", "The URL contains two words of the recipe's list of soft words."),
    "empty_body": Reason("acquire", "quality", "There is no payload, or no text in it."),
    "robots_meta": Reason("acquire", "policy", "The owner forbids indexing or reuse by header or meta element."),
    "truncated": Reason("acquire", "fault", "The file ends inside the record."),
    "damaged": Reason("acquire", "fault", "The record cannot be read: broken compression or headers."),
    "unsupported_encoding": Reason("acquire", "fault", "The payload is compressed in an unknown format."),
    "bad_encoding": Reason(
        "acquire", "fault", "The payload does not match its transfer or content encoding, or a row's text is not UTF-8."
    ),
    "too_large": Reason(
        "acquire",
        "policy",
        "The payload is larger than extract.max_payload_bytes, or unpacking it takes more memory than is permitted.",
    ),
    "bomb": Reason("acquire", "fault", "It unpacks to 1,000 times its size and more."),
    "bad_row": Reason("acquire", "fault", "The line, row or page cannot be parsed."),
    "no_text_column": Reason("acquire", "fault", "The row has no string in the recipe's text column."),
    "other_namespace": Reason("acquire", "policy", "The wiki page is not in an accepted namespace."),
    "no_main_file": Reason("acquire", "quality", "The paper has no file that begins a LaTeX document."),
    "vendored": Reason("acquire", "policy", "The source file is a copy of another project's, as in node_modules."),
    "generated": Reason("acquire", "quality", "The source file is generated, by its name or its own statement."),
    "minified": Reason(
        "acquire", "quality", "The source file is minified or contains data: its lines are not written for readers."
    ),
    "not_code": Reason("acquire", "policy", "The file is not in an accepted programming or markup language."),
    "licence_unknown": Reason("acquire", "policy", "The source file has no stated licence, or an unknown one."),
    "licence_refused": Reason("acquire", "policy", "The source file's licence is not among the accepted ones."),
    "too_deep": Reason(
        "extract",
        "fault",
        "Elements are nested deeper than extract.max_depth, or too many marks of wikitext are open at once.",
    ),
    "timeout": Reason(
        "extract",
        "fault",
        "Extraction or parsing exceeded its time limit; a page twice, the second time alone, with 4 times the limit.",
    ),
    "crashed": Reason("extract", "fault", "Its reader raised an error, or the extraction worker crashed on it, twice."),
    "unwanted_language": Reason(
        "extract",
        "policy",
        "The page is certainly in a language that is not in extract.languages; it was not extracted.",
    ),
    "no_text": Reason("extract", "quality", "The page has no main text."),
    "other_language": Reason("language", "policy", "The language is not among those that the recipe keeps."),
    "uncertain_language": Reason(
        "language", "quality", "The language is wanted, but its score is below the recipe's bound."
    ),
    "below_floor": Reason(
        "filter", "quality", "A measure is outside its floor, so the costly judges skipped the document."
    ),
    "personal_data": Reason(
        "filter", "policy", "It contains more personal data than judge.personal_data.drop_above permits."
    ),
    "low_quality": Reason(
        "filter", "quality", "The score of a quality classifier is below its judge.quality.*.min_score."
    ),
    "contaminated": Reason("decontaminate", "quality", "It shares a word n-gram with a benchmark item."),
    "exact_duplicate": Reason("exact", "quality", "Another kept document has the same normalised text."),
    "same_payload": Reason("exact", "quality", "Another kept document has the same payload, byte for byte."),
    "same_url": Reason("exact", "policy", "Another kept document has the same normalised URL."),
    "near_duplicate": Reason("near", "quality", "A kept document has a verified similarity of at least min_jaccard."),
    "heldout_copy": Reason(
        "pack", "policy", "It equals a held-out document or is near one: it is held out too, not trained on."
    ),
    "edited": Reason("pack", "quality", "Edits and masks removed this text from kept documents (0 documents)."),
    "empty_document": Reason("pack", "quality", "Tokenisation gives no tokens."),
}
"""Every reason but those of rules, which rule files name (`rules/*.toml`): see `reason_of`."""


def reason_of(name: str) -> Reason:
    """The reason of this name; those of rule files end documents in row `filter`, for their quality."""
    return REASONS.get(name) or Reason("filter", "quality", "A measure is outside a rule's bounds.")
