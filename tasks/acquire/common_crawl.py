"""A tree in the shape of Common Crawl: `crawl-data/<crawl>/{warc,wet}.paths.gz` list the files of each crawl."""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib

from corpusmill.config import CommonCrawl
from corpusmill.errors import NotFound, Unavailable
from tasks.acquire.transport import read
from tasks.acquire.units import SourceUnit

PUBLIC_ROOT = "https://data.commoncrawl.org"
PUBLIC_INDEX = "https://index.commoncrawl.org"  # the public data host does not serve collinfo.json itself


def plan(name: str, config: CommonCrawl, seed: int) -> list[SourceUnit]:
    """The files of the crawls named, or of the newest; `max_files` draws by a keyed hash of the locator.

    Raises:
        NotFound: no such crawl, or no such tree.
        Unavailable: the server does not answer, or a list of paths is damaged.
    """
    units = []
    for crawl in config.crawls:
        crawl = newest(config.root) if crawl == "newest" else crawl
        locators = sorted(set(_paths(config.root, f"crawl-data/{crawl}/{config.files}.paths.gz")))
        if config.max_files is not None:
            locators = sorted(locators, key=lambda locator: _draw(locator, seed))[: config.max_files]
        units += [SourceUnit(name, crawl, locator, config.files) for locator in locators]
    return units


def newest(root: str) -> str:
    """Id of the newest crawl of a tree, by its collinfo.json."""
    place = PUBLIC_INDEX if root.rstrip("/") == PUBLIC_ROOT else root
    try:
        ids = [entry["id"] for entry in json.loads(read(place, "collinfo.json"))]
    except (ValueError, TypeError, KeyError) as err:
        raise Unavailable(f"collinfo.json at {place} is not a list of crawls", str(err)) from err
    if not ids:
        raise NotFound(f"collinfo.json at {place} lists no crawl")
    return str(max(ids))


def _paths(root: str, locator: str) -> list[str]:
    try:
        text = gzip.decompress(read(root, locator)).decode("utf-8")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as err:
        raise Unavailable(f"{locator} at {root} is damaged", str(err), "Fetch it again.") from err
    return [line.strip() for line in text.split("\n") if line.strip()]


def _draw(locator: str, seed: int) -> bytes:
    return hashlib.blake2b(locator.encode("utf-8"), key=f"files|{seed}".encode()).digest()
