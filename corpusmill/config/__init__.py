"""Recipes: what is built, typed and frozen, read from TOML; all faults are reported at once.

A field is `what` (it decides bytes, is hashed into unit keys and stands in the manifest) or `where` (it says where and
how the work runs, and is never hashed). `where` fields are marked with `where()`.
"""

from corpusmill.config.faults import Fault
from corpusmill.config.judging import Floor, Judge, Own, PersonalData, PersonalKind
from corpusmill.config.overlap import Benchmark, Decontaminate, Deduplicate
from corpusmill.config.reading import find_file, parse_section, read_section
from corpusmill.config.recipe import (
    Extract,
    Pack,
    Recipe,
    language_codes,
    load_recipe,
    parse_recipe,
    read_recipe,
    recipe_schema,
)
from corpusmill.config.section import Name, Section, is_where, where
from corpusmill.config.sources import (
    PERMISSIVE,
    Code,
    CommonCrawl,
    Files,
    Jsonl,
    Latex,
    MediaWiki,
    OwnSource,
    Parquet,
    Rows,
    Select,
    Source,
    Text,
)

__all__ = [
    "PERMISSIVE",
    "Benchmark",
    "Code",
    "CommonCrawl",
    "Decontaminate",
    "Deduplicate",
    "Extract",
    "Fault",
    "Files",
    "Floor",
    "Jsonl",
    "Judge",
    "Latex",
    "MediaWiki",
    "Name",
    "Own",
    "OwnSource",
    "Pack",
    "Parquet",
    "PersonalData",
    "PersonalKind",
    "Recipe",
    "Rows",
    "Section",
    "Select",
    "Source",
    "Text",
    "find_file",
    "is_where",
    "language_codes",
    "load_recipe",
    "parse_recipe",
    "parse_section",
    "read_recipe",
    "read_section",
    "recipe_schema",
    "where",
]
