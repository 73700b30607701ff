"""Where documents come from: one section for each kind of source."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from corpusmill import languages
from corpusmill.config.section import MODULE, Fraction, Name, Section, Strings, where


class Select(Section):
    """Which pages of a crawl are read, by its index: those that match every list that is given."""

    domains: Strings = Field((), description="Hosts and all their subdomains: example.org includes www.example.org.")
    languages: Strings = Field((), description="ISO 639-3 codes; the page's main language must be one of them.")
    mimes: Strings = Field((), description="Media types, as detected by the crawler.")
    statuses: Annotated[tuple[int, ...], Field(strict=False)] = Field((), description="HTTP statuses.")

    @field_validator("languages")
    @classmethod
    def _codes_of_the_index(cls, codes: tuple[str, ...]) -> tuple[str, ...]:
        if said := languages.unknown(codes, languages.INDEX_CODES):
            raise ValueError(f"the index knows no language {said}")
        return codes


class CommonCrawl(Section):
    """A tree in the layout of Common Crawl, in a folder, on a web server or in a bucket."""

    kind: Literal["common-crawl"]
    root: str = where(
        "https://data.commoncrawl.org",
        description="Folder, file:// or http(s):// URL, or s3://bucket/prefix; s3://anonymous@bucket: unsigned.",
    )
    crawls: Strings = Field(
        min_length=1, description='Crawl ids; "newest"; "A..B": all from A to B, where A or B may be omitted.'
    )
    files: Literal["warc", "wet"] = "warc"
    fraction: Fraction | None = Field(
        None, description="Share of each crawl's files to read, sampled by the recipe's seed."
    )
    max_files: int | None = Field(
        None, ge=1, description="Maximum number of files per crawl, sampled by the recipe's seed."
    )
    select: Select | None = Field(
        None, description="Read single pages, found by the crawl's index; files are then index files (WARC only)."
    )

    @model_validator(mode="after")
    def _index_is_of_warcs(self) -> CommonCrawl:
        if self.select is not None and self.files != "warc":
            raise ValueError("select reads pages from WARC files: the index does not list WET files")
        return self


class Folder(Section):
    """A source whose files are in a folder or bucket."""

    kind: str
    root: str = where(description="Folder, or s3://bucket/prefix, with the files.")
    pattern: str | None = Field(None, description="Files below root, as a glob; if absent, all that this kind reads.")
    snapshot: Name = Field("files", description="Name of this state of the files.")
    fraction: Fraction | None = Field(None, description="Share of the files to read, sampled by the recipe's seed.")
    max_files: int | None = Field(None, ge=1, description="Maximum number of files, sampled by the recipe's seed.")


class Files(Folder):
    """A folder of WARC, WET or ARC files; plain, .gz, .zst or .lz4."""

    kind: Literal["files"]
    files: Literal["warc", "wet"] = "warc"


def usual(what: str, *names: str) -> Any:
    """The name of an optional column; one of the usual name is taken where the recipe gives none."""
    return Field(None, description=f"Column with the {what}; if absent, `{'`, else `'.join(names)}`.")


class Rows(Folder):
    """A source whose files have rows, and the meaning of their columns. `a.b` is column b within column a."""

    text: str = Field("text", description="Column with the text.")
    id: str | None = usual("row's own id", "id")
    url: str | None = usual("URL", "url")
    date: str | None = usual("date, which is stored in one form", "date")
    title: str | None = usual("title", "title")
    author: str | None = usual("author or authors", "author")
    licence: str | None = usual("licence", "licence", "license")
    columns: Strings = Field((), description="Further columns to keep with each document; others are counted.")
    day_first: bool = Field(False, description="Whether 03/04/2020 is in April.")


class Jsonl(Rows):
    """A folder of JSON lines: one object with a text per line; plain, .gz, .zst, .bz2 or .xz.

    Without a pattern: .jsonl, .jsonlines, .ndjson, and compressed .json.
    """

    kind: Literal["jsonl"]


class Parquet(Rows):
    """A folder of Parquet files, as in Hugging Face data sets on disk: one text per row."""

    kind: Literal["parquet"]


PERMISSIVE = (
    "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "ISC", "MIT", "MIT-0", "NCSA",
    "PostgreSQL", "PSF-2.0", "Python-2.0", "UPL-1.0", "Unlicense", "Zlib",
)  # fmt: skip
"""Licences that require no more than a notice."""


class Code(Folder):
    """Source code: tarballs (sdists, releases) and folders (checkouts); each file with its language and licence."""

    kind: Literal["code"]
    pattern: str = Field("*", description='Tarballs and folders below root, as a glob; "." is the root itself.')
    licences: Strings = Field(PERMISSIVE, description='Accepted SPDX ids; ["*"] accepts all, including unknown ones.')
    languages: Strings = Field((), description="Accepted languages, by Pygments' short names; none means all.")


class MediaWiki(Folder):
    """Dumps of MediaWiki (pages-articles.xml, plain, .bz2, .gz, .xz or .zst): articles without their markup."""

    kind: Literal["mediawiki"]
    namespaces: Annotated[tuple[int, ...], Field(strict=False)] = Field((0,), description="Accepted namespaces.")


class Latex(Folder):
    """Papers in LaTeX in the layout of arXiv: tarballs, single files, or tarballs of those."""

    kind: Literal["latex"]


class Text(Folder):
    """Plain text and books (.txt, .text), one document per file; plain, .gz, .zst, .bz2 or .xz."""

    kind: Literal["text"]


class OwnSource(Folder):
    """A source of your own: a module outside this repository that reads the files (docs/how-to/add-a-source.md)."""

    kind: Literal["own"]
    module: str = Field(pattern=MODULE, description="package.module that defines VERSION and read.")
    options: dict[str, Any] = Field({}, description="Options for the module; part of the dataset's identity.")


Source = Annotated[
    CommonCrawl | Files | Jsonl | Parquet | Code | MediaWiki | Latex | Text | OwnSource, Field(discriminator="kind")
]
