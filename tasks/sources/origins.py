"""Origins of a dataset (corpusmill/dataset/origins.py): noted at publication, read by `mill verify --sources`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from corpusmill.config import CommonCrawl, Recipe, parse_recipe
from corpusmill.dataset import origins
from corpusmill.dataset.manifest import Manifest
from corpusmill.errors import NotFound
from corpusmill.store import Store
from tasks import acquire
from tasks.acquire.tree.listing import Listing
from tasks.acquire.tree.small_files import together
from tasks.sources import changed


def keep(digest: str, recipe: Recipe, listings: Sequence[Listing], store: Store) -> None:
    """Note from where a dataset was made, and what its sources listed."""
    said = {"name": recipe.name, "seed": recipe.seed, "source": {n: _where(s) for n, s in recipe.source.items()}}
    last = {listing.source: listing.to_json() for listing in listings}
    origins.keep(digest, {"recipe": said, "listings": [last[name] for name in sorted(last)]}, store)


def changed_files(digest: str, manifest: Manifest, store: Store) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """`source/locator` of the files that have other bytes than the dataset was made of, and of those that are gone.

    Raises:
        NotFound: the store does not know where the files were, or their folder is gone.
        Unavailable: a file cannot be read.
    """
    recipe = _at(_recipe(digest, store), manifest)
    read = changed.by_place(manifest.inputs)
    units = [unit for unit in acquire.single(recipe, store) if set(changed.places_of(unit)) <= read.keys()]
    here = {place for unit in units for place in changed.places_of(unit)}
    gone = changed.names(place for place in read if place not in here)
    return changed.changed(together(units), manifest.inputs, recipe, store), gone


def _recipe(digest: str, store: Store) -> Recipe:
    said = origins.newest(digest, store)
    if said is None:
        raise NotFound(
            f"the store does not know where the files of {digest[:12]} were",
            f"there is no sound {origins.FOLDER}{digest}.<n>.json",
            "Build or ingest it again: finished units do not run again.",
        )
    return parse_recipe(said["recipe"], origins.FOLDER)


def _at(recipe: Recipe, manifest: Manifest) -> Recipe:
    """The recipe for the snapshots of the dataset alone: another one may be the newest crawl by now."""
    read = {name: tuple(sorted({f.snapshot for f in manifest.inputs if f.source == name})) for name in recipe.source}
    sources = {
        name: source.model_copy(update={"crawls": read[name]} if isinstance(source, CommonCrawl) else {})
        for name, source in recipe.source.items()
        if read[name]
    }
    return recipe.model_copy(update={"source": sources})


def _where(source: Any) -> dict[str, Any]:
    """A section of a source as JSON: a folder by its whole path, a URL without passwords and signatures."""
    said: dict[str, Any] = source.model_dump(mode="json", exclude_none=True)
    root = said["root"]
    if "://" not in root:
        return {**said, "root": str(Path(root).absolute())}
    parts = urlsplit(root)
    if parts.scheme in ("http", "https"):
        said["root"] = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
    return said
