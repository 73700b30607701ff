"""The contract of all packages: Arrow schemas of what is stored, and the name of every reason a document can end for.

Five tables follow a crawl to tokens: records (one row per record read), documents (text, written once), attributes
(same rows as documents, in groups), decisions (same rows again: where and why a document ended, or null), tokens
(packed sequences).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import pyarrow as pa

from corpusmill.canonical import canonical_json

DOC_ID = pa.binary(16)
"""First 16 bytes of sha256 over ('doc1', source, snapshot, locator, record offset, index in record)."""

DIGEST16 = pa.binary(16)
"""First 16 bytes of a sha256."""


def _required(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


RECORDS = pa.schema(
    [
        _required("offset", pa.int64()),  # byte offset of the record in its file (of its gzip member where compressed)
        pa.field("file", pa.string()),  # locator of its file, where that is not the shard's
        _required("record_type", pa.string()),  # response | revisit | resource | conversion; row | page | file; unknown
        pa.field("url", pa.string()),
        pa.field("date", pa.string()),  # RFC 3339 in UTC: 2020-01-31T10:00:00Z, perhaps with a fraction of a second
        pa.field("status", pa.int32()),
        pa.field("mime", pa.string()),  # from sniffing and the declared type together; lower case, no parameters
        _required("payload_bytes", pa.int64()),  # after transfer and content decoding
        pa.field("payload_digest", DIGEST16),
        pa.field("charset", pa.string()),
        pa.field("charset_origin", pa.string()),  # bom | header | meta | detected | default
        pa.field("source_id", pa.string()),  # its name in the source: id of a row, path in a tree, position in a crawl
        pa.field("licence", pa.string()),  # of source files: an SPDX expression; of rows: as they state it
        pa.field("doc_id", DOC_ID),  # null if the record gave no document
        pa.field("stage", pa.string()),  # acquire | extract: where the record ended; null if it gave a document
        pa.field("reason", pa.string()),
    ]
)
"""One row per response, revisit, resource or conversion record of a file (of other sources: per row, page or file), in
file order: the fate of any URL."""

DOCUMENTS = pa.schema(
    [
        _required("doc_id", DOC_ID),
        pa.field("url", pa.string()),
        pa.field("date", pa.string()),  # as in records
        _required("offset", pa.int64()),
        pa.field("file", pa.string()),  # as in records
        pa.field("charset", pa.string()),
        pa.field("charset_origin", pa.string()),
        _required("payload_bytes", pa.int64()),
        _required("payload_digest", DIGEST16),
        _required(
            "extractor", pa.string()
        ),  # lines | resiliparse | trafilatura | plain | fusion; without HTML: wet, text, or the kind of source
        pa.field("source_id", pa.string()),  # as in records
        pa.field("code_language", pa.string()),  # of source files, by Pygments' short names
        pa.field("licence", pa.string()),  # as in records
        pa.field("columns", pa.string()),  # a JSON object: further columns of a row that the recipe names
        pa.field(
            "title", pa.string()
        ),  # this and the following: as stated by the page itself (extractor/meta.py); title
        # and author of rows: as they state them
        pa.field("author", pa.string()),  # names, separated by commas
        pa.field("published", pa.string()),  # YYYY-MM-DD
        pa.field("canonical", pa.string()),  # absolute URL
        pa.field("declared_language", pa.string()),  # lower case: en, pt-br
        pa.field("licence_link", pa.string()),  # absolute target of its first rel=license
        _required("text", pa.large_string()),
    ]
)
"""Extracted text, written once, in record order. Where `file` is null, the file is known from the shard's receipt
(`facts.locator`)."""

LANGUAGE = pa.schema(
    [
        _required("language", pa.string()),  # ISO 639 code; und if the text has no letter
        _required("language_score_e4", pa.int32()),  # probability in 1/10,000
        _required("language_mixed", pa.bool_()),  # another passage of the text is in another language
    ]
)
"""Attribute group `language`."""

QUALITY_MEASURES = (
    "word_count",
    "mean_word_chars",
    "hash_ratio",
    "ellipsis_ratio",
    "bullet_line_ratio",
    "ellipsis_line_ratio",
    "alpha_word_ratio",
    "stop_word_count",
)
REPETITION_MEASURES = (
    "dup_line_ratio",
    "dup_paragraph_ratio",
    "dup_line_char_ratio",
    "dup_paragraph_char_ratio",
    *(f"top_{n}gram_char_ratio" for n in (2, 3, 4)),
    *(f"dup_{n}gram_char_ratio" for n in (5, 6, 7, 8, 9, 10)),
)

MEASURES = pa.schema(
    [_required("text_bytes", pa.int64()), _required("word_total", pa.int64())]
    + [_required(name, pa.float64()) for name in QUALITY_MEASURES + REPETITION_MEASURES]
)
"""Attribute group `measures`; `word_total` counts all words of the word table, the unit of the funnel."""


SPANS = pa.list_(
    pa.struct([_required("start", pa.int64()), _required("end", pa.int64()), _required("kind", pa.string())])
)
"""Byte spans of a stored text, each with the rule or the kind of personal data. Sorted, without overlaps."""

EDITS = pa.schema(
    [
        _required("spans", SPANS),  # what the rule file's edits remove
        _required("removed_words", pa.int64()),
        _required("removed_word_ratio", pa.float64()),  # share of the words of the raw text; 0 if it has none
    ]
)
"""Attribute group `edits`: the raw text without the spans is the view `clean`."""


def pii_group(kinds: Sequence[str]) -> pa.Schema:
    """Attribute group `pii`: what view `final` masks, and the number of values of each kind."""
    counts = [_required(name, pa.int32()) for name in (*(f"pii_{kind}" for kind in kinds), "pii_total")]
    return pa.schema([_required("spans", SPANS), *counts])


PERPLEXITY = pa.schema([pa.field("perplexity_bits_e4", pa.int32())])
"""Attribute group `perplexity`: cross entropy in 1/10,000 bits per word; null if a document was skipped or is empty."""


def signature_group(num_perm: int) -> pa.Schema:
    """Attribute group `digests`: normalised-text digest, shingle count and MinHash signature (uint32 little-endian,
    num_perm)."""
    return pa.schema(
        [
            _required("text_digest", DIGEST16),
            _required("shingles", pa.int32()),  # distinct word n-grams; 0 if the text is shorter than one
            _required("signature", pa.binary(4 * num_perm)),
        ]
    )


DECISIONS = pa.schema(
    [
        _required("doc_id", DOC_ID),
        pa.field("stage", pa.string()),  # language | filter | decontaminate | exact | near | pack; null = kept so far
        pa.field("reason", pa.string()),
        _required(
            "failed_rules", pa.int64()
        ),  # bit i: rule i of the rule file is broken (all rules, not only the first)
        pa.field("value", pa.float64()),  # the measure, score or share that decided
        pa.field("bound", pa.float64()),  # the bound it broke
        pa.field("keeper", DOC_ID),  # exact, near: the kept document; pack: the held-out one
        pa.field("similarity", pa.float64()),  # exact, near: verified Jaccard similarity to the keeper
        pa.field("cluster", DOC_ID),  # after near: doc_id of the cluster's keeper (its own if it is alone)
        pa.field("benchmark", pa.string()),  # decontaminate: "benchmark/item" of the first hit
    ]
)
"""One row per document, same rows and order as its documents shard. Each cutting stage carries the earlier rows
forward."""

REJECTS = pa.schema(
    [
        _required("stage", pa.string()),
        _required("reason", pa.string()),
        _required("order", pa.binary(8)),  # seeded hash of the document or record: the sample has the smallest ones
        pa.field("doc_id", DOC_ID),
        pa.field("url", pa.string()),
        pa.field("source_id", pa.string()),  # this and the following five: as in documents
        pa.field("date", pa.string()),
        pa.field("title", pa.string()),
        pa.field("author", pa.string()),
        pa.field("licence", pa.string()),
        pa.field("columns", pa.string()),
        _required("locator", pa.string()),
        _required("offset", pa.int64()),
        pa.field("language", pa.string()),
        pa.field("value", pa.float64()),
        pa.field("bound", pa.float64()),
        pa.field("keeper", DOC_ID),
        pa.field("similarity", pa.float64()),
        pa.field("benchmark", pa.string()),
        pa.field("text", pa.large_string()),  # the first 2,000 characters; null if no text was extracted
        pa.field("keeper_url", pa.string()),
        pa.field("keeper_text", pa.large_string()),  # of the keeper; null if another dataset has it
    ]
)
"""A seeded sample of what each reason of each stage rejected; duplicates as pairs."""

REASONS = pa.schema(
    [
        _required("reason", pa.string()),
        _required("row", pa.string()),  # row of the funnel in which documents end for it
        _required("kind", pa.string()),  # policy | quality | fault
        _required("says", pa.string()),  # one sentence for people
    ]
)
"""Every reason for which documents of a dataset ended."""

COLUMNS = pa.schema(
    [
        _required("source", pa.string()),
        _required("column", pa.string()),  # or a field of its records, as WARC-Date
        _required("type", pa.string()),  # as in the first file that has it; empty if no row has a value
        pa.field("becomes", pa.string()),  # the field of documents; null = it is left out
        _required("values", pa.int64()),  # rows that have one
        _required("unreadable", pa.int64()),  # of these: null in documents, since they have no form
        pa.field("example", pa.string()),  # the first unreadable one
    ]
)
"""Columns of the sources' rows, and what became of them: those that were left out, too."""

