"""What is measured of a document, and which bounds decide."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from corpusmill.config.section import Name, Section, Share, Strings, where


class Language(Section):
    """Which languages are kept."""

    keep: Strings = Field(("en",), min_length=1, description='Language codes; ["*"] keeps all, as for code.')
    min_score: float = Field(0.65, ge=0, le=1, strict=False)
    min_scores: dict[str, Share] = Field({}, description="Other bounds for some languages: code = bound.")
    model: str = where("lid.176.ftz", description="A fastText model: a file, or a name that `mill models fetch` knows.")


class Floor(Section):
    """Bounds on a measure, outside of which a document is hopeless."""

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
    """Personal data in what is kept: masked wherever text leaves the store."""

    kinds: Annotated[tuple[PersonalKind, ...], Field(strict=False)] = Field(
        (), description="What is looked for: docs/how-to/personal-data.md."
    )
    drop_above: int | None = Field(None, ge=0, description="Documents with more of it than this end as personal_data.")
    reserved: bool = Field(True, description="Whether values kept for examples (example.com, 192.0.2.0/24) count, too.")


class Quality(Section):
    """A classifier of `mill quality train`: measure `quality_<name>`, from 0 to 1."""

    model: str = where(description="The model's file; its digest is part of the identity.")
    min_score: float | None = Field(
        None, ge=0, le=1, strict=False, description="Documents below it end as low_quality; `mill quality score` shows."
    )
    buckets: Annotated[tuple[Share, ...], Field(strict=False)] = Field(
        (), description="Ascending scores that cut what is kept into partitions `<source>-<name><number>`."
    )

    @model_validator(mode="after")
    def _ascending(self) -> Quality:
        if list(self.buckets) != sorted(set(self.buckets)):
            raise ValueError(f"buckets must ascend, given {list(self.buckets)}")
        return self


class Perplexity(Section):
    """A language model of `mill perplexity train`: measure `perplexity_bits`, bits a word."""

    model: str = where(description="The model's file; its digest is part of the identity.")


class Own(Section):
    """A measure of your own: measure `own_<name>`."""

    function: str = Field(
        pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$", description="package.module:function, of texts to numbers."
    )
    view: Literal["raw", "clean"] = "raw"


class Judge(Section):
    """What is measured beside the languages and the measures of the rules."""

    personal_data: PersonalData = PersonalData()
    quality: dict[Name, Quality] = Field({}, description="Classifiers by name.")
    perplexity: Perplexity | None = None
    own: dict[Name, Own] = Field({}, description="Measures of your own by name.")
    floors: dict[str, Floor] = Field(
        {}, description="Measures of the raw text outside of whose bounds costly judges are spared: below_floor."
    )

    @model_validator(mode="after")
    def _one_classifier_cuts(self) -> Judge:
        if sum(bool(quality.buckets) for quality in self.quality.values()) > 1:
            raise ValueError("buckets: one classifier may cut partitions")
        return self


class Filter(Section):
    """Which rules decide."""

    rules: str = where(
        "gopher", description="A name in rules/ or a path of a rule file; its digest is part of the identity."
    )
