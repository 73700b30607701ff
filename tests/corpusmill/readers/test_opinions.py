"""FastWARC alone, warcio alone, ours: what each returns of broken archives. Ours is at least their union.

This is why warcio is not asked for a second opinion: it would add nothing. `python -m
tests.corpusmill.readers.test_opinions` prints the table.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from fastwarc.warc import ArchiveIterator as FastIterator
from warcio.archiveiterator import ArchiveIterator as WarcioIterator

from corpusmill.readers.warc import FileFacts, read_records

CUT = {"chatnoir-resiliparse/clipped.warc.gz", "synthetic/s01-cut-in-last-member.warc.gz"}
"""Both libraries give a record as whole here that is cut; ours counts it as truncated."""
NO_ADDRESS = {"synthetic/s07-no-target-uri.warc.gz"}
"""FastWARC gives a page without an address, which is never to come back."""


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


def fastwarc_urls(path: Path) -> set[str | None]:
    found: set[str | None] = set()
    with contextlib.suppress(Exception):
        for one in FastIterator(str(path), parse_http=False, fsspec_args=False):
            one.reader.read()
            found.add(one.headers.get("WARC-Target-URI"))
    return found


def warcio_urls(path: Path) -> set[str | None]:
    found: set[str | None] = set()
    with contextlib.suppress(Exception), path.open("rb") as stream:
        for one in WarcioIterator(stream, arc2warc=True):
            one.content_stream().read()
            found.add(one.rec_headers.get_header("WARC-Target-URI"))
    return found


def our_urls(path: Path) -> set[str | None]:
    return {one.url for one in read_records(path) if not one.fault}


def table(samples: Path) -> dict[str, tuple[int, int, int, int]]:
    """file -> records of the truth, and how many of them FastWARC, warcio and we return."""
    rows = {}
    for want in lines(samples / "synthetic-truth.jsonl"):
        truth, path = {*want["sure"], *want["resync"]}, samples / want["file"]
        rows[want["file"]] = (len(truth), *(len(truth & of(path)) for of in (fastwarc_urls, warcio_urls, our_urls)))
    return rows


def test_ours_returns_all_that_can_be_read(data_dir: Path) -> None:
    rows = table(data_dir / "warc-samples")
    truth, fastwarc, warcio, ours = (sum(row[i] for row in rows.values()) for i in range(4))
    assert len(rows) == 17
    assert all(row[3] == row[0] for row in rows.values()), rows
    assert ours == truth
    assert max(fastwarc, warcio) < truth


def test_ours_is_at_least_the_union_of_both_on_every_sample(data_dir: Path) -> None:
    """By number, against what was observed of both; all records count, of whatever type."""
    samples = data_dir / "warc-samples"
    for seen in lines(samples / "observed.jsonl"):
        name = seen["file"].removeprefix("public/")
        facts = FileFacts()
        whole = sum(not one.fault for one in read_records(samples / seen["file"], facts=facts))
        missing = max(seen["fastwarc"]["records"], seen["warcio"]["records"]) - whole - sum(facts.not_content.values())
        assert missing <= (name in CUT or name in NO_ADDRESS), name
        if name in CUT:
            assert facts.counts["truncated"] == 1


def test_no_url_that_either_finds_is_lost(data_dir: Path) -> None:
    """But for what warcio makes of an index of another kind, which it takes for an ARC file."""
    samples = data_dir / "warc-samples"
    for path in filter(Path.is_file, samples.rglob("*")):
        if path.suffix in (".jsonl", ".md", ".cdx") or str(path.relative_to(samples)).removeprefix("public/") in CUT:
            continue
        facts = FileFacts()
        ours = {(one.url or "") for one in read_records(path, facts=facts)}
        others = {(url or "").strip("<>") for url in fastwarc_urls(path) | warcio_urls(path)}
        if not facts.not_content:  # those are counted without their addresses
            assert others - {""} <= ours, path


if __name__ == "__main__":
    folder = Path(os.environ.get("CORPUSMILL_TEST_DATA", "../shared/data")) / "warc-samples"
    for file, row in table(folder).items():
        print(f"{file:50s} truth {row[0]:3d}  FastWARC {row[1]:3d}  warcio {row[2]:3d}  ours {row[3]:3d}")