COUNTS = pa.schema(
    [
        _required("source", pa.string()),
        _required("count", pa.string()),  # template | not_content | wrong_length | cut_by_crawler | a fault's reason
        _required("name", pa.string()),  # of the template, or the record's type; empty = of no name, or of rare ones
        _required("times", pa.int64()),
    ]
)
"""What readers counted beside rows: templates that were dropped, records that are no pages, odd heads, faults."""

LINEAGE = pa.schema(
    [
        _required("stage", pa.string()),
        _required("locator", pa.string()),  # source/locator of its file; empty for global stages
        _required(
            "kind", pa.string()
        ),  # records | documents | language | measures | digests | decisions | tokens | ...
        _required("unit", pa.string()),  # key of the unit that wrote it: receipts/<stage>/<unit>.<n>
        _required("name", pa.string()),
        _required("digest", pa.string()),
        pa.field("content", pa.string()),
        _required("size", pa.int64()),
        pa.field("rows", pa.int64()),
    ]
)
"""Every stored object of a dataset, one row each: everything is reachable from the manifest."""

PLACES = pa.list_(pa.struct([_required("start", pa.int64()), _required("end", pa.int64())]))
"""Byte spans of a text."""

CONTAMINATION = pa.schema(
    [
        _required("doc_id", DOC_ID),
        pa.field("url", pa.string()),
        _required("locator", pa.string()),  # source/locator of the document's file
        _required("benchmark", pa.string()),
        _required("item", pa.string()),
        _required("offset", pa.int64()),  # first byte, in the stored text, of the first n-gram shared with the item
        _required("stop", pa.int64()),  # the byte after its last word
        _required("whole", pa.bool_()),  # the item is shorter than an n-gram, and the document contains all of it
        _required("words", pa.int32()),  # words of the n-gram, or of the whole item
        _required("shared", pa.int32()),  # distinct n-grams of the item in the document
        _required("share", pa.float64()),  # share of the distinct n-grams of the item
        _required("ngram", pa.string()),  # the first one: its folded words, joined by spaces
        _required("spans", PLACES),  # every occurrence of the item in the stored text: what action `cut` removes
    ]
)
"""Every document and benchmark item that share an n-gram: by shard and row, then by place."""

