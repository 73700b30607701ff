"""A tree in the shape of Common Crawl: `crawl-data/<crawl>/{warc,wet}.paths.gz` list the files of each crawl.

With `select`, units are the files of the crawl's index instead (index/cdx.py), of which only the parts that may
speak of the domains wanted are read, where the crawl has a `cluster.idx` (cluster.py). The lists do not say how large
files are; those of more than 256 MiB are cut into blocks as in tasks/acquire/files.py, when that is known.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO

from corpusmill.config import CommonCrawl, Select
from corpusmill.errors import NotFound, Unavailable
from corpusmill.plain_text import human_bytes
from corpusmill.readers.outcomes import Outcome, ReadOptions
from corpusmill.readers.warc import FileFacts
from tasks.acquire import files, notices
from tasks.acquire.fetch.transport import Fetched, exists, read_range
from tasks.acquire.fetch.transport import read as read_file
from tasks.acquire.index import cdx, cluster
from tasks.acquire.streams import GZIP, Damage, decompressed, whole
from tasks.acquire.tree.sample import sampled
from tasks.acquire.units import SourceUnit

LIBRARIES = ("trafilatura", "lxml", "resiliparse", "fastwarc")
PUBLIC_ROOT = "https://data.commoncrawl.org"
PUBLIC_INDEX = "https://index.commoncrawl.org"  # the public data host does not serve collinfo.json itself
MAX_PACKED_BYTES, MAX_LIST_BYTES, MAX_LINES, MAX_JSON_BYTES = 16 * 2**20, 64 * 2**20, 10**6, 4 * 2**20
"""Of a list of files, packed and not, and of the list of crawls. Lists have up to 13 MB in 100,000 lines."""
NEWEST, RANGE = "newest", ".."


def plan(name: str, config: CommonCrawl, seed: int) -> list[SourceUnit]:
    """The files of the crawls named; `fraction` and `max_files` draw by a keyed hash of the locator.

    A crawl that is announced, but whose list of files is not there yet, is left out, and `notices` says so.

    Raises:
        NotFound: no such crawl, or no such tree.
        Unavailable: the server does not answer, or a list of paths is damaged.
    """
    return [unit for crawl in crawls(config) for unit in of_crawl(name, config, crawl, seed) or ()]


def of_crawl(name: str, config: CommonCrawl, crawl: str, seed: int) -> list[SourceUnit] | None:
    """The files of one crawl; None where it is announced only: it is not asked for by its name, and has no list yet.

    Common Crawl names a crawl in collinfo.json before all of its lists are there; `notices` says so.
    """
    try:
        return _units(name, config, crawl, seed)
    except NotFound as err:
        if crawl in config.crawls:
            raise
        notices.say(f"{crawl} of source {name!r} is announced but not available yet ({err.what}): skipped for now")
        return None


def _units(name: str, config: CommonCrawl, crawl: str, seed: int) -> list[SourceUnit]:
    if config.select is None:
        locators = _paths(config.root, f"crawl-data/{crawl}/{config.files}.paths.gz")
        drawn = sampled(locators, seed, config.fraction, config.max_files)
        return [SourceUnit(name, crawl, locator, config.files) for locator in drawn]
    locators, cluster_idx = _index_files(config.root, crawl)
    drawn = sampled(locators, seed, config.fraction, config.max_files)
    parts = _parts(name, config, config.select, cluster_idx) if cluster_idx and config.select.domains else None
    if parts is None:
        return [SourceUnit(name, crawl, locator, "cdx") for locator in drawn]
    return [SourceUnit(name, crawl, it, "cdx-parts", ranges=parts[it]) for it in drawn if it in parts]


def _parts(name: str, config: CommonCrawl, select: Select, cluster_idx: str) -> dict[str, cluster.Ranges] | None:
    """Index file -> what of it may speak of the domains selected; None: the whole index has to be read."""
    folder = cluster_idx.removesuffix(cluster.NAME)
    try:
        with cluster.opened(config.root, cluster_idx, len(select.domains)) as (file, size):
            return {folder + it: ranges for it, ranges in cluster.members_of(file, size, select.domains).items()}
    except (NotFound, FileNotFoundError):
        return None
    except cluster.BadCluster as err:
        notices.say(f"source {name!r}: {cluster_idx} is damaged ({err}): the whole index is read instead")
        return None


def reading(config: CommonCrawl) -> dict[str, object]:
    """Which pages are read; nothing where whole files are."""
    return {} if config.select is None else {"version": cdx.VERSION, "select": config.select.what()}


def read(
    unit: SourceUnit, file: Fetched, config: CommonCrawl, options: ReadOptions, facts: FileFacts
) -> Iterator[Outcome]:
    """One outcome for every content record of a WARC or WET file, or for every page that an index file selects."""
    if config.select is None:
        return files.read(unit, file, config, options, facts)
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
        ids = [str(entry["id"]) for entry in json.loads(read_file(place, "collinfo.json", MAX_JSON_BYTES))]
    except (ValueError, TypeError, KeyError, RecursionError) as err:
        raise Unavailable(f"collinfo.json at {place} is not a list of crawls", str(err)) from err
    if not ids:
        raise NotFound(f"collinfo.json at {place} lists no crawl")
    return sorted(ids)


def _index_files(root: str, crawl: str) -> tuple[list[str], str | None]:
    """The files of a crawl's index, and what they are searched by: as cc-index.paths.gz lists them, or else those of a
    small tree.

    Raises:
        NotFound: there is none.
    """
    folder = f"cc-index/collections/{crawl}/indexes"
    try:
        listed = _paths(root, f"crawl-data/{crawl}/cc-index.paths.gz")
    except NotFound:
        only = f"{folder}/cdx-00000.gz"
        if not exists(root, only):
            raise NotFound(
                f"no index of {crawl} at {root}",
                f"neither crawl-data/{crawl}/cc-index.paths.gz nor {only} exists",
                "Check the crawl's id. Without select, whole files are read.",
            ) from None
        return [only], f"{folder}/{cluster.NAME}"
    by = next((path for path in listed if path.endswith(f"/{cluster.NAME}")), None)
    return [path for path in listed if cdx.IS_INDEX.search(path)], by


def _paths(root: str, locator: str) -> list[str]:
    packed = read_file(root, locator, MAX_PACKED_BYTES)
    try:
        if not packed.startswith(GZIP):
            raise Damage("damaged")
        data = whole(decompressed(BytesIO(packed)), MAX_LIST_BYTES)
        if data is None or data.count(b"\n") > MAX_LINES:
            raise Damage("too_large")
        text = data.decode("utf-8")
    except (Damage, UnicodeDecodeError) as err:
        most = f"at most {MAX_LINES:,} lines in {human_bytes(MAX_LIST_BYTES)}, packed by gzip"
        raise Unavailable(
            f"{locator} at {root} is damaged or no list", f"{err}; expected {most}", "Fetch it again."
        ) from err
    return [line.strip() for line in text.split("\n") if line.strip()]
