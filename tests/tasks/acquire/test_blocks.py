"""Large archives in blocks: every record in the block in which it begins, and the whole chain on other sources."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from corpusmill.errors import Unavailable
from corpusmill.readers.containers import parts
from corpusmill.store import Unit, open_store
from tasks import acquire, extract
from tasks.acquire import units
from tasks.acquire.fetch import http, ranged, rate_limit
from tasks.acquire.fetch.retries import Retries
from tasks.acquire.fetch.transport import tree_files
from tests import golden
from tests.faultproxy import Faults, faulty
from tests.servers import S3Server
from tests.tasks.acquire.reading import by_unit, recipe
from tests.tasks.acquire.server import serve
from tests.tasks.ingest.crawls import OLD, add_crawl
from tests.tasks.ingest.crawls import locator as crawl_locator


def archive(compressed: bool, count: int = 40) -> bytes:
    subjects = golden.SUBJECTS
    made = [golden.record(f"https://a.example/{i}", golden.page(subjects[i % 8], i)) for i in range(count)]
    return b"".join(made if compressed else map(gzip.decompress, made))


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("size", [900, 1111, 5000])
@pytest.mark.parametrize("scan", [2**20, 100])
def test_blocks_of_archives_hold_each_record_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compressed: bool, size: int, scan: int
) -> None:
    name = "a.warc.gz" if compressed else "a.warc"
    (tmp_path / name).write_bytes(archive(compressed))
    ((unit, whole),) = by_unit(recipe("files", tmp_path, pattern="*"))
    assert (len(whole), unit.blocks) == (40, 1)
    monkeypatch.setattr(units, "BLOCK_BYTES", size)
    monkeypatch.setattr(parts, "SCAN", scan)
    blocks = by_unit(recipe("files", tmp_path, pattern="*"))
    assert len(blocks) > 3
    assert [o for _, found in blocks for o in found] == whole
    assert all(unit.begin <= o.offset < (unit.end or 2**60) for unit, found in blocks for o in found)


def test_an_archive_in_one_member_is_one_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.warc.gz").write_bytes(gzip.compress(archive(False), 1))
    monkeypatch.setattr(units, "BLOCK_BYTES", 1000)
    blocks = by_unit(recipe("files", tmp_path, pattern="*"))
    assert [len(found) for _, found in blocks] == [40] + [0] * (len(blocks) - 1)


@pytest.mark.parametrize("compressed", [True, False])
def test_blocks_tile_their_file_and_have_the_digest_of_their_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compressed: bool
) -> None:
    data = archive(compressed)
    (tmp_path / ("a.warc.gz" if compressed else "a.warc")).write_bytes(data)
    monkeypatch.setattr(units, "BLOCK_BYTES", 4000)
    made = recipe("files", tmp_path, pattern="*")
    position = 0
    for unit in acquire.plan(made):
        with acquire.fetched(unit, made) as file:
            part = data[file.begin : file.begin + file.size]
            assert file.begin == position
            assert file.sha256 == hashlib.sha256(part).hexdigest()
            assert unit.begin <= file.begin
            position += file.size
    assert position == len(data)


@pytest.fixture
def places(tmp_path: Path, s3_uri: str, s3_server: S3Server) -> Iterator[Callable[[], dict[str, str]]]:
    """`places()`: the roots over which everything that lies in tmp_path/tree now is served."""
    (tmp_path / "tree").mkdir()
    bucket, _, prefix = s3_uri.removeprefix("s3://").partition("/")
    client = s3_server.client()

    def upload() -> dict[str, str]:
        for name, file in tree_files(tmp_path / "tree"):
            client.put_object(Bucket=bucket, Key=f"{prefix}/{name}", Body=file.read_bytes())
        return {"folder": str(tmp_path / "tree"), "http": server.url, "s3": s3_uri}

    with serve(tmp_path / "tree") as server:
        yield upload


@pytest.mark.parametrize(("compressed", "size"), [(True, 5000), (False, 5003)])
def test_blocks_are_the_same_from_a_folder_a_web_server_and_a_bucket(
    tmp_path: Path,
    places: Callable[[], dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    compressed: bool,
    size: int,
) -> None:
    """Keys of units, bytes, digests and records; and the blocks of a file are the file, each record once."""
    add_crawl(tmp_path / "tree", OLD, files=0)
    locator = f"crawl-data/{OLD}/a.warc.gz" if compressed else f"crawl-data/{OLD}/a.warc"
    (tmp_path / "tree" / locator).write_bytes(archive(compressed))
    (tmp_path / f"tree/crawl-data/{OLD}/warc.paths.gz").write_bytes(gzip.compress(locator.encode()))
    roots = places()
    ((_, whole),) = by_unit(recipe("common-crawl", roots["folder"], crawls=[OLD]))
    assert len(whole) == 40
    monkeypatch.setattr(units, "BLOCK_BYTES", size)
    monkeypatch.setattr(parts, "SCAN", 300)
    monkeypatch.setattr(ranged, "AHEAD", 500)
    seen: dict[str, list[Any]] = {}
    for scheme, root in roots.items():
        made = recipe("common-crawl", root, crawls=[OLD])
        seen[scheme] = []
        records = []
        for unit in acquire.plan(made):
            with acquire.fetched(unit, made) as file:
                key = Unit("source", 1, acquire.identity(unit, made), ()).key
                seen[scheme].append((unit, key, file.sha256, file.size, file.begin))
        for _, found in by_unit(made):
            records += found
        assert records == whole
    assert len(seen["folder"]) == -(-len(archive(compressed)) // size) > 4
    assert seen["http"] == seen["folder"]
    assert seen["s3"] == seen["folder"]
    made = recipe("files", roots["s3"], pattern="**/a.warc*")
    assert [(u.locator, u.block, u.blocks) for u in acquire.plan(made)] == [
        (u.locator, u.block, u.blocks) for u, *_ in seen["s3"]
    ]


def test_a_block_is_fetched_by_its_bytes_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = archive(True)
    add_crawl(tmp_path, OLD, files=0)
    locator = f"crawl-data/{OLD}/a.warc.gz"
    (tmp_path / locator).write_bytes(data)
    (tmp_path / f"crawl-data/{OLD}/warc.paths.gz").write_bytes(gzip.compress(locator.encode()))
    monkeypatch.setattr(units, "BLOCK_BYTES", 5000)
    monkeypatch.setattr(parts, "SCAN", 300)
    monkeypatch.setattr(parts, "HEAD", 200)
    monkeypatch.setattr(ranged, "AHEAD", 200)
    with serve(tmp_path) as server:
        made = recipe("common-crawl", server.url, crawls=[OLD])
        planned = acquire.plan(made)
        with rate_limit.watched() as traffic, acquire.fetched(planned[1], made) as file:
            assert file.path.stat().st_size == file.size
        assert server.requests[locator] == server.ranges[locator]
        assert traffic.received_bytes < file.size + 8 * (300 + 64 + 200) + 4 * 400


def test_a_server_without_ranges_gives_the_same_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_crawl(tmp_path, OLD, files=0)
    locator = f"crawl-data/{OLD}/a.warc.gz"
    (tmp_path / locator).write_bytes(archive(True))
    (tmp_path / f"crawl-data/{OLD}/warc.paths.gz").write_bytes(gzip.compress(locator.encode()))
    monkeypatch.setattr(units, "BLOCK_BYTES", 7000)
    with serve(tmp_path, lambda n, path: "no-ranges") as server:
        over_http = by_unit(recipe("common-crawl", server.url, crawls=[OLD]))
    assert over_http == by_unit(recipe("common-crawl", tmp_path, crawls=[OLD]))
    assert len(over_http) > 2


@pytest.mark.parametrize("checksums", [True, False])
def test_faults_move_no_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checksums: bool) -> None:
    """503, resets, cuts and flipped bits, also in the parts that are read to find where blocks begin."""
    add_crawl(tmp_path, OLD, files=0)
    locator = f"crawl-data/{OLD}/a.warc.gz"
    (tmp_path / locator).write_bytes(archive(True, 200))
    (tmp_path / f"crawl-data/{OLD}/warc.paths.gz").write_bytes(gzip.compress(locator.encode()))
    monkeypatch.setattr(units, "BLOCK_BYTES", 6000)
    monkeypatch.setattr(parts, "SCAN", 300)
    monkeypatch.setattr(ranged, "AHEAD", 100)
    quick = Retries(attempts=25, sleep=lambda seconds: None)
    for name in ("get", "get_range", "download", "length"):
        with_retries = lambda *args, real=getattr(http, name), **keys: real(*args, quick, **keys)  # noqa: E731
        monkeypatch.setattr(http, name, with_retries)

    def digests(root: str | Path) -> list[tuple[str, int]]:
        made = recipe("common-crawl", root, crawls=[OLD])
        found = []
        for unit in acquire.plan(made):
            with acquire.fetched(unit, made) as file:
                found.append((file.sha256, file.begin))
        return found

    hard = Faults(busy=0.2, cut=0.1, flip=0.1, reset=0.1, seed=9)
    with faulty(tmp_path, hard, checksums=checksums) as server:
        assert digests(server.url) == digests(tmp_path)
        assert min(server.faults[kind] for kind in ("busy", "cut", "flip", "reset")) > 3


def test_sizes_are_asked_once_and_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_crawl(tmp_path / "tree", OLD, files=4)
    store = open_store(tmp_path / "store", create=True)
    with serve(tmp_path / "tree") as server:
        made = recipe("common-crawl", server.url, crawls=[OLD], max_files=3)
        first = acquire.plan(made, store)
        assert server.sizes.total() == 3
        assert acquire.plan(made, open_store(tmp_path / "store")) == first
        assert server.sizes.total() == 3
        more = recipe("common-crawl", server.url, crawls=[OLD])
        assert len(acquire.plan(more, store)) == 4
        assert (server.sizes.total(), set(server.sizes.values())) == (4, {1})
        monkeypatch.setattr(units, "BLOCK_BYTES", 2000)
        assert len(acquire.plan(more, store)) > 4
        assert server.sizes.total() == 4
        assert not [path for path in server.requests if path.endswith(".warc.gz")]


def test_a_file_that_is_missing_when_sizes_are_asked_is_one_unit(tmp_path: Path) -> None:
    add_crawl(tmp_path / "tree", OLD)
    (tmp_path / f"tree/{crawl_locator(OLD, 1)}").unlink()
    with serve(tmp_path / "tree") as server:
        made = recipe("common-crawl", server.url, crawls=[OLD])
        planned = acquire.plan(made, open_store(tmp_path / "store", create=True))
        assert [unit.blocks for unit in planned] == [1, 1, 1]
        with pytest.raises(Unavailable, match="is missing"), acquire.fetched(planned[1], made):
            pass


def test_blocks_have_ids_and_receipts_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rows").mkdir()
    rows = [json.dumps({"text": f"line {i} of the file", "id": f"r{i}"}) for i in range(100)]
    (tmp_path / "rows" / "a.jsonl").write_text("\n".join(rows) + "\nbroken\n")
    store = open_store(tmp_path / "store", create=True)
    monkeypatch.setattr(units, "BLOCK_BYTES", 1500)
    made = recipe("jsonl", tmp_path / "rows", id="id")
    done = [extract.extract_file(unit, made, store) for unit in acquire.plan(made)]
    assert len({part.receipt.key for _, part in done}) == len(done) == 3
    assert [part.receipt.facts["locator"] for _, part in done] == ["a.jsonl", "a.jsonl#1", "a.jsonl#2"]
    tables = [store.table(part.receipt.outputs["documents"]).to_pylist() for _, part in done]
    documents = [row for table in tables for row in table]
    assert [row["source_id"] for row in documents] == [f"r{i}" for i in range(100)]
    assert len({row["doc_id"] for row in documents}) == 100
    assert {row["extractor"] for row in documents} == {"jsonl"}
    for _, part in done:
        counts, reasons = part.receipt.counters, part.receipt.reasons
        assert counts["acquire.docs_in"] == counts["acquire.docs_out"] + sum(r["docs"] for r in reasons.values())
        assert part.receipt.facts["extractors"] == {"jsonl": counts["extract.docs_out"]}
        assert "trafilatura" not in part.receipt.versions
    assert done[2][1].receipt.reasons == {"bad_row": {"bytes": 6, "docs": 1, "words": 0}}
    again = [extract.extract_file(unit, made, store) for unit in acquire.plan(made)]
    assert all(part.reused for pair in again for part in pair)


def test_columns_are_part_of_the_identity(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a", "body": "b"}\n')
    store = open_store(tmp_path / "store", create=True)
    texts = []
    for column in ("text", "body"):
        made = recipe("jsonl", tmp_path, text=column, pattern="*.jsonl")
        (unit,) = acquire.plan(made)
        _, part = extract.extract_file(unit, made, store)
        assert not part.reused
        texts += store.table(part.receipt.outputs["documents"]).column("text").to_pylist()
    assert texts == ["a", "b"]
