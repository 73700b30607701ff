"""JSON lines and Parquet: one outcome a row, whatever is in it."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from corpusmill.readers.warc import FileFacts
from tasks.acquire import units
from tasks.acquire.streams import Damage, decompressed, lines
from tests.tasks.acquire.reading import by_unit, outcomes, reasons, recipe

COMPRESSIONS = {
    "": lambda data: data,
    ".gz": lambda data: gzip.compress(data[:700]) + gzip.compress(data[700:]),
    ".bz2": lambda data: bz2.compress(data[:700]) + bz2.compress(data[700:]),
    ".xz": lzma.compress,
    ".zst": lambda data: zstandard.compress(data[:700]) + zstandard.compress(data[700:]),
}
PACKERS = {
    ".gz": lambda data: gzip.compress(data, 1),
    ".bz2": lambda data: bz2.compress(data, 1),
    ".xz": lambda data: lzma.compress(data, preset=0),
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}
ROWS = [
    b'{"text": "one", "id": 7, "url": "https://a.example/", "date": "2026-01-01"}',
    '{"text": "two\u2028still two\u0085 and\x0cfeed"}'.replace("\x0c", "\\f").encode(),
    b"",
    b'{"text": 5}',
    b'{"other": "text"}',
    b'["text"]',
    b'{"text": "cut',
    b'{"text": "\xff"}',
    b'{"text": "  \\n "}',
    b'{"text": "\\ud800 lone and \\ud83d\\ude00 pair", "id": {"a": 1}}',
    b'{"text": "big", "n": ' + b"9" * 5000 + b"}",
    b"[" * 100_000,
]


@pytest.mark.parametrize("suffix", COMPRESSIONS)
def test_each_line_has_one_outcome_in_every_compression(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"a.jsonl{suffix}").write_bytes(COMPRESSIONS[suffix](b"\xef\xbb\xbf" + b"\n".join(ROWS)))
    facts = FileFacts()
    found = outcomes("jsonl", tmp_path, facts, id="id", url="url", date="date")
    assert reasons(found) == {None: 3, "no_text_column": 2, "bad_row": 5, "empty_body": 1}
    assert dict(facts.not_content) == {"blank_line": 1}
    first, second, third = (o for o in found if o.text)
    assert (first.text, first.source_id, first.url, first.date) == (
        "one",
        "7",
        "https://a.example/",
        "2026-01-01T00:00:00Z",
    )
    assert (first.offset, first.record_type, first.extractor) == (0, "row", "jsonl")
    assert second.text == "two\u2028still two\u0085 and\nfeed"
    assert (third.text, third.repairs, third.source_id) == ("\ufffd lone and \U0001f600 pair", 1, None)


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("damage", ["cut", "flipped", "garbage behind"])
def test_a_damaged_file_keeps_the_lines_before_the_damage(tmp_path: Path, suffix: str, damage: str) -> None:
    rows = [json.dumps({"text": f"row {i} {random.Random(i).randbytes(300).hex()}"}).encode() for i in range(1500)]
    data = bytearray(PACKERS[suffix](b"\n".join(rows)))
    if damage == "flipped":
        data[len(data) // 2 : len(data) // 2 + 9] = b"\xff\x00\xff\x00\xff\x00\xff\x00\xff"
    (tmp_path / f"a.jsonl{suffix}").write_bytes(
        data[: 2 * len(data) // 3] if damage == "cut" else bytes(data) + (b"x" * 40 if damage.startswith("g") else b"")
    )
    found = outcomes("jsonl", tmp_path)
    assert [o.reason for o in found[-1:]] == ["truncated" if damage == "cut" else "damaged"]
    assert [o.text for o in found[:20]] == [json.loads(row)["text"] for row in rows[:20]]


def test_too_large_lines_are_not_held(tmp_path: Path) -> None:
    small, large = b'{"text": "small"}', b'{"text": "' + b"a" * 5_000_000 + b'"}'
    (tmp_path / "a.jsonl").write_bytes(b"\n".join([small, large, small]))
    made = recipe("jsonl", tmp_path)
    ((_, found),) = by_unit(made, max_payload_bytes=1024)
    assert [o.reason for o in found] == [None, "too_large", None]
    assert found[1].payload_bytes == len(large)
    assert found[2].offset == len(small) + len(large) + 2


@given(st.lists(st.binary(max_size=40).map(lambda b: b.replace(b"\n", b"")), max_size=30), st.integers(1, 50))
def test_lines_are_those_between_newlines(texts: list[bytes], step: int) -> None:
    data = b"\n".join(texts)
    found = list(lines((data[i : i + step] for i in range(0, len(data), step)), 25, 100))
    want = data.split(b"\n") if data and not data.endswith(b"\n") else data.split(b"\n")[:-1]
    assert [line.size for line in found] == [len(text) for text in want]
    assert [line.data for line in found] == [text if len(text) <= 25 else b"" for text in want]
    assert all(data[line.offset - 100 :].startswith(text) for line, text in zip(found, want, strict=True))


def test_a_bomb_is_read_piece_by_piece(tmp_path: Path) -> None:
    for pack in PACKERS.values():
        file = tmp_path / "bomb"
        file.write_bytes(pack(bytes(48 * 2**20)))
        with file.open("rb") as stream:
            pieces = [len(piece) for piece, _ in zip(decompressed(stream), range(20), strict=False)]
        assert max(pieces) <= 8 * 2**20


def test_nothing_and_zeros_behind_the_end_are_fine(tmp_path: Path) -> None:
    for data in (b"", gzip.compress(b""), gzip.compress(b"a\n") + bytes(600)):
        file = tmp_path / "f"
        file.write_bytes(data)
        with file.open("rb") as stream:
            assert b"".join(decompressed(stream)) in (b"", b"a\n")
    file.write_bytes(gzip.compress(b"a\n") + b"tail")
    with file.open("rb") as stream, pytest.raises(Damage, match="damaged"):
        list(decompressed(stream))


def test_blocks_of_json_lines_hold_each_line_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [json.dumps({"text": f"line {i} " + "x" * (i % 37)}) for i in range(500)]
    (tmp_path / "a.jsonl").write_text("\n".join(rows) + "\n")
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress("\n".join(rows).encode()))
    monkeypatch.setattr("tasks.acquire.tree.small_files.ALONE_BYTES", 0)
    whole = by_unit(recipe("jsonl", tmp_path))
    assert [(u.place, u.blocks) for u, _ in whole] == [("a.jsonl", 1), ("b.jsonl.gz", 1)]
    for size in (1000, 1001, 1002, 17, 4096):
        monkeypatch.setattr(units, "BLOCK_BYTES", size)
        blocks = [part for part in by_unit(recipe("jsonl", tmp_path)) if part[0].locator == "a.jsonl"]
        assert len(blocks) == -(-(tmp_path / "a.jsonl").stat().st_size // size)
        assert [o for _, found in blocks for o in found] == whole[0][1]
    assert "block" not in whole[0][0].identity()
    assert (blocks[0][0].identity()["block"], blocks[0][0].identity()["blocks"]) == (0, len(blocks))
    assert blocks[1][0].identity()["block"] == 1
    assert blocks[1][0].place == "a.jsonl#1"


def table(rows: int) -> pa.Table:
    return pa.table(
        {
            "content": [f"text {i}" if i % 5 else None for i in range(rows)],
            "id": list(range(rows)),
            "when": pa.array([i * 86_400_000_000 for i in range(rows)], pa.timestamp("us")),
        }
    )


def test_parquet_rows_by_column_mapping(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "train"
    folder.mkdir(parents=True)
    pq.write_table(table(10), folder / "train-00000-of-00001.parquet")
    found = outcomes("parquet", tmp_path, text="content", id="id", date="when")
    assert reasons(found) == {None: 8, "no_text_column": 2}
    assert [o.offset for o in found] == list(range(10))
    assert (found[3].text, found[3].source_id, found[3].date) == ("text 3", "3", "1970-01-04T00:00:00Z")
    assert found[3].extractor == "parquet"
    assert reasons(outcomes("parquet", tmp_path)) == {"no_text_column": 10}


def test_blocks_of_parquet_are_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(table(1000), tmp_path / "a.parquet", row_group_size=90)
    want = outcomes("parquet", tmp_path, text="content")
    monkeypatch.setattr(units, "BLOCK_BYTES", 3000)
    blocks = by_unit(recipe("parquet", tmp_path, text="content"))
    assert sum(bool(found) for _, found in blocks) > 2
    assert [o for _, found in blocks for o in found] == want


def test_broken_parquet_is_counted(tmp_path: Path) -> None:
    pq.write_table(
        table(1000), tmp_path / "page.parquet", row_group_size=250, write_page_checksum=True, use_dictionary=False
    )
    data = bytearray((tmp_path / "page.parquet").read_bytes())
    about = pq.read_metadata(tmp_path / "page.parquet").row_group(1).column(0)
    data[about.data_page_offset + about.total_compressed_size // 3] ^= 0xFF
    (tmp_path / "page.parquet").write_bytes(data)
    found = outcomes("parquet", tmp_path, text="content")
    assert len(found) == 1000
    assert reasons(found)["damaged"] == 250
    (tmp_path / "page.parquet").write_bytes(data[:-7])
    assert reasons(outcomes("parquet", tmp_path)) == {"damaged": 1}
    (tmp_path / "page.parquet").write_bytes(b"")
    assert reasons(outcomes("parquet", tmp_path)) == {"damaged": 1}


def test_json_lines_of_people(data_dir: Path) -> None:
    """Every line of the shared files is a document, though many hold separators at which splitlines would cut."""
    for folder, pattern, lines_in, text in (
        ("quality", "*.jsonl.gz", 510, "text"),
        ("langid", "*.jsonl.gz", 9680, "text"),
        ("code", "files.jsonl.gz", 383, "content"),
    ):
        found = outcomes("jsonl", data_dir / folder, pattern=pattern, text=text)
        assert reasons(found) == {None: lines_in}


def test_pieces_of_a_long_line_are_joined_once() -> None:
    pieces = [b"a" * 2**14] * 2560
    begin = time.process_time()
    (found,) = lines(pieces, 2**26)
    assert found.data == b"".join(pieces)
    assert time.process_time() - begin < 2  # 2,560 copies of 20 MiB take 10
