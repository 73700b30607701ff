"""Tokenizers and token shards: documents come back as they were, rows lie where the payload says."""

from __future__ import annotations

import gzip
import json
import time
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.canonical import content_digest
from corpusmill.errors import CheckFailed, UsageError
from corpusmill.kernels.packing import pack_window
from corpusmill.schema import tokens_schema
from corpusmill.tokens import shards

SAMPLE = [
    "The quick brown fox jumps over the lazy dog; the dog does not mind.",
    "Shards, rows and tokens: a row holds seq_len + 1 tokens.\n\n    indented code()\n",
    "Ünïcode: Ärger mit Öl, 東京と大阪, Привет мир, 🙂🙃",
] * 20


@pytest.fixture(scope="module")
def trained() -> bytes:
    return shards.train_tokenizer(SAMPLE, 384)


@pytest.fixture(scope="module")
def encoder(trained) -> shards.Tokenizer:
    return shards.Tokenizer(trained)


def hostile_lines(data_dir, name: str) -> list[dict]:
    return [json.loads(line) for line in (data_dir / "hostile" / name).read_text(encoding="utf-8").split("\n") if line]


def test_training_gives_one_tokenizer_for_any_order_of_the_sample(trained):
    assert shards.train_tokenizer(SAMPLE[::-1], 384) == trained
    assert shards.train_tokenizer(iter(SAMPLE), 384) == trained


def test_trained_tokenizer_has_eos_first_and_all_bytes(encoder):
    assert (encoder.vocab_size, encoder.eos, encoder.eos_id) == (384, "<|endoftext|>", 0)
    assert encoder.dtype == np.dtype("<u2")
    (encoded,) = encoder.encode(["".join(chr(c) for c in (0, 7, 0x7F, 0x300, 0xFFFD, 0x10FFFF))])
    assert encoder.decode(encoded) == "\0\x07\x7f\u0300\ufffd\U0010ffff"


def test_training_does_not_stall_on_a_run_without_spaces(data_dir, encoder):
    """A run of 2 MB took over 5 minutes, as each of the merges walked it."""
    with gzip.open(data_dir / "hostile" / "B53-long-run.txt.gz", "rt", encoding="utf-8") as file:
        run = file.read()
    began = time.process_time()
    data = shards.train_tokenizer([*SAMPLE, run, " " * 1_000_000, "1" * 1_000_000, "=_" * 500_000], 384)
    assert time.process_time() - began < 20
    assert shards.Tokenizer(data).vocab_size == 384


@given(st.lists(st.tuples(st.sampled_from("aé東1٣-_ \n\u3000\x1c\x85"), st.sampled_from([1, 3, 255, 256, 257, 400]))))
def test_texts_without_long_runs_are_told_apart_from_those_with(parts):
    text = "".join(char * count for char, count in parts)
    assert shards._without_long_runs(text) == shards._LONG_RUN.sub(shards._cut, text)


def test_long_run_is_encoded_in_time(data_dir, encoder):
    with gzip.open(data_dir / "hostile" / "B53-long-run.txt.gz", "rt", encoding="utf-8") as file:
        run = file.read()
    assert len(run) == 2_000_000
    began = time.process_time()
    (encoded,) = encoder.encode([run])
    assert time.process_time() - began < 15
    assert encoder.decode(encoded) == run


@settings(max_examples=100, deadline=None)
@given(text=st.text(max_size=60) | st.lists(st.sampled_from(["<|endoftext|>", "<|", "a"]), max_size=6).map("".join))
def test_documents_come_back_and_end_with_their_only_eos(encoder, text):
    (encoded,) = encoder.encode([text])
    if text:
        assert (encoded == encoder.eos_id).nonzero()[0].tolist() == [len(encoded) - 1]
    else:
        assert len(encoded) == 0
    assert encoder.decode(encoded) == text


