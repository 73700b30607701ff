"""Makes the store of tests/mill/test_formats.py in today's format: `python -m tests.mill.small_store FOLDER`.

Run once for each new format, before the next is begun; what lies in tests/fixtures is never made again.
"""

from __future__ import annotations

import gzip
import io
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from corpusmill.config import Recipe, parse_recipe
from corpusmill.dataset.manifest import FORMAT
from corpusmill.store import open_store
from tasks.chain import build
from tasks.ingest import ingest
from tests import golden

FIXTURES = Path(__file__).parents[1] / "fixtures"
KINDS = ["email", "ip", "phone", "card", "iban", "national_id", "api_key"]
MASKED = "Write to the keeper at keeper@lighthouse-harbour.org or call him on Sunday."


def make(folder: Path) -> Path:
    """Ingest and build a first snapshot, then build a second one against it; returns the store."""
    crawl = golden.write_crawl(folder / "crawl")
    pages = [golden.record("https://c.example/river", golden.page("river", 0))]
    for i, subject in enumerate(["mill", "quarry", "chapel", "bridge"]):
        pages.append(golden.record(f"https://c.example/{subject}", golden.page(subject, i, extra=MASKED)))
    (crawl / "second").mkdir()
    (crawl / "second" / "three.warc.gz").write_bytes(b"".join(pages))
    store = open_store(folder / "store", create=True)
    first = recipe(crawl, "first", "warc/*.warc.gz")
    ingest(first, store, run)
    build(first, store, run)
    build(recipe(crawl, "second", "second/*.warc.gz"), store, run)
    return folder / "store"


def run(stage: str, fn: Any, units: Any) -> list[Any]:
    """Every unit in this process."""
    return [fn(unit) for unit in units]


def recipe(crawl: Path, snapshot: str, pattern: str) -> Recipe:
    """With every section that a manifest can have: benchmarks, exempted n-grams, an index, masks, a held-out part."""
    return parse_recipe(
        {
            "name": "small",
            "source": {"made": {"kind": "files", "root": str(crawl), "pattern": pattern, "snapshot": snapshot}},
            "decontaminate": {
                "root": str(crawl),
                "exempt_contexts": 5,
                "benchmark": [{"name": "lamps", "file": "bench.jsonl", "fields": ["question"]}],
            },
            "deduplicate": {"min_jaccard": 0.7, "index": True, "against": "small"},
            "judge": {"personal_data": {"kinds": KINDS}},
            "pack": {"seq_len": 64, "vocab_size": 512, "heldout_one_in": 4},
        },
        "small",
    )


def pack(store: Path, to: Path) -> None:
    """The store as an archive whose bytes say neither when nor by whom it was made."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for path in sorted(store.rglob("*")):
            if path.is_file() and path.relative_to(store).parts[0] not in ("runs", "tmp"):
                entry = tarfile.TarInfo(f"store/{path.relative_to(store)}")
                entry.size, entry.mode = path.stat().st_size, 0o644
                archive.addfile(entry, io.BytesIO(path.read_bytes()))
    to.write_bytes(gzip.compress(data.getvalue(), mtime=0))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        pack(make(Path(scratch)), Path(sys.argv[1]) / f"format-{FORMAT}.tar.gz")
