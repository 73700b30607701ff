"""Token shards: rows lie where the payload says, and documents come back from them as they were."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpusmill.canonical import content_digest
from corpusmill.errors import CheckFailed
from corpusmill.kernels.gather import pieces_of
from corpusmill.kernels.packing import pack_window
from corpusmill.schema import tokens_schema
from corpusmill.tokens import shards
from corpusmill.tokens.mapped import MappedRows
from corpusmill.tokens.row_group import RowGroup
from corpusmill.tokens.tokenizer import Tokenizer, train_tokenizer
from tests.corpusmill.tokens.test_tokenizer import SAMPLE


def some_rows(rows: int, seq_len: int, dtype: str = "<u2", seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 60_000, (rows, seq_len + 1)).astype(dtype)


def mapped_rows(path: Path, payload: Sequence[RowGroup], token_bytes: int, seq_len: int) -> MappedRows:
    """One shard whose rows are one piece each."""
    rows = sum(group.rows for group in payload)
    pieces = pieces_of(np.arange(1, rows + 1), np.full(rows, seq_len + 1))
    return MappedRows([payload], token_bytes, seq_len, lambda shard: path, lambda shard: pieces)


@pytest.mark.parametrize(("rows", "seq_len", "dtype"), [(4096 * 2 + 300, 64, "<u2"), (300, 1024, "<u4"), (1, 2, "<u2")])
def test_row_groups_lie_in_the_file_as_in_memory(tmp_path, rows, seq_len, dtype):
    array = some_rows(rows, seq_len, dtype)
    shard = shards.write_token_shard(tmp_path / "shard", array)
    data = (tmp_path / "shard").read_bytes()
    assert shard.rows == rows == sum(group.rows for group in shard.payload)
    begin = 0
    for group in shard.payload:
        expected = array[begin : begin + group.rows].tobytes()
        assert data[group.offset : group.offset + len(expected)] == expected
        assert group.crc32 == zlib.crc32(expected)
        begin += group.rows
    assert [group.rows for group in shard.payload[:-1]] == [4096] * (len(shard.payload) - 1)


def test_shard_is_ordinary_parquet_with_page_checksums(tmp_path):
    array = some_rows(500, 16)
    shard = shards.write_token_shard(tmp_path / "shard", array, row_group_rows=200)
    table = pq.read_table(tmp_path / "shard", page_checksum_verification=True)
    assert table.schema.equals(tokens_schema(2, 16))
    assert b"".join(table["tokens"].to_pylist()) == array.tobytes()
    assert shard.content == content_digest(table)
    metadata = pq.read_metadata(tmp_path / "shard")
    assert [metadata.row_group(i).num_rows for i in range(3)] == [200, 200, 100]
    assert not metadata.row_group(0).column(0).is_stats_set


def test_writing_twice_gives_the_same_bytes(tmp_path):
    array = some_rows(500, 16)
    one = shards.write_token_shard(tmp_path / "one", array, row_group_rows=200)
    other = shards.write_token_shard(tmp_path / "other", np.asfortranarray(array), row_group_rows=200)
    assert one == other
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_shard_without_rows(tmp_path):
    shard = shards.write_token_shard(tmp_path / "shard", some_rows(0, 1024))
    assert (shard.rows, shard.payload) == (0, ())
    mapped = mapped_rows(tmp_path / "shard", [], 2, 1024)
    assert len(mapped) == 0
    with pytest.raises(IndexError):
        mapped.rows(np.array([0]))


def test_pages_that_are_laid_out_otherwise_are_found_out(tmp_path, monkeypatch):
    """With pages of 1 MiB the first rows still lie right and the header is short: only reading them all tells."""
    real = pq.ParquetWriter
    monkeypatch.setattr(pq, "ParquetWriter", lambda *a, **k: real(*a, **{**k, "max_rows_per_page": 100}))
    with pytest.raises(CheckFailed, match=r"row group 0 of a token shard cannot be memory-mapped: .*other rows in me"):
        shards.write_token_shard(tmp_path / "shard", some_rows(150, 16))
    monkeypatch.setattr(pq, "ParquetWriter", lambda *a, **k: real(*a, **{**k, "compression": "zstd"}))
    with pytest.raises(CheckFailed, match="compression ZSTD"):
        shards.write_token_shard(tmp_path / "shard", some_rows(150, 16))


@pytest.mark.parametrize("dtype", ["<u2", "<u4"])
def test_mapped_rows_are_the_rows_in_any_order(tmp_path, dtype):
    array = some_rows(1000, 32, dtype)
    shard = shards.write_token_shard(tmp_path / "shard", array, row_group_rows=128)
    mapped = mapped_rows(tmp_path / "shard", shard.payload, array.itemsize, 32)
    rng = np.random.default_rng(1)
    for _ in range(20):
        indices = rng.integers(0, 1000, rng.integers(0, 40))
        got = mapped.rows(indices)
        assert got.dtype == np.int64
        assert np.array_equal(got, array[indices].astype(np.int64))
    assert len(mapped) == 1000


@pytest.mark.parametrize("wrong", [-1, 1000])
def test_rows_outside_the_shard_are_refused(tmp_path, wrong):
    shard = shards.write_token_shard(tmp_path / "shard", some_rows(1000, 8))
    mapped = mapped_rows(tmp_path / "shard", shard.payload, 2, 8)
    with pytest.raises(IndexError, match="of 1000"):
        mapped.rows(np.array([5, wrong]))


def test_damaged_row_group_is_refused_and_the_others_are_not(tmp_path):
    shard = shards.write_token_shard(tmp_path / "shard", some_rows(1000, 8), row_group_rows=500)
    data = bytearray((tmp_path / "shard").read_bytes())
    data[shard.payload[1].offset + 3000] ^= 1
    (tmp_path / "shard").write_bytes(data)
    mapped = mapped_rows(tmp_path / "shard", shard.payload, 2, 8)
    mapped.rows(np.arange(500))
    for _ in range(2):  # once refused, it stays refused
        with pytest.raises(CheckFailed, match="row group 1 is damaged\nexpected crc32"):
            mapped.rows(np.array([3, 999]))
    with pytest.raises(OSError, match="CRC"):
        pq.read_table(tmp_path / "shard", page_checksum_verification=True)


def test_truncated_shard_is_refused(tmp_path):
    shard = shards.write_token_shard(tmp_path / "shard", some_rows(1000, 8))
    (tmp_path / "shard").write_bytes((tmp_path / "shard").read_bytes()[:9000])
    with pytest.raises(CheckFailed, match="9000 bytes, but its row groups end at byte 18"):
        mapped_rows(tmp_path / "shard", shard.payload, 2, 8).rows(np.array([3]))


def test_documents_come_back_from_packed_and_mapped_rows(tmp_path):
    encoder = Tokenizer(train_tokenizer(SAMPLE, 384))
    documents = {bytes([i]) * 16: text for i, text in enumerate([*SAMPLE[:3], "", "short", SAMPLE[2] * 9])}
    encoded = encoder.encode(list(documents.values()))
    packed = pack_window(
        list(documents),
        np.concatenate(encoded).astype(encoder.dtype),
        np.cumsum([0, *(len(e) for e in encoded)]),
        np.array([len(text.encode()) for text in documents.values()]),
        [None] * len(documents),
        seq_len=64,
        seed=3,
        pad_id=encoder.eos_id,
    )
    shard = shards.write_token_shard(tmp_path / "shard", packed.tokens)
    mapped = mapped_rows(tmp_path / "shard", shard.payload, 2, 64)
    pieces: dict[bytes, list[str]] = {doc_id: [] for doc_id in documents}
    for row, lens, refs in zip(
        mapped.rows(np.arange(len(mapped))),
        packed.rows["doc_lens"].to_pylist(),
        packed.rows["doc_refs"].to_pylist(),
        strict=True,
    ):
        ends = np.cumsum(lens)
        for piece, ref in zip(np.split(row[: ends[-1]], ends[:-1]), refs, strict=True):
            pieces[packed.docs["doc_id"][ref].as_py()].append(piece)
    for doc_id, text in documents.items():
        whole = [p for p in pieces[doc_id] if len(p) == 65] + [p for p in pieces[doc_id] if len(p) < 65]
        if len(whole) <= 2:  # with more, full pieces may lie in any order of rows
            assert encoder.decode(np.concatenate([*whole, np.zeros(0, np.int64)])) == text
        assert sum(len(p) for p in whole) == len(encoder.encode([text])[0])
    assert isinstance(packed.rows, pa.Table)