def test_special_token_text_is_text(data_dir, encoder):
    documents = [row["text"] for row in hostile_lines(data_dir, "B50-special-token-text.jsonl")]
    stream = np.concatenate(encoder.encode(documents))
    ends = (stream == encoder.eos_id).nonzero()[0].tolist()
    assert len(ends) == 3
    pieces = np.split(stream, [end + 1 for end in ends[:-1]])
    assert [encoder.decode(piece) for piece in pieces] == documents
    assert [encoder.has_special_text(d) for d in documents] == [True, True, False]


def test_batches_do_not_change_the_tokens(encoder, monkeypatch):
    whole = encoder.encode(SAMPLE[:9])
    monkeypatch.setattr(shards, "ENCODE_BYTES", 50)
    assert all(np.array_equal(a, b) for a, b in zip(whole, encoder.encode(SAMPLE[:9]), strict=True))
    assert encoder.encode([]) == []


def given_tokenizer(trained: bytes, eos: str, *, special: bool) -> bytes:
    """A tokenizer.json as others make them: begins texts with a token, cuts them, pads them."""
    described = json.loads(trained)
    described["added_tokens"][0].update(content=eos, special=special)
    vocabulary = described["model"]["vocab"]
    vocabulary[eos] = vocabulary.pop("<|endoftext|>")
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(described))
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(f"{eos} $A", special_tokens=[(eos, 0)])
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=16)
    return tokenizer.to_str().encode()


@pytest.mark.parametrize("special", [True, False])
def test_given_tokenizer_neither_begins_nor_cuts_nor_pads_documents(trained, encoder, special):
    given = shards.Tokenizer(given_tokenizer(trained, "</s>", special=special))
    assert (given.eos, given.eos_id) == ("</s>", 0)
    text = "The end is </s> not here, but there: " + SAMPLE[0]
    (encoded,) = given.encode([text])
    assert (encoded == 0).sum() == 1
    assert np.array_equal(encoded, encoder.encode([text])[0])


def test_large_vocabulary_takes_four_bytes(trained):
    described = json.loads(trained)
    described["added_tokens"].append({**described["added_tokens"][0], "id": 65_535, "content": "<|last|>"})
    described["model"]["vocab"]["<|last|>"] = 65_535
    large = shards.Tokenizer(json.dumps(described).encode())
    assert large.vocab_size == 65_536
    assert large.dtype == np.dtype("<u4")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"not json", "the tokenizer file cannot be read\nJSONDecodeError"),
        (b"{}", "the tokenizer file cannot be read\nKeyError: 'added_tokens'"),
        (b'{"added_tokens": [{"content": "<x>"}]}', "no end-of-text token\nexpected one of <|endoftext|>, .*'<x>'"),
    ],
)
def test_file_that_is_no_tokenizer_is_refused(data, message):
    with pytest.raises(UsageError, match=message.replace("|", "\\|")):
        shards.Tokenizer(data)


def some_rows(rows: int, seq_len: int, dtype: str = "<u2", seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 60_000, (rows, seq_len + 1)).astype(dtype)


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
    mapped = shards.map_token_shard(tmp_path / "shard", [], 2, 1024)
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
    mapped = shards.map_token_shard(tmp_path / "shard", shard.payload, array.itemsize, 32)
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
    mapped = shards.map_token_shard(tmp_path / "shard", shard.payload, 2, 8)
    with pytest.raises(IndexError, match="of a shard of 1000"):
        mapped.rows(np.array([5, wrong]))


def test_damaged_row_group_is_refused_and_the_others_are_not(tmp_path):
    shard = shards.write_token_shard(tmp_path / "shard", some_rows(1000, 8), row_group_rows=500)
    data = bytearray((tmp_path / "shard").read_bytes())
    data[shard.payload[1].offset + 3000] ^= 1
    (tmp_path / "shard").write_bytes(data)
    mapped = shards.map_token_shard(tmp_path / "shard", shard.payload, 2, 8)
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
        shards.map_token_shard(tmp_path / "shard", shard.payload, 2, 8)


def test_documents_come_back_from_packed_and_mapped_rows(tmp_path, encoder):
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
    mapped = shards.map_token_shard(tmp_path / "shard", shard.payload, 2, 64)
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
