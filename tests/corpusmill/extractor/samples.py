"""Pages of the test data for parity tests: a few of every kind, the same each time."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from corpusmill.readers.outcomes import outcomes

ARCHIVES = ("mini-crawl/**/*.warc.gz", "warc-samples/**/*.warc.gz", "hostile/*.warc.gz")


def pages(data_dir: Path, per_archive: int, max_chars: int = 60_000) -> Iterator[tuple[str, bytes]]:
    """Name and UTF-8 of some pages of every archive."""
    for pattern in ARCHIVES:
        for path in sorted(data_dir.glob(pattern)):
            found = [one.html for one in outcomes(path) if one.html and len(one.html) <= max_chars]
            for number, html in enumerate(random.Random(path.name).sample(found, min(per_archive, len(found)))):
                yield f"{path.name} {number}", html.encode("utf-8", "replace")
