"""Rows of many shards by address: the plain result, no descriptor a shard, nothing per row in memory."""

from __future__ import annotations

import resource
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusmill.errors import CheckFailed
from corpusmill.kernels.gather import IGNORED, pieces_of
from corpusmill.tokens.mapped import MappedRows, Places, assemble
from corpusmill.tokens.row_group import RowGroup
from corpusmill.tokens.shards import write_token_shard

ROWS, SEQ_LEN = 3, 20


@st.composite
def packed(draw: st.DrawFn) -> tuple[list[list[int]], int, int]:
    """Piece lengths of some rows, tokens of a sequence, bytes of a token."""
    seq_len = draw(st.integers(1, 70))
    rows = []
    for _ in range(draw(st.integers(1, 5))):
        pieces: list[int] = []
        while (room := seq_len + 1 - sum(pieces)) > 0 and draw(st.booleans()):
            pieces.append(draw(st.integers(1, room)))
        rows.append(pieces)
    return rows, seq_len, draw(st.sampled_from([2, 4]))


def plain(tokens: np.ndarray, pieces: list[int], seq_len: int) -> tuple[list[int], list[int]]:
    """Labels and piece lengths of one row, in plain Python."""
    labels, lengths, at = [IGNORED] * seq_len, [], 0
    for length in pieces:
        for i in range(at, min(at + length - 1, seq_len)):
            labels[i] = int(tokens[i + 1])
        if min(at + length, seq_len) > at:
            lengths.append(min(at + length, seq_len) - at)
        at += length
    return labels, [*lengths, seq_len - at] if at < seq_len else lengths


@given(packed(), st.integers(0, 3))
def test_a_batch_equals_plain_python(made: tuple[list[list[int]], int, int], shift: int) -> None:
    rows, seq_len, token_bytes = made
    n = len(rows)
    tokens = np.random.default_rng(n).integers(0, 2 ** (8 * token_bytes - 1), (n, seq_len + 1))
    raw = bytes(shift) + tokens.astype(f"<u{token_bytes}").tobytes() + bytes(8)
    data = np.frombuffer(raw, np.uint8)
    ends = np.cumsum([len(row) for row in rows])
    pieces = pieces_of(ends, np.array([length for row in rows for length in row], np.int64))
    order = np.arange(n)[::-1]
    address = np.uint64(data.ctypes.data + shift) + (order * token_bytes * (seq_len + 1)).astype(np.uint64)
    places = Places(address, np.full(n, pieces.ctypes.data, np.uint64), np.full(n, n), order)
    got, labels, row, length = assemble(places, token_bytes, seq_len)
    assert np.array_equal(got, tokens[order])
    for i, number in enumerate(order):
        expected = plain(tokens[number], rows[number], seq_len)
        assert (labels[i].tolist(), length[row == i].tolist()) == expected


def shards(folder: Path, count: int) -> tuple[MappedRows, np.ndarray]:
    """Shards of three rows each in files, and all their tokens."""
    tokens = np.random.default_rng(count).integers(0, 60_000, (count, ROWS, SEQ_LEN + 1)).astype("<u2")
    pieces = pieces_of(np.arange(1, ROWS + 1), np.full(ROWS, SEQ_LEN + 1))
    pieces.tofile(folder / "pieces")
    payloads: list[tuple[RowGroup, ...]] = []
    for number in range(count):
        payloads.append(write_token_shard(folder / str(number), tokens[number], row_group_rows=2).payload)
    mapped = MappedRows(payloads, 2, SEQ_LEN, lambda n: folder / str(n), lambda n: folder / "pieces")
    return mapped, tokens.reshape(-1, SEQ_LEN + 1)


@pytest.mark.parametrize("count", [1, 7, 400])
def test_rows_of_many_shards_are_read_without_descriptors(tmp_path: Path, count: int) -> None:
    mapped, tokens = shards(tmp_path, count)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = len(list(Path("/proc/self/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (before + 20, hard))
    try:
        order = np.random.default_rng(0).permutation(len(tokens))
        assert np.array_equal(mapped.rows(order), tokens[order])
        assert len(list(Path("/proc/self/fd").iterdir())) <= before + 1
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_damage_names_the_file_and_the_row_group(tmp_path: Path) -> None:
    mapped, tokens = shards(tmp_path, 5)
    path = tmp_path / "3"
    data = bytearray(path.read_bytes())
    data[data.index(tokens[3 * ROWS + 2].tobytes()) + 5] ^= 1
    path.write_bytes(data)
    assert np.array_equal(mapped.rows(np.array([9, 10])), tokens[[9, 10]])
    for _ in range(2):
        with pytest.raises(CheckFailed, match=r"/3: row group 1 is damaged\nexpected crc32"):
            mapped.rows(np.array([0, 11]))


def test_a_partition_without_shards_has_no_rows() -> None:
    mapped = MappedRows([], 2, SEQ_LEN, lambda n: Path("/nowhere"), lambda n: Path("/nowhere"))
    assert len(mapped) == 0
    with pytest.raises(IndexError):
        mapped.rows(np.array([0]))
