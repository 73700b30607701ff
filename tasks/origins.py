"""Where the files of a dataset were, for `mill verify --sources`: kept under `runs/`, since no digest may depend on it.

`runs/origins/<manifest>.<n>.json`; the highest n is that of the newest run which published the dataset from elsewhere.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from corpusmill.config import CommonCrawl, Recipe, parse_recipe
from corpusmill.dataset.manifest import Manifest
from corpusmill.errors import CheckFailed, NotFound
from corpusmill.store import Store
from corpusmill.store.receipts import seal, unseal
from tasks import acquire, changed

FOLDER = "runs/origins/"


def keep(digest: str, recipe: Recipe, store: Store) -> None:
    """Note from where a dataset was made, unless the newest note of it says so."""
    said = {"name": recipe.name, "seed": recipe.seed, "source": {n: _where(s) for n, s in recipe.source.items()}}
    names = _notes(digest, store)
    number = len(names)
    if not names or _said(names[-1], store) != said:
        while not store.create(f"{FOLDER}{digest}.{(number := number + 1)}.json", seal({"recipe": said})):
            pass  # another run took the number


def changed_files(digest: str, manifest: Manifest, store: Store) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """`source/locator` of the files that have other bytes than the dataset was made of, and of those that are gone.

    Raises:
        NotFound: the store does not know where the files were, or their folder is gone.
        Unavailable: a file cannot be read.
    """
    recipe = _at(_recipe(digest, store), manifest)
    units = acquire.plan(recipe, store)
    here = {changed.place_of(unit) for unit in units}
    gone = changed.names(place for place in changed.by_place(manifest.inputs) if place not in here)
    return changed.changed(units, manifest.inputs, recipe, store), gone


def _recipe(digest: str, store: Store) -> Recipe:
    names = _notes(digest, store)
    said = _said(names[-1], store) if names else None
    if said is None:
        raise NotFound(
            f"the store does not know where the files of {digest[:12]} were",
            f"there is no sound {FOLDER}{digest}.<n>.json",
            "Build or ingest it again: finished units do not run again.",
        )
    return parse_recipe(said, names[-1])


def _at(recipe: Recipe, manifest: Manifest) -> Recipe:
    """The recipe for the snapshots of the dataset alone: another one may be the newest crawl by now."""
    read = {name: tuple(sorted({f.snapshot for f in manifest.inputs if f.source == name})) for name in recipe.source}
    sources = {
        name: source.model_copy(update={"crawls": read[name]} if isinstance(source, CommonCrawl) else {})
        for name, source in recipe.source.items()
        if read[name]
    }
    return recipe.model_copy(update={"source": sources})


def _said(name: str, store: Store) -> dict[str, Any] | None:
    try:
        said: dict[str, Any] = unseal(store.get(name), name)["recipe"]
    except CheckFailed:  # a damaged note is none
        return None
    return said


def _notes(digest: str, store: Store) -> list[str]:
    """The notes of a dataset, oldest first."""
    return sorted(store.list(f"{FOLDER}{digest}."), key=lambda name: int(name.split(".")[-2]))


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
