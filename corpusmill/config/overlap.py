"""What documents share: with benchmarks, and with each other."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from corpusmill.config.section import Name, Section, Share, Strings, where


class Benchmark(Section):
    """One evaluation set to keep out of the training data: a part of a recipe, or a file in `recipes/benchmarks/`."""

    all_keys = "docs/reference/recipe.md"

    name: Name
    file: str = Field(description="JSON lines (may be .gz) or Parquet, below decontaminate.root.")
    format: Literal["jsonl", "parquet"] | None = Field(None, description="Else by the file's name.")
    fields: Strings = Field(min_length=1, description="Fields whose text is screened, one below the other.")
    id: str = Field(
        "id", description="Field of an item's own id; where it is missing, its number in the file is taken."
    )
    licence: str | None = Field(None, description="Licence of the set: named in manifest and report, decides nothing.")
    source: str | None = Field(None, description="Where the set comes from: named there, decides nothing.")
    ngram: int | None = Field(None, ge=5, le=50, description="Else decontaminate.ngram.")
    exact_words: int | None = Field(None, ge=0, le=50, description="Else decontaminate.exact_words.")
    min_share: Share | None = Field(None, description="Else decontaminate.min_share.")


class Decontaminate(Section):
    """Screen against benchmarks by word n-grams."""

    ngram: int = Field(13, ge=5, le=50, description="Words of an n-gram.")
    exact_words: int = Field(
        8,
        ge=0,
        le=50,
        description="Items of at least this number of words, too short for an n-gram, are looked for whole; 0: none.",
    )
    min_share: Share = Field(
        0.0, description="Share of an item's distinct n-grams that a document must hold; 0: one n-gram is enough."
    )
    action: Literal["drop", "cut", "flag"] = Field(
        "drop", description="drop the document; cut the item out of it; flag: keep it, the hit stands in decisions."
    )
    exempt_contexts: int = Field(
        0,
        ge=0,
        description="N-grams that stand in at least this number of contexts are common phrases, no hits; 0: off.",
    )
    root: str = where(".", description="Folder of the benchmark files.")
    use: Strings = where((), description="Benchmarks by name in recipes/benchmarks/, or paths of such files.")
    benchmark: Annotated[tuple[Benchmark, ...], Field(strict=False)] = ()

    @model_validator(mode="after")
    def _names_once(self) -> Decontaminate:
        names = [benchmark.name for benchmark in self.benchmark]
        if twice := sorted({name for name in [*names, *self.use] if [*names, *self.use].count(name) > 1}):
            raise ValueError(f"benchmark {twice[0]!r} is named twice")
        return self


Preference = Annotated[str, Field(pattern=r"^(longest|oldest|newest|quality:[a-z0-9][a-z0-9._-]{0,63})$")]


class Deduplicate(Section):
    """Exact and near duplicates, and repeated passages."""

    exact: Annotated[tuple[Literal["payload", "text", "url"], ...], Field(strict=False)] = Field(
        ("text",),
        description="By what documents are exact duplicates, in turn: payload bytes, normalised text, URL.",
    )
    prefer: Annotated[tuple[Preference, ...], Field(strict=False)] = Field(
        ("longest", "oldest"),
        description="Which of several copies is kept: longest, oldest, newest, or the highest score of a classifier,"
        " quality:<name>; ties end with doc_id.",
    )
    policy: Literal["across", "within"] = Field(
        "across", description="Whether documents of other snapshots count as originals, or each snapshot stands alone."
    )
    shingle: Literal["word", "char"] = Field("word", description="What a shingle is made of.")
    ngram: int = Field(5, ge=1, le=64, description="Words (or characters) in a shingle.")
    normaliser: Literal["folded-words"] = Field("folded-words", description="Lower case, no punctuation; one space.")
    fold_digits: bool = Field(False, description="Digits 0 to 9 count as one; makes tables and logs look alike.")
    hash: Literal["polynomial64"] = Field("polynomial64", description="Hash of a shingle.")
    num_perm: int = Field(112, ge=16, le=1024, description="Signature length.")
    bands: int = Field(14, ge=1, description="LSH bands; rows = num_perm / bands. `mill lsh` recommends them.")
    min_jaccard: float = Field(
        0.8, gt=0, le=1, strict=False, description="Verified similarity from which a document is a duplicate."
    )
    max_pivots: int = Field(4, ge=1, description="Documents of a bucket that the others are compared with, a round.")
    index: bool = Field(False, description="Store an index of the kept documents, for later snapshots.")
    against: str | None = where(
        None,
        description="A dataset with an index: what it kept counts as kept before. Its digest is part of the identity.",
    )
    lines: Literal["off", "line", "paragraph"] = Field(
        "off", description="Cut what is repeated in many documents from all but one of them, as edits."
    )
    lines_min_documents: int = Field(6, ge=2, description="Documents that hold a line from which it is cut.")
    substring_words: int = Field(
        0, ge=0, description="Cut passages of this number of words (50 or more) that occur before, as edits; 0: off."
    )
    memory_mb: int = where(2048, ge=1, description="Memory of a unit, about; what does not fit goes through the store.")

    @property
    def preferred_scores(self) -> tuple[str, ...]:
        """Attribute groups whose scores `prefer` reads, `quality:<name>`."""
        return tuple(key for key in self.prefer if key.startswith("quality:"))

    @model_validator(mode="after")
    def _rows_are_whole(self) -> Deduplicate:
        if self.num_perm % self.bands:
            raise ValueError(f"num_perm {self.num_perm} is not a multiple of bands {self.bands}")
        if 0 < self.substring_words < 50:
            raise ValueError(f"substring_words {self.substring_words}: shorter passages than 50 words are quotations")
        twice = len(set(self.exact)) < len(self.exact) or len(set(self.prefer)) < len(self.prefer)
        if twice or {"oldest", "newest"} <= set(self.prefer):
            raise ValueError("exact and prefer name each key once, and one of oldest and newest")
        if self.policy == "within" and (self.index or self.against):
            raise ValueError('policy "within" compares with no other snapshot: it goes without index and against')
        return self
