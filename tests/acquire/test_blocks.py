"""Large archives in blocks: every record in the block in which it begins, and the whole chain on other sources."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from corpusmill.readers import parts
from corpusmill.store import open_store
from tasks import acquire, extract
from tasks.acquire import units
from tests import golden
from tests.acquire.reading import by_unit, recipe


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


def test_the_digest_of_a_block_is_that_of_its_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import hashlib

    data = archive(True)
    (tmp_path / "a.warc.gz").write_bytes(data)
    monkeypatch.setattr(units, "BLOCK_BYTES", 4000)
    made = recipe("files", tmp_path, pattern="*")
    for unit in acquire.plan(made):
        with acquire.fetched(unit, made) as file:
            part = data[unit.begin : unit.end]
            assert (file.sha256, file.size) == (hashlib.sha256(part).hexdigest(), len(part))


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
