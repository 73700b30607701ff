"""What is measured of a document, and the bounds that decide."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from corpusmill import languages
from corpusmill.config.section import FUNCTION, Name, Section, Share, Strings, fault, where


class Language(Section):
    """Which languages are kept."""

    keep: Strings = Field(
        ("en",),
        min_length=1,
        description='ISO 639 codes, of two letters where there is one; ["*"] keeps all, for example for source code.',
    )
    min_score: float = Field(0.65, ge=0, le=1, strict=False, description="Documents with a lower score are dropped.")
    min_scores: dict[str, Share] = Field({}, description="Other bounds for single languages: code = bound.")
    model: str = where("lid.176.ftz", description="A fastText model: a file, or a name that `mill models fetch` knows.")

    @model_validator(mode="after")
    def _languages_that_there_are(self) -> Language:
        if self.model == languages.DEFAULT_MODEL:  # others are asked where their files are looked at
            for key, codes in self.codes().items():
                if said := languages.fault(codes, self.model):
                    raise fault(said, key)
        return self

    def codes(self) -> dict[str, tuple[str, ...]]:
        """The codes that each key names."""
        keep = tuple(code for code in self.keep if code != languages.EVERY_LANGUAGE)
        return {"keep": keep, "min_scores": tuple(self.min_scores)}


class Floor(Section):
    """Bounds on a measure; costly judges skip documents outside them."""

    min: float | None = Field(None, strict=False)
    max: float | None = Field(None, strict=False)

    @model_validator(mode="after")
    def _some_bound(self) -> Floor:
        if self.min is None and self.max is None:
            raise ValueError("expected min or max")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"min {self.min} is above max {self.max}")
        return self


PersonalKind = Literal["email", "ip", "phone", "card", "iban", "national_id", "api_key"]


class PersonalData(Section):
    """Personal data in kept documents: masked wherever text leaves the store."""

    kinds: Annotated[tuple[PersonalKind, ...], Field(strict=False)] = Field(
        (), description="Kinds to find and mask: docs/how-to/personal-data.md."
    )
    drop_above: int | None = Field(None, ge=0, description="Documents with more values than this end as personal_data.")
    reserved: bool = Field(
        True, description="Whether values reserved for examples (example.com, 192.0.2.0/24) count too."
    )


class Quality(Section):
    """A classifier trained by `mill quality train`: measure `quality_<name>`, from 0 to 1."""

    model: str = where(description="Path of the model; its digest is part of the dataset's identity.")
    min_score: float | None = Field(
        None, ge=0, le=1, strict=False, description="Documents below it end as low_quality; see `mill quality score`."
    )
    buckets: Annotated[tuple[Share, ...], Field(strict=False)] = Field(
        (), description="Ascending scores that divide the kept documents into partitions `<source>-<name><number>`."
    )

    @model_validator(mode="after")
    def _ascending(self) -> Quality:
        if list(self.buckets) != sorted(set(self.buckets)):
            raise ValueError(f"buckets must be ascending and distinct, given {list(self.buckets)}")
        return self


class Perplexity(Section):
    """A language model trained by `mill perplexity train`: measure `perplexity_bits`, bits per word."""

    model: str = where(description="Path of the model; its digest is part of the dataset's identity.")


class Own(Section):
    """A measure of your own: measure `own_<name>`."""

    function: str = Field(pattern=FUNCTION, description="package.module:function, from texts to numbers.")
    view: Literal["raw", "clean"] = Field("raw", description="Text as extracted, or after the rule file's edits.")


class Judge(Section):
    """What is measured in addition to languages and the measures of the rules."""

    personal_data: PersonalData = PersonalData()
    quality: dict[Name, Quality] = Field({}, description="Classifiers by name.")
    perplexity: Perplexity | None = None
    own: dict[Name, Own] = Field({}, description="Measures of your own by name.")
    floors: dict[str, Floor] = Field(
        {}, description="Bounds on measures of the raw text; costly judges skip documents outside: below_floor."
    )

    @model_validator(mode="after")
    def _one_classifier_cuts(self) -> Judge:
        if sum(bool(quality.buckets) for quality in self.quality.values()) > 1:
            raise ValueError("buckets: only one classifier may divide partitions")
        return self


class Filter(Section):
    """Which rules decide."""

    rules: str = where(
        "gopher",
        description="A name in rules/ or the path of a rule file; its digest is part of the dataset's identity.",
    )
