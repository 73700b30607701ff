"""A tree of small crawls to ingest: three files a crawl, four pages and a redirect in each file."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from corpusmill.config import Recipe, parse_recipe
from corpusmill.engine.local import Engine
from corpusmill.store import Store
from tasks.ingest import Ingested, ingest
from tests.golden import SUBJECTS, page, record

OLD, NEW = "CC-MAIN-2026-30", "CC-MAIN-2026-34"
FILES, PAGES = 3, 4


def locator(crawl: str, number: int) -> str:
    return f"crawl-data/{crawl}/segments/1/warc/{number:05d}.warc.gz"


def add_crawl(root: Path, crawl: str, files: int = FILES) -> None:
    """Write the files of a crawl, the list of them, and its entry in collinfo.json (the newest first)."""
    (root / f"crawl-data/{crawl}").mkdir(parents=True)
    for number in range(files):
        host = f"https://{crawl.lower()}.example/{number}"
        made = [record(f"{host}/{s}", page(s, number + i)) for i, s in enumerate(SUBJECTS[:PAGES])]
        made.append(record(f"{host}/gone", "moved", status="301 Moved Permanently"))
        file = root / locator(crawl, number)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"".join(made))
    listed = "".join(f"{locator(crawl, number)}\n" for number in range(files))
    (root / f"crawl-data/{crawl}/warc.paths.gz").write_bytes(gzip.compress(listed.encode()))
    info = root / "collinfo.json"
    known = json.loads(info.read_text()) if info.exists() else []
    info.write_text(json.dumps([{"id": crawl}, *known]))


def recipe(root: str | Path, *crawls: str, **extract: object) -> Recipe:
    source = {"kind": "common-crawl", "root": str(root), "crawls": list(crawls or ("newest",))}
    return parse_recipe({"name": "web", "source": {"crawl": source}, "extract": extract}, "test")


def run(wanted: Recipe, store: Store) -> Ingested:
    """One ingestion in this process."""
    with Engine(1) as engine:
        return ingest(wanted, store, lambda stage, fn, units: engine.map(fn, units))
