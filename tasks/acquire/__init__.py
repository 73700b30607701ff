"""Sources: which files a recipe names, and how to get at one. A source is one file in this folder with `plan`.

A file is known by its locator, the path below the source's root; root, scheme and host are not part of its identity.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from corpusmill.config import CommonCrawl, Recipe
from tasks.acquire import common_crawl, files
from tasks.acquire.transport import Fetched, fetch
from tasks.acquire.units import SourceUnit

__all__ = ["Fetched", "SourceUnit", "fetched", "plan"]


def plan(recipe: Recipe) -> list[SourceUnit]:
    """Every file of every source, in the order of source, snapshot and locator.

    Raises:
        NotFound: a root or crawl that does not exist.
        Unavailable: a server that does not answer.
    """
    units: list[SourceUnit] = []
    for name, source in recipe.source.items():
        if isinstance(source, CommonCrawl):
            units += common_crawl.plan(name, source, recipe.seed)
        else:
            units += files.plan(name, source)
    return sorted(set(units), key=lambda unit: (unit.source, unit.snapshot, unit.locator))


@contextmanager
def fetched(unit: SourceUnit, recipe: Recipe) -> Iterator[Fetched]:
    """One file as a local file with its sha256; what was downloaded is removed at the end.

    Raises:
        Unavailable: the listed file is missing or cannot be read.
    """
    root = recipe.source[unit.source].root
    with fetch(root, unit.locator) as file:
        yield file
