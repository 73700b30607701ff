"""What documents share with benchmarks and with each other."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from corpusmill.config.section import PREFERENCE, Name, Section, Share, Strings, fault, where


class Benchmark(Section):
    """One evaluation set to keep out of training data: a section of a recipe, or a file in `recipes/benchmarks/`."""

    all_keys = "docs/reference/recipe.md"

    name: Name
    file: str = Field(description="JSON lines (may be .gz) or Parquet, below decontaminate.root.")
    format: Literal["jsonl", "parquet"] | None = Field(None, description="If absent, from the file name.")
    fields: Strings = Field(min_length=1, description="Fields whose texts are joined by line breaks and screened.")
    id: str = Field("id", description="Field with the item's id; without it, the item's number in the file is used.")
    licence: str | None = Field(
        None, description="Licence of the set; shown in manifest and report, no effect on the screen."
    )
    source: str | None = Field(None, description="Origin of the set; shown like the licence.")
    choices: str | None = where(None, description="Field with a list of answers; for `mill evaluate --benchmark`.")
    answer: str | None = where(None, description="Field with the right one of them: its text, or its number from 0.")
    ngram: int | None = Field(None, ge=5, le=50, description="If absent, decontaminate.ngram.")
    exact_words: int | None = Field(None, ge=0, le=50, description="If absent, decontaminate.exact_words.")
    min_share: Share | None = Field(None, description="If absent, decontaminate.min_share.")


class Decontaminate(Section):
    """The benchmark screen, by word n-grams."""

    ngram: int = Field(13, ge=5, le=50, description="Words per n-gram.")
    exact_words: int = Field(
        8,
        ge=0,
        le=50,
        description="Items too short for an n-gram are searched for whole from this many words on; 0: never.",
    )
    min_share: Share = Field(
        0.0, description="Share of an item's distinct n-grams that a document must contain; 0: one n-gram is enough."
    )
    action: Literal["drop", "cut", "flag"] = Field(
        "drop",
        description="drop the document; cut the item out of it; flag: keep it and record the hit in decisions.",
    )
    exempt_contexts: int = Field(
        0,
        ge=0,
        description="N-grams that occur in at least this many contexts are common phrases, not hits; 0: off.",
    )
    root: str | None = where(None, description="Folder of the benchmark files; else CORPUSMILL_BENCHMARKS.")
    use: Strings = where((), description="Benchmarks: names in recipes/benchmarks/, or paths of such files.")
    benchmark: Annotated[tuple[Benchmark, ...], Field(strict=False)] = ()

    @model_validator(mode="after")
    def _names_once(self) -> Decontaminate:
        names = [benchmark.name for benchmark in self.benchmark]
        if twice := sorted({name for name in [*names, *self.use] if [*names, *self.use].count(name) > 1}):
            raise ValueError(f"benchmark {twice[0]!r} is named twice")
        return self


Preference = Annotated[str, Field(pattern=PREFERENCE)]


class Deduplicate(Section):
    """Exact and near duplicates, and repeated passages."""

    exact: Annotated[tuple[Literal["payload", "text", "url"], ...], Field(strict=False)] = Field(
        ("text",),
        description="What makes documents exact duplicates, in this order: payload bytes, normalised text, URL.",
    )
    prefer: Annotated[tuple[Preference, ...], Field(strict=False)] = Field(
        ("longest", "oldest"),
        description="Which of several copies is kept: longest, oldest, newest, or the highest score of a classifier,"
        " quality:<name>; doc_id breaks ties.",
    )
    policy: Literal["across", "within"] = Field(
        "across",
        description="across: compare documents of all snapshots; within: deduplicate each snapshot separately.",
    )
    shingle: Literal["word", "char"] = Field("word", description="Unit of a shingle.")
    ngram: int = Field(5, ge=1, le=64, description="Words (or characters) per shingle.")
    normaliser: Literal["folded-words"] = Field(
        "folded-words", description="One encoding (NFC), lower case, no punctuation, single spaces."
    )
    fold_digits: bool = Field(
        False, description="Treat the digits 0 to 9 as equal; this makes tables and logs look alike."
    )
    hash: Literal["polynomial64"] = Field("polynomial64", description="Hash function of shingles.")
    num_perm: int = Field(112, ge=16, le=1024, description="Length of a signature.")
    bands: int = Field(14, ge=1, description="LSH bands; rows = num_perm / bands. `mill lsh` recommends values.")
    min_jaccard: float = Field(
        0.8, gt=0, le=1, strict=False, description="Documents with at least this verified similarity are duplicates."
    )
    max_pivots: int = Field(
        4, ge=1, description="Documents per bucket that the others are compared with, in each round."
    )
    index: bool = Field(False, description="Store an index of the kept documents for later snapshots.")
    against: str | None = where(
        None,
        description="A dataset with an index, whose kept documents count as kept before. Its digest is part of the "
        "dataset's identity.",
    )
    lines: Literal["off", "line", "paragraph"] = Field(
        "off", description="Cut lines or paragraphs that many documents repeat from all but one of them, as edits."
    )
    lines_min_documents: int = Field(
        6, ge=2, description="Number of documents with the same line from which on it is cut."
    )
    substring_words: int = Field(
        0,
        ge=0,
        description="Cut passages of at least this many words (50 or more) that occurred before, as edits; 0: off.",
    )
    memory_mb: int = where(2048, ge=1, description="Approximate memory per unit; larger work goes through the store.")

    @property
    def preferred_scores(self) -> tuple[str, ...]:
        """Attribute groups whose scores `prefer` reads: `quality:<name>`."""
        return tuple(key for key in self.prefer if key.startswith("quality:"))

    @model_validator(mode="after")
    def _rows_are_whole(self) -> Deduplicate:
        if self.num_perm % self.bands:
            raise fault(f"num_perm {self.num_perm} is not a multiple of bands {self.bands}", "bands", "num_perm")
        if 0 < self.substring_words < 50:
            raise fault(
                f"expected 0, or 50 and more (shorter passages are quotations), given {self.substring_words}",
                "substring_words",
            )
        twice = len(set(self.exact)) < len(self.exact) or len(set(self.prefer)) < len(self.prefer)
        if twice or {"oldest", "newest"} <= set(self.prefer):
            raise fault(
                "expected each key once in exact and prefer, and at most one of oldest and newest", "prefer", "exact"
            )
        if self.policy == "within" and (self.index or self.against):
            raise fault(
                '"within" compares with no other snapshot: remove index and against', "policy", "index", "against"
            )
        return self