BENCHMARK_ITEMS = pa.schema(
    [
        _required("benchmark", pa.string()),
        _required("item", pa.string()),
        _required("screened", pa.string()),  # ngrams | whole | too_short
        pa.field("words", pa.int32()),  # per n-gram; null if there is none
        _required("ngrams", pa.int32()),  # distinct ones; 1 for an item that is searched for as a whole
    ]
)
"""How each item of the recipe's benchmarks is screened, including those that these settings cannot find."""

EXEMPTED_NGRAMS = pa.schema(
    [
        _required("ngram", pa.string()),  # its folded words, joined by spaces
        _required("contexts", pa.int64()),  # distinct ones in the corpus
    ]
)
"""N-grams of benchmark items that are common phrases in the corpus and therefore not hits; most contexts first."""

PACK_ROWS = pa.schema(
    [
        _required("doc_lens", pa.list_(pa.uint32())),  # token lengths of the pieces in a row; sum <= seq_len + 1
        _required("doc_refs", pa.list_(pa.uint32())),  # row numbers in the shard's docs table, same shape
    ]
)
"""Side table of a token shard, one row per packed sequence."""

PACK_DOCS = pa.schema(
    [
        _required("doc_id", DOC_ID),
        _required("tokens", pa.uint32()),  # with its end-of-text token
        _required("text_bytes", pa.int64()),
        pa.field("url", pa.string()),
    ]
)
"""Documents of a token shard."""

TOKENS_COLUMN = "tokens"


def tokens_schema(token_bytes: int, seq_len: int) -> pa.Schema:
    """Packed sequences: one fixed-size binary of seq_len + 1 little-endian token ids (2 or 4 bytes each)."""
    return pa.schema([_required(TOKENS_COLUMN, pa.binary(token_bytes * (seq_len + 1)))])


def doc_id(source: str, snapshot: str, locator: str, offset: int, index: int = 0) -> bytes:
    """First 16 bytes of sha256 over the canonical JSON of ["doc1", source, snapshot, locator, offset, index].

    Args:
        source: name of the source in the recipe.
        snapshot: the crawl, or the name of a folder's state.
        locator: path of the file relative to the source's root, "/"-separated.
        offset: byte offset of the record in its file (of its gzip member where compressed).
        index: which record of that member it is; 0 where every record has a member of its own.
    """
    return hashlib.sha256(canonical_json(["doc1", source, snapshot, locator, offset, index])).digest()[:16]
