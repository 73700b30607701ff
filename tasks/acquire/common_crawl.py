"""A tree in the shape of Common Crawl: `crawl-data/<crawl>/{warc,wet}.paths.gz` list the files of each crawl.

With `select`, units are the files of the crawl's index instead (tasks/acquire/cdx.py). WARC files are not cut into
blocks: the crawl makes them 1 GB large, and their sizes are not listed, so a plan would ask for each of 100,000.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator

from corpusmill.config import CommonCrawl
from corpusmill.errors import NotFound, Unavailable
from corpusmill.readers.outcomes import Outcome, ReadOptions, outcomes
from corpusmill.readers.warc import FileFacts
from tasks.acquire import cdx
from tasks.acquire.sample import sampled
from tasks.acquire.transport import Fetched, read_range
from tasks.acquire.transport import read as read_file
from tasks.acquire.units import SourceUnit

LIBRARIES = ("trafilatura", "lxml", "resiliparse", "fastwarc")
PUBLIC_ROOT = "https://data.commoncrawl.org"
PUBLIC_INDEX = "https://index.commoncrawl.org"  # the public data host does not serve collinfo.json itself
NEWEST, RANGE = "newest", ".."


def plan(name: str, config: CommonCrawl, seed: int) -> list[SourceUnit]:
    """The files of the crawls named; `fraction` and `max_files` draw by a keyed hash of the locator.

    Raises:
        NotFound: no such crawl, or no such tree.
        Unavailable: the server does not answer, or a list of paths is damaged.
    """
    units = []
    for crawl in crawls(config):
        kind: str = config.files
        if config.select is None:
            locators = _paths(config.root, f"crawl-data/{crawl}/{config.files}.paths.gz")
        else:
            kind, locators = "cdx", _index_files(config.root, crawl)
        drawn = sampled(locators, seed, config.fraction, config.max_files)
        units += [SourceUnit(name, crawl, locator, kind) for locator in drawn]
    return units


def reading(config: CommonCrawl) -> dict[str, object]:
    """Which pages are read; nothing where whole files are."""
    return {} if config.select is None else {"version": cdx.VERSION, "select": config.select.what()}


def read(
    unit: SourceUnit, file: Fetched, config: CommonCrawl, options: ReadOptions, facts: FileFacts
) -> Iterator[Outcome]:
    """One outcome for every content record of a WARC or WET file, or for every page that an index file selects."""
    if config.select is None:
        return outcomes(file.path, options, facts)
    return cdx.read(file, config.select, lambda *place: read_range(config.root, *place), options, facts)


def crawls(config: CommonCrawl) -> list[str]:
    """Ids of the crawls that a recipe names, each once: single ones, "newest", and ranges "A..B".

    Raises:
        NotFound: the tree lists no crawl, or none in a range.
    """
    found: dict[str, None] = {}
    for named in config.crawls:
        if named == NEWEST:
            found[newest(config.root)] = None
        elif RANGE in named:
            first, _, last = named.partition(RANGE)
            inside = [crawl for crawl in _known(config.root) if first <= crawl and (not last or crawl <= last)]
            if not inside:
                raise NotFound(f"no crawl in {named!r}", f"collinfo.json at {config.root} lists none")
            found.update(dict.fromkeys(inside))
        else:
            found[named] = None
    return list(found)


def newest(root: str) -> str:
    """Id of the newest crawl of a tree, by its collinfo.json."""
    return _known(root)[-1]


def _known(root: str) -> list[str]:
    """Ids of all crawls of a tree, oldest first: they are called after year and week."""
    place = PUBLIC_INDEX if root.rstrip("/") == PUBLIC_ROOT else root
    try:
        ids = [str(entry["id"]) for entry in json.loads(read_file(place, "collinfo.json"))]
    except (ValueError, TypeError, KeyError) as err:
        raise Unavailable(f"collinfo.json at {place} is not a list of crawls", str(err)) from err
    if not ids:
        raise NotFound(f"collinfo.json at {place} lists no crawl")
    return sorted(ids)


def _index_files(root: str, crawl: str) -> list[str]:
    """The files of a crawl's index: as cc-index.paths.gz lists them, or else the one of a small tree."""
    try:
        listed = _paths(root, f"crawl-data/{crawl}/cc-index.paths.gz")
    except NotFound:
        return [f"cc-index/collections/{crawl}/indexes/cdx-00000.gz"]
    return [path for path in listed if cdx.IS_INDEX.search(path)]


def _paths(root: str, locator: str) -> list[str]:
    try:
        text = gzip.decompress(read_file(root, locator)).decode("utf-8")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as err:
        raise Unavailable(f"{locator} at {root} is damaged", str(err), "Fetch it again.") from err
    return [line.strip() for line in text.split("\n") if line.strip()]
