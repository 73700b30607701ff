"""Texts to train on: every kind of file, folders in order, a dataset's documents; what cannot be read is an error."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpusmill.errors import NotFound, Unavailable, UsageError
from tasks.models import corpus
from tasks.models.corpus import texts
from tests import datasets

ROWS = [{"text": "first\u2028line", "other": "x"}, {"text": "second\r\n"}, {"text": ""}]
EXPECTED = ["first\u2028line", "second\n", ""]


def jsonl(rows: list) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def read(*sources: Path, **options) -> list[str]:
    return list(texts([str(source) for source in sources], "nowhere", **options))


def test_json_lines_plain_and_compressed(tmp_path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"\xef\xbb\xbf" + jsonl(ROWS) + b"\n  \n")
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(jsonl(ROWS)))
    assert read(tmp_path / "a.jsonl", tmp_path / "b.jsonl.gz") == EXPECTED * 2
    (tmp_path / "c.json").write_bytes(b'{"other": "lone \\ud800 surrogate"}')
    assert read(tmp_path / "c.json", field="other") == ["lone \ufffd surrogate"]


def test_parquet(tmp_path) -> None:
    pq.write_table(pa.table({"text": [row["text"] for row in ROWS], "n": [1, 2, 3]}), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet") == EXPECTED
    with pytest.raises(UsageError, match="no column 'body'"):
        read(tmp_path / "a.parquet", field="body")
    with pytest.raises(UsageError, match="row without text in 'n'"):
        read(tmp_path / "a.parquet", field="n")
    (tmp_path / "b.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-9])
    with pytest.raises(Unavailable, match="cannot be read"):
        read(tmp_path / "b.parquet")


def test_plain_text_is_one_document_or_blocks_of_lines(tmp_path, monkeypatch) -> None:
    lines = [f"line {i}" for i in range(100)]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    assert read(tmp_path / "a.txt") == ["\n".join(lines)]
    monkeypatch.setattr(corpus, "BLOCK_BYTES", 50)
    blocks = read(tmp_path / "a.txt", by_line=True)
    assert len(blocks) > 10
    assert [line for block in blocks for line in block.split("\n")] == lines


def test_a_folder_is_read_in_the_order_of_its_paths(tmp_path) -> None:
    for name in ("b/2.txt", "a.txt", "b/1.jsonl", "c.TXT"):
        path = tmp_path / "folder" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(jsonl([{"text": name}]) if name.endswith("jsonl") else name.encode())
    assert read(tmp_path / "folder") == ["a.txt", "b/1.jsonl", "b/2.txt", "c.TXT"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotFound, match="no file"):
        read(tmp_path / "empty")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b'{"text": "x"}\nnonsense\n', "line 2: not JSON"),
        (b'{"text": "x"}\n["text"]\n', "line 2: no text"),
        (b'{"text": 5}\n', "line 1: no text"),
        (b'\n{"body": "x"}\n', "line 2: no text"),
        (b'{"text": "\xff"}\n', "line 1: not JSON"),
    ],
)
def test_a_bad_row_is_an_error_with_its_line(tmp_path, data: bytes, says: str) -> None:
    (tmp_path / "a.jsonl").write_bytes(data)
    with pytest.raises(UsageError, match=says):
        read(tmp_path / "a.jsonl")


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.txt.gz"])
@pytest.mark.parametrize("by_line", [True, False])
def test_a_cut_file_is_an_error(tmp_path, name: str, by_line: bool) -> None:
    (tmp_path / name).write_bytes(gzip.compress(jsonl(ROWS * 1000))[:-20])
    with pytest.raises(Unavailable, match="is truncated"):
        read(tmp_path / name, by_line=by_line)


@pytest.mark.parametrize("data", ["größe\n".encode("latin-1"), "size\n".encode("utf-16")])
@pytest.mark.parametrize("by_line", [False, True])
def test_a_text_in_another_encoding_is_an_error(tmp_path, data: bytes, by_line: bool) -> None:
    (tmp_path / "a.txt").write_bytes(data)
    with pytest.raises(UsageError, match=r"a\.txt: not UTF-8"):
        read(tmp_path / "a.txt", by_line=by_line)


def test_too_large_is_said(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(corpus, "MAX_TEXT_BYTES", 100)
    (tmp_path / "a.txt").write_text("x" * 101)
    for by_line in (True, False):
        with pytest.raises(UsageError, match=r"at most 100 bytes|too large"):
            read(tmp_path / "a.txt", by_line=by_line)


def test_what_is_neither_file_nor_dataset(tmp_path) -> None:
    with pytest.raises(NotFound) as caught:
        list(texts(["absent"], str(tmp_path / "nostore")))
    assert caught.value.what == "absent: no such file or folder"
    assert "There is no store at" in caught.value.why


def test_the_kept_documents_of_a_dataset(tmp_path) -> None:
    _, digest = datasets.publish(tmp_path / "store")
    for ref in (datasets.NAME, f"{datasets.NAME}@{digest[:8]}", digest):
        assert list(texts([ref], str(tmp_path / "store"))) == ["kept in the first file", "kept in the second file"]
    for absent in ("nosuchdataset", "no/such/file.txt"):
        with pytest.raises(NotFound, match=f"{absent}: no such file or folder"):
            list(texts([absent], str(tmp_path / "store")))
