"""Long files: memory does not grow with them."""

from __future__ import annotations

import gzip
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from corpusmill.config import Files
from corpusmill.readers.outcomes import outcomes
from tasks.acquire import files
from tests.corpusmill.readers.archives import pages

BLOCK = 1000


def written(path: Path, records: int) -> Path:
    """A .warc.gz of a number of records: a block of a thousand again and again."""
    block = b"".join(gzip.compress(one, mtime=0) for one in pages(BLOCK))
    with path.open("wb") as out:
        for _ in range(records // BLOCK):
            out.write(block)
    return path


def measured(path: Path) -> tuple[int, int]:
    """(records, peak memory in KiB) of reading a file in a process of its own."""
    command = [sys.executable, "-m", "tests.corpusmill.readers.test_stream", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    count, peak = done.stdout.split()
    return int(count), int(peak)


def flat(tmp_path: Path, short: int, long: int) -> None:
    few, small = measured(written(tmp_path / "short.warc.gz", short))
    many, large = measured(written(tmp_path / "long.warc.gz", long))
    assert (few, many) == (short, long)
    assert large < 1.05 * small, f"{small} KiB at {short} records, {large} KiB at {long}"


def test_memory_is_flat(tmp_path: Path) -> None:
    flat(tmp_path, 1_000, 8_000)


def test_a_thousand_and_one_small_files_are_all_read(tmp_path: Path) -> None:
    for number, one in enumerate(pages(1001)):
        (tmp_path / f"{number}.warc.gz").write_bytes(gzip.compress(one))
    units = files.plan("small", Files(kind="files", root=str(tmp_path)), 17)
    found = [one for unit in units for one in outcomes(tmp_path / unit.locator)]
    assert len(units) == 1001
    assert {one.url for one in found if one.html} == {f"http://example.org/{i}" for i in range(1001)}


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_memory_is_flat_over_a_million_records(tmp_path: Path) -> None:
    flat(tmp_path, 100_000, 1_000_000)


if __name__ == "__main__":
    number = sum(1 for _ in outcomes(sys.argv[1]))
    print(number, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
