"""Recipes: what is built, typed and frozen, read from TOML; all faults are reported at once.

A field is `what` (it decides bytes, is hashed into unit keys and stands in the manifest) or `where` (it says where and
how the work runs, and is never hashed). `where` fields are marked with `where()`.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from corpusmill.errors import NotFound, UsageError

REPOSITORY = Path(__file__).resolve().parents[1]
"""The clone this package runs from (supported install: editable), which holds `recipes/` and `rules/`."""


def where(default: Any = ..., **kwargs: Any) -> Any:
    """A field that says where or how the work runs: never hashed, never in a manifest."""
    return Field(default, json_schema_extra={"where": True}, **kwargs)


class Section(BaseModel):
    """A part of a recipe. Unknown keys are errors; values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    all_keys: ClassVar[str] = ""
    """Where all keys of a whole file are explained."""

    def what(self) -> dict[str, Any]:
        """The fields that decide bytes, as plain JSON values."""
        return {
            name: _plain(getattr(self, name)) for name, info in type(self).model_fields.items() if not _is_where(info)
        }


S = TypeVar("S", bound=Section)


def _is_where(info: Any) -> bool:
    return bool((info.json_schema_extra or {}).get("where"))


def _plain(value: Any) -> Any:
    if isinstance(value, Section):
        return value.what()
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
Strings = Annotated[tuple[str, ...], Field(strict=False)]


class Select(Section):
    """Which pages of a crawl are read, by its index: those that meet every list that is given."""

    domains: Strings = Field((), description="Hosts, with all below them: example.org is also www.example.org.")
    languages: Strings = Field((), description="ISO 639-3 codes, of which the page's main language is one.")
    mimes: Strings = Field((), description="Media types as detected by the crawler.")
    statuses: Annotated[tuple[int, ...], Field(strict=False)] = Field((), description="HTTP statuses.")


Fraction = Annotated[float, Field(gt=0, le=1, strict=False)]


class CommonCrawl(Section):
    """A tree in the shape of Common Crawl, in a folder, on a web server or in a bucket."""

    kind: Literal["common-crawl"]
    root: str = where(
        "https://data.commoncrawl.org",
        description="Folder, file:// or http(s):// address, or s3://bucket/prefix; s3://anonymous@bucket: not signed.",
    )
    crawls: Strings = Field(
        min_length=1, description='Crawl ids; "newest"; "A..B": all from A to B, either of which may be left out.'
    )
    files: Literal["warc", "wet"] = "warc"
    fraction: Fraction | None = Field(None, description="Take this share of each crawl's files, drawn by the seed.")
    max_files: int | None = Field(
        None, ge=1, description="Take only so many files of each crawl, drawn by the recipe's seed."
    )
    select: Select | None = Field(
        None, description="Read single pages by the crawl's index; files are then index files (WARC only)."
    )

    @model_validator(mode="after")
    def _index_is_of_warcs(self) -> CommonCrawl:
        if self.select is not None and self.files != "warc":
            raise ValueError("select reads pages from WARC files: the index has none of WET files")
        return self


class Folder(Section):
    """A source whose files lie in a folder or bucket."""

    kind: str
    root: str = where(description="Folder, or s3://bucket/prefix, that holds the files.")
    pattern: str = Field("**/*", description="Which files below root, as a glob.")
    snapshot: Name = "files"
    fraction: Fraction | None = Field(None, description="Take this share of the files, drawn by the recipe's seed.")
    max_files: int | None = Field(None, ge=1, description="Take only so many files, drawn by the recipe's seed.")


class Files(Folder):
    """A folder of WARC, WET or ARC files."""

    kind: Literal["files"]
    pattern: str = Field("**/*.warc.gz", description="Which files below root, as a glob.")
    files: Literal["warc", "wet"] = "warc"


class Rows(Folder):
    """A source whose files have rows, and which columns hold what."""

    text: str = Field("text", description="Column of the text.")
    id: str | None = Field(None, description="Column of the row's own id.")
    url: str | None = Field(None, description="Column of the address.")
    date: str | None = Field(None, description="Column of the date.")


