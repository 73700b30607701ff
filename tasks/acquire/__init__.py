"""Sources: which files a recipe names, how to get at one, and what is in it. A source is one file in this folder.

A source is a module with `LIBRARIES`, `plan`, `reading` and `read` (see `SourceModule`). A file is known by its
locator, the path below the source's root; root, scheme and host are not part of its identity.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from corpusmill.config import Recipe
from corpusmill.readers.outcomes import Outcome, ReadOptions
from corpusmill.readers.warc import FileFacts
from tasks.acquire import code, common_crawl, files, jsonl, latex, mediawiki, parquet, text
from tasks.acquire.transport import Fetched, fetch
from tasks.acquire.units import SourceUnit
from tasks.units import libraries as installed

__all__ = ["Fetched", "SourceUnit", "fetched", "identity", "libraries", "plan", "read"]


class SourceModule(Protocol):
    """What a file in this folder has to have; `config` is the recipe's section of the source."""

    @property
    def LIBRARIES(self) -> tuple[str, ...]:
        """Libraries that decide what is read, by their names on the package index."""

    def plan(self, name: str, config: Any, seed: int) -> list[SourceUnit]:
        """Every unit of the source called `name`."""

    def reading(self, config: Any) -> dict[str, object]:
        """What decides, besides the unit's bytes, what is read from them: a version and keys of the section."""

    def read(
        self, unit: SourceUnit, file: Fetched, config: Any, options: ReadOptions, facts: FileFacts
    ) -> Iterator[Outcome]:
        """Exactly one outcome for every document or record that begins in the unit; never raises for its content."""


SOURCES: dict[str, SourceModule] = {
    "common-crawl": common_crawl,
    "files": files,
    "jsonl": jsonl,
    "parquet": parquet,
    "code": code,
    "mediawiki": mediawiki,
    "latex": latex,
    "text": text,
}
"""kind -> its module."""


def plan(recipe: Recipe) -> list[SourceUnit]:
    """Every file (or block of one) of every source, in the order of source, snapshot, locator and block.

    Raises:
        NotFound: a root or crawl that does not exist.
        Unavailable: a server that does not answer.
    """
    units: set[SourceUnit] = set()
    for name, source in recipe.source.items():
        units.update(SOURCES[source.kind].plan(name, source, recipe.seed))
    return sorted(units, key=lambda unit: (unit.source, unit.snapshot, unit.locator, unit.block))


@contextmanager
def fetched(unit: SourceUnit, recipe: Recipe) -> Iterator[Fetched]:
    """One file as a local file with the sha256 of the unit's bytes; what was downloaded is removed at the end.

    Raises:
        Unavailable: the listed file is missing or cannot be read.
    """
    with fetch(recipe.source[unit.source].root, unit.locator, unit.begin, unit.end) as file:
        yield file


def read(unit: SourceUnit, file: Fetched, recipe: Recipe, options: ReadOptions, facts: FileFacts) -> Iterator[Outcome]:
    """Exactly one outcome for every document or record of the unit, in file order.

    Args:
        unit: what to read.
        file: as `fetched` gave it.
        recipe: whose source it is.
        options: bounds and policy.
        facts: filled with what else was met.

    Raises:
        OSError: the file cannot be read; never for what stands in it.
        Unavailable: other files that it names are away.
    """
    source = recipe.source[unit.source]
    return SOURCES[source.kind].read(unit, file, source, options, facts)


def identity(unit: SourceUnit, recipe: Recipe) -> dict[str, object]:
    """What names the unit and the way it is read, for the keys of stored work."""
    source = recipe.source[unit.source]
    reading = SOURCES[source.kind].reading(source)
    return {**unit.identity(), "reading": reading} if reading else unit.identity()


def libraries(unit: SourceUnit, recipe: Recipe) -> dict[str, str]:
    """Installed versions of the libraries that decide what is read."""
    return installed(SOURCES[recipe.source[unit.source].kind].LIBRARIES)
