"""A whole recipe: the sections of one dataset, in the order of the stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from corpusmill import languages
from corpusmill.config.judging import Filter, Judge, Language
from corpusmill.config.overlap import Decontaminate, Deduplicate
from corpusmill.config.reading import Read, parse_section, read_file, read_section
from corpusmill.config.section import Name, Section, Share, Strings, fault, where
from corpusmill.config.sources import Source


class Extract(Section):
    """HTML to text, in worker processes that can be killed."""

    mode: Literal["auto", "fast", "resiliparse", "trafilatura", "plain", "union"] = "auto"
    max_payload_bytes: int = Field(16 * 2**20, ge=1024, description="Larger decoded payloads end as too_large.")
    max_depth: int = Field(2000, ge=10, description="Documents with deeper nested elements end as too_deep.")
    timeout_s: int = Field(30, ge=1, description="CPU seconds per document; one retry, alone, with four times this.")
    memory_mb: int = Field(1536, ge=256, description="Address space that a worker may add to that at its start.")
    urls: str | None = where(
        None,
        description="URL rules: a name in rules/urls/ or a file; the digest of its lists is part of the dataset's "
        "identity.",
    )
    robots: Literal["respect", "ignore"] = Field(
        "respect", description="Whether an owner's noindex or noai is respected."
    )
    verify_digests: bool = where(
        False,
        description="Compare WARC records with the digests in their headers; mismatches are counted and kept. When on, "
        "it is part of the dataset's identity.",
    )
    languages: Strings = Field(
        (),
        description="Language gate: ISO 639 codes; pages certainly in other languages end as unwanted_language.",
    )


class Pack(Section):
    """Tokens and packed sequences."""

    seq_len: int = Field(1024, ge=16, description="Tokens per training sequence; a stored row has one more.")
    tokenizer: str | None = where(
        None,
        description="A tokenizer.json; if absent, one is trained. Its digest is part of the dataset's identity.",
    )
    eos: str | None = Field(
        None,
        min_length=1,
        description="Name of the token that ends a document; if absent, `<|endoftext|>`, or the one of a given "
        "tokenizer that has a common name.",
    )
    encoder: Literal["tokie", "tokenizers"] = Field(
        "tokie",
        description="Library that encodes documents: `tokie`, 13 to 23 times less CPU on English pages, compared with "
        "`tokenizers` on one document in 1,000 of each run, or `tokenizers` alone. Part of the pack stage's key; the "
        "ids are the same.",
    )
    lossy: bool = Field(
        False,
        description="Accept a tokenizer from whose tokens texts do not come back as they were. If false, it is refused "
        "before the build, with an example.",
    )
    vocab_size: int = Field(8192, ge=512, le=2**20, description="Entries of a trained tokenizer.")
    sample_bytes: int = Field(32 * 2**20, ge=2**16, description="Bytes of text that the tokenizer is trained on.")
    window_bytes: int = Field(
        256 * 2**20, ge=2**16, description="Approximate bytes of extracted text per shuffle window."
    )
    heldout_one_in: int = Field(
        100,
        ge=2,
        description="One of this many duplicate groups goes to partition heldout, with its copies in every snapshot.",
    )

    @model_validator(mode="after")
    def _eos_is_no_byte(self) -> Pack:
        if self.tokenizer is None and self.eos is not None and len(self.eos) < 2:
            raise fault(
                f"expected two characters or more: a trained tokenizer has a token for each byte; given {self.eos!r}",
                "eos",
            )
        return self


class Limits(Section):
    """How much may be missing from a dataset that is published."""

    max_fault_share: Share = where(
        0.5,
        description="Share of a source's records, of 20 or more, that may have faults; above it nothing is published.",
    )


class Recipe(Section):
    """One dataset."""

    all_keys = "`mill recipe schema`, docs/reference/recipe.md"
    mark = "source"
    stand_ins: ClassVar[Mapping[str, Any]] = {
        "name": "unnamed",
        "source": {"unnamed": {"kind": "text", "root": "."}},
    }

    name: Name = Field(description="Name of the dataset.")
    seed: int = Field(17, ge=0, le=2**53, description="Seed of all samples and shuffles.")
    source: dict[Name, Source] = Field(min_length=1, description="Sources by name.")
    extract: Extract = Extract()
    language: Language = Language()
    judge: Judge = Judge()
    filter: Filter = Filter()
    decontaminate: Decontaminate = Decontaminate()
    deduplicate: Deduplicate = Deduplicate()
    pack: Pack = Pack()
    limits: Limits = where(Limits())
    train: str | None = where(None, description="Training config that the platform uses once the dataset is published.")

    @model_validator(mode="after")
    def _partition_names(self) -> Recipe:
        if "heldout" in self.source:
            raise fault("a source must not be named heldout: that is the name of a partition", "source.heldout")
        return self

    @model_validator(mode="after")
    def _languages_that_there_are(self) -> Recipe:
        known = self.language.model == languages.DEFAULT_MODEL
        if known and (said := languages.fault(self.extract.languages, self.language.model)):
            raise fault(said, "extract.languages")
        return self

    @model_validator(mode="after")
    def _preferred_scores(self) -> Recipe:
        known = [f"quality:{name}" for name in sorted(self.judge.quality)]
        for key in self.deduplicate.preferred_scores:
            if key not in known:
                raise fault(
                    f"it names {key!r}, but [judge.quality] has {', '.join(known) or 'no classifier'}",
                    "deduplicate.prefer",
                )
        return self


def language_codes(recipe: Recipe) -> dict[tuple[str, str], tuple[str, ...]]:
    """The codes of languages that a recipe names, by key."""
    named = {("language", key): codes for key, codes in recipe.language.codes().items()}
    return {**named, ("extract", "languages"): recipe.extract.languages}


def load_recipe(path: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """Read, override and check a recipe.

    Args:
        path: a TOML file, or the name of one in `recipes/`.
        overrides: `key.path=value`, the value as TOML or a bare string.

    Raises:
        NotFound: there is no such file.
        UsageError: not TOML, or the recipe has faults; all of them are listed.
    """
    return read_section(Recipe, path, overrides, "recipe")


def read_recipe(path: str | Path, overrides: Sequence[str] = ()) -> Read[Recipe]:
    """Read a recipe as `load_recipe`, whatever is wrong with it: its faults, and what is right of it."""
    return read_file(Recipe, path, overrides, "recipe")


def parse_recipe(data: Mapping[str, Any], origin: str) -> Recipe:
    """Check a recipe that is already a mapping; `origin` is named in messages."""
    return parse_section(Recipe, data, origin, "recipe")


def recipe_schema() -> dict[str, Any]:
    """JSON schema of a recipe for editors (`definitions`, which draft-4 tools understand too)."""
    schema = Recipe.model_json_schema(ref_template="#/definitions/{model}")
    schema["definitions"] = schema.pop("$defs")
    return schema