class Jsonl(Rows):
    """A folder of JSON lines: one object with text a line; plain, .gz, .zst, .bz2 or .xz."""

    kind: Literal["jsonl"]
    pattern: str = Field("**/*.jsonl*", description="Which files below root, as a glob.")


class Parquet(Rows):
    """A folder of Parquet files, as Hugging Face data sets lie on disk: one text a row."""

    kind: Literal["parquet"]
    pattern: str = Field("**/*.parquet", description="Which files below root, as a glob.")


PERMISSIVE = (
    "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "ISC", "MIT", "MIT-0", "NCSA",
    "PostgreSQL", "PSF-2.0", "Python-2.0", "UPL-1.0", "Unlicense", "Zlib",
)  # fmt: skip
"""Licences that ask for no more than a notice."""


class Code(Folder):
    """Source code: tarballs (sdists, releases) and folders (checkouts); each file with its language and licence."""

    kind: Literal["code"]
    pattern: str = Field("*", description='Which tarballs and folders below root, as a glob; "." is the root itself.')
    licences: Strings = Field(PERMISSIVE, description='SPDX ids that are let in; ["*"] lets in all, unknown ones too.')
    languages: Strings = Field((), description="Languages that are let in, by Pygments' short names; none means all.")


class MediaWiki(Folder):
    """Dumps of MediaWiki (pages-articles.xml, plain, .bz2, .gz, .xz or .zst): articles without their markup."""

    kind: Literal["mediawiki"]
    pattern: str = Field("**/*.xml*", description="Which files below root, as a glob.")
    namespaces: Annotated[tuple[int, ...], Field(strict=False)] = Field((0,), description="Namespaces that are let in.")


class Latex(Folder):
    """Papers as LaTeX in the shape of arXiv: tarballs, single files, or tarballs of those."""

    kind: Literal["latex"]
    pattern: str = Field("**/*", description="Which files below root, as a glob.")


class Text(Folder):
    """Plain text and books, one document a file; plain, .gz, .zst, .bz2 or .xz."""

    kind: Literal["text"]
    pattern: str = Field("**/*.txt*", description="Which files below root, as a glob.")


class OwnSource(Folder):
    """A source of your own: a module outside of this repository that reads its files (docs/how-to/add-a-source.md)."""

    kind: Literal["own"]
    module: str = Field(pattern=r"^[A-Za-z_][\w.]*$", description="package.module, with VERSION and read.")
    options: dict[str, Any] = Field({}, description="What the module is told; part of the identity.")


Source = Annotated[
    CommonCrawl | Files | Jsonl | Parquet | Code | MediaWiki | Latex | Text | OwnSource, Field(discriminator="kind")
]


class Extract(Section):
    """HTML to text, in worker processes that may be killed."""

    mode: Literal["auto", "fast", "resiliparse", "trafilatura", "plain", "union"] = "auto"
    max_payload_bytes: int = Field(16 * 2**20, ge=1024, description="Decoded payloads above it end as too_large.")
    max_depth: int = Field(2000, ge=10, description="Elements nested deeper end the document as too_deep.")
    timeout_s: int = Field(30, ge=1, description="CPU seconds a document; tried once more alone at four times this.")
    memory_mb: int = Field(1536, ge=256, description="Address space of a worker above its start.")
    urls: str | None = where(
        None,
        description="URL rules: a name in rules/urls/ or a file; the digest of their lists is part of the identity.",
    )
    robots: Literal["respect", "ignore"] = Field("respect", description="Whether an owner's noindex or noai counts.")
    verify_digests: bool = where(
        False,
        description="Compare WARC records with the digests in their heads; what is wrong is counted and kept. When on, "
        "it is part of the identity.",
    )
    languages: Strings = Field(
        (),
        description="ISO 639 codes; where given, pages surely in others end as unwanted_language.",
    )


Share = Annotated[float, Field(ge=0, le=1, strict=False)]


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
        None, ge=0, le=1, strict=False, description="Documents below it end as low_quality; `mill quality threshold`."
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
    licence: str | None = Field(None, description="Licence of the set: told in manifest and report, decides nothing.")
    source: str | None = Field(None, description="Where the set comes from: told, decides nothing.")
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
        description="Items of so many words or more, too short for an n-gram, are looked for whole; 0: none.",
    )
    min_share: Share = Field(
        0.0, description="Share of an item's distinct n-grams that a document must hold; 0: one n-gram is enough."
    )
    action: Literal["drop", "cut", "flag"] = Field(
        "drop", description="drop the document; cut the item out of it; flag: keep it, the hit stands in decisions."
    )
    exempt_contexts: int = Field(
        0, ge=0, description="N-grams that stand in so many different contexts are common phrases, no hits; 0: off."
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


class Deduplicate(Section):
    """Exact and near duplicates, and repeated passages."""

    exact: Annotated[tuple[Literal["payload", "text", "url"], ...], Field(strict=False)] = Field(
        ("text",),
        description="By what documents are exact duplicates, in turn: payload bytes, normalised text, address.",
    )
    prefer: Annotated[tuple[Literal["longest", "oldest", "newest"], ...], Field(strict=False)] = Field(
        ("longest", "oldest"), description="Which of several copies is kept; ties end with doc_id."
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
        0, ge=0, description="Cut passages of so many words (50 or more) that occur before, as edits; 0: off."
    )
    memory_mb: int = where(2048, ge=1, description="Memory of a unit, about; what does not fit goes through the store.")

    @model_validator(mode="after")
    def _rows_are_whole(self) -> Deduplicate:
        if self.num_perm % self.bands:
            raise ValueError(f"num_perm {self.num_perm} is not a multiple of bands {self.bands}")
        if 0 < self.substring_words < 50:
            raise ValueError(f"substring_words {self.substring_words}: shorter passages than 50 words are quotations")
        if len(set(self.exact)) < len(self.exact) or {"oldest", "newest"} <= set(self.prefer):
            raise ValueError("exact and prefer name each key once, and one of oldest and newest")
        if self.policy == "within" and (self.index or self.against):
            raise ValueError('policy "within" compares with no other snapshot: it goes without index and against')
        return self


class Pack(Section):
    """Tokens and packed sequences."""

    seq_len: int = Field(1024, ge=16, description="Tokens a training sequence; a stored row has one more.")
    tokenizer: str | None = where(
        None, description="A given tokenizer.json; else one is trained. Its digest is part of the identity."
    )
    vocab_size: int = Field(8192, ge=512, le=2**20)
    sample_bytes: int = Field(32 * 2**20, ge=2**16, description="Text the tokenizer is trained on.")
    window_bytes: int = Field(256 * 2**20, ge=2**16, description="Extracted text of a shuffle window, about.")
    heldout_one_in: int = Field(100, ge=2, description="One duplicate group in so many goes to partition heldout.")


class Recipe(Section):
    """One dataset."""

    all_keys = "`mill recipe schema`, docs/reference/recipe.md"

    name: Name
    seed: int = Field(17, ge=0, le=2**53)
    source: dict[Name, Source] = Field(min_length=1)
    extract: Extract = Extract()
    language: Language = Language()
    judge: Judge = Judge()
    filter: Filter = Filter()
    decontaminate: Decontaminate = Decontaminate()
    deduplicate: Deduplicate = Deduplicate()
    pack: Pack = Pack()
    train: str | None = where(None, description="Training config that the platform uses when the dataset is published.")

    @model_validator(mode="after")
    def _partition_names(self) -> Recipe:
        if "heldout" in self.source:
            raise ValueError("a source may not be called heldout: that is the name of a partition")
        return self


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


def read_section(kind: type[S], path: str | Path, overrides: Sequence[str], noun: str) -> S:
    """Read a TOML file (or the name of one in `recipes/`) as a section; the same faults as of a recipe.

    Args:
        kind: the section that the whole file is.
        overrides: `key.path=value`, the value as TOML or a bare string.
        noun: what messages call the file.
    """
    file = find_file(path, "recipes", ".toml", noun)
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as err:
        raise UsageError(f"{path}: not a TOML file", str(err)) from err
    for override in overrides:
        _override(data, override)
    return parse_section(kind, data, str(path), noun)


def parse_recipe(data: Mapping[str, Any], origin: str) -> Recipe:
    """Check a recipe that is already a mapping; `origin` is named in messages."""
    return parse_section(Recipe, data, origin, "recipe")


def parse_section(kind: type[S], data: Mapping[str, Any], origin: str, noun: str) -> S:
    """Check a section that is already a mapping; `origin` and `noun` are named in messages."""
    try:
        return kind.model_validate(data)
    except ValidationError as err:
        faults = list(_faults(err, kind, noun))
        raise UsageError(
            f"{origin}: {len(faults)} fault{'s' if len(faults) > 1 else ''} in the {noun}",
            "\n".join(f"  {fault}" for fault in faults),
            f"All keys: {kind.all_keys}",
        ) from None


def find_file(path: str | Path, folder: str, suffix: str, noun: str) -> Path:
    """A file by path, or by its name in a folder of the repository."""
    given = Path(path)
    for candidate in (given, REPOSITORY / folder / f"{path}{suffix}", REPOSITORY / given):
        if candidate.is_file():
            return candidate
    known = sorted(p.stem for p in (REPOSITORY / folder).glob(f"*{suffix}"))
    raise NotFound(
        f"no {noun} {str(path)!r}",
        f"neither a file nor one of {', '.join(known)}",
        f"Give a path, or a name in {folder}/.",
    )


def recipe_schema() -> dict[str, Any]:
    """JSON schema of a recipe for editors (`definitions`, which draft-4 tools understand too)."""
    schema = Recipe.model_json_schema(ref_template="#/definitions/{model}")
    schema["definitions"] = schema.pop("$defs")
    return schema


def _override(data: dict[str, Any], text: str) -> None:
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise UsageError(f"--set {text!r}", "expected key.path=value, for example extract.mode=trafilatura")
    *parents, leaf = key.strip().split(".")
    for parent in parents:
        data = data.setdefault(parent, {})
        if not isinstance(data, dict):
            raise UsageError(f"--set {text!r}", f"{parent} is a value, not a section")
    try:
        data[leaf] = tomllib.loads(f"v = {value}")["v"]
    except tomllib.TOMLDecodeError:
        data[leaf] = value


def _faults(err: ValidationError, kind: type[Section], noun: str) -> Iterator[str]:
    for fault in err.errors(include_url=False):
        loc, given = fault["loc"], fault["input"]
        if loc[:1] == ("source",):  # pydantic names the kind of source after its name: source.crawl.common-crawl.root
            loc = loc[:2] + loc[3:]
        place = ".".join(str(part) for part in loc) or noun
        if fault["type"] == "extra_forbidden":
            known = _known_keys(kind, fault["loc"][:-1])
            near = difflib.get_close_matches(str(loc[-1]), known, n=1)
            yield f"{place}: unknown key" + (f'; did you mean "{near[0]}"?' if near else f"; known: {', '.join(known)}")
        elif fault["type"] == "missing":
            yield f"{place}: missing"
        else:
            shown = "" if isinstance(given, (dict, BaseModel)) else f", given {given!r}"
            yield f"{place}: {fault['msg'].removeprefix('Value error, ')}{shown}"


def _known_keys(section: type[Section], loc: Sequence[Any]) -> list[str]:
    """Keys of the section at a place below another, whose parts are fields, names, numbers and kinds of a union."""
    choices = [section]
    for part in loc:
        if len(choices) > 1:  # part is a name, a number, or says which of a union is meant
            choices = [c for c in choices if part in get_args(c.model_fields["kind"].annotation)] or choices
        elif part in choices[0].model_fields:
            choices = list(_sections(choices[0].model_fields[part].annotation))
    return sorted({key for choice in choices for key in choice.model_fields})


def _sections(annotation: Any) -> Iterator[type[Section]]:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation
    for inner in get_args(annotation):
        yield from _sections(inner)
