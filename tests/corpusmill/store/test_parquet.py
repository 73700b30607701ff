"""Tables on disk: the same rows give the same bytes however they came, row groups are bounded, pages are checked."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.canonical import content_digest, sha256
from corpusmill.errors import CheckFailed
from corpusmill.store import TableWriter
from corpusmill.store.parquet import read_batches, read_table, row_bytes

SCHEMA = pa.schema(
    [
        pa.field("doc_id", pa.binary(4), nullable=False),
        ("url", pa.string()),
        ("text", pa.large_string()),
        ("score", pa.float64()),
        ("lens", pa.list_(pa.uint32())),
    ]
)


def rows(count: int) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "doc_id": n.to_bytes(4, "big"),
                "url": None if n % 7 == 0 else f"http://host{n % 3}/{n}",
                "text": None if n % 5 == 0 else "wort " * (n % 40),
                "score": n / 3,
                "lens": list(range(n % 4)),
            }
            for n in range(count)
        ],
        SCHEMA,
    )


TABLE = rows(300)


def write(path, pieces, row_group_bytes=4_000, schema=SCHEMA):
    path.unlink(missing_ok=True)
    with TableWriter(path, schema, row_group_bytes) as out:
        for piece in pieces:
            out.write(piece)
    return out.draft


@settings(max_examples=25)
@given(st.lists(st.integers(0, 300), max_size=8), st.booleans())
def test_bytes_do_not_depend_on_how_the_rows_came(tmp_path_factory, cuts, dictionary):
    folder = tmp_path_factory.mktemp("parquet", numbered=True)
    edges = [0, *sorted(cuts), 300]
    pieces = [TABLE.slice(start, stop - start) for start, stop in itertools.pairwise(edges)]
    if dictionary:
        pieces = [
            piece.set_column(1, "url", piece["url"].combine_chunks().dictionary_encode()).select(SCHEMA.names[::-1])
            for piece in pieces
        ]
    one, other = write(folder / "a", [TABLE]), write(folder / "b", pieces)
    assert (one.digest, one.content, one.rows) == (other.digest, other.content, other.rows)
    assert other.content == content_digest(TABLE)


def test_a_draft_is_the_file_its_digests_and_its_sizes(tmp_path):
    draft = write(tmp_path / "a", [TABLE])
    data = draft.path.read_bytes()
    assert (draft.digest, draft.size, draft.rows) == (sha256(data), len(data), 300)
    assert read_table(draft.path, None, "a") == TABLE
    assert pa.Table.from_batches(read_batches(draft.path, ["score", "url"], 64, "a")) == TABLE.select(["score", "url"])


def test_row_groups_are_cut_where_the_bound_is_crossed(tmp_path):
    draft = write(tmp_path / "a", [TABLE], row_group_bytes=4_000)
    meta = pq.ParquetFile(draft.path).metadata
    sizes, start = row_bytes(TABLE.combine_chunks().to_batches()[0]), 0
    for group in range(meta.num_row_groups):
        stop = start + meta.row_group(group).num_rows
        taken = int(sizes[start:stop].sum())
        assert taken >= 4_000 or group == meta.num_row_groups - 1
        assert taken - int(sizes[stop - 1]) < 4_000
        start = stop
    assert start == 300
    assert meta.num_row_groups > 5


def test_a_row_wider_than_a_row_group_is_a_group_of_its_own(tmp_path):
    table = pa.table({"text": pa.array(["a", "b" * 10_000, "c", "d" * 10_000], pa.large_string())})
    draft = write(tmp_path / "a", [table], 1_000, table.schema)
    meta = pq.ParquetFile(draft.path).metadata
    assert [meta.row_group(group).num_rows for group in range(meta.num_row_groups)] == [2, 2]
    assert read_table(draft.path, None, "a") == table


def test_an_empty_table_keeps_its_schema(tmp_path):
    draft = write(tmp_path / "a", [])
    assert draft.rows == 0
    assert read_table(draft.path, None, "a") == TABLE.slice(0, 0)
    assert list(read_batches(draft.path, None, 10, "a")) == []


def test_row_bytes_count_values_of_every_type():
    batch = pa.record_batch(
        {
            "fixed": pa.array([b"1234"] * 3, pa.binary(4)),
            "text": pa.array(["abc", None, "é"]),
            "flag": pa.array([True, None, False]),
            "lists": pa.array([["a", "bc"], None, []], pa.list_(pa.large_string())),
            "vector": pa.array([[1.0, 2.0]] * 3, pa.list_(pa.float32(), 2)),
            "pair": pa.array([{"a": 1, "b": "xy"}] * 3, pa.struct([("a", pa.int16()), ("b", pa.string())])),
        }
    )
    assert row_bytes(batch).tolist() == [4 + 3 + 1 + 3 + 8 + 4, 4 + 0 + 1 + 0 + 8 + 4, 4 + 2 + 1 + 0 + 8 + 4]
    assert row_bytes(batch.slice(2)).tolist() == [19]


@pytest.mark.parametrize(
    ("piece", "says"),
    [
        (TABLE.drop_columns(["url"]), "columns"),
        (TABLE.append_column("more", pa.nulls(300)), "columns"),
        (TABLE.set_column(0, "doc_id", pa.nulls(300, pa.binary(4))), "'doc_id' has 300 nulls"),
    ],
)
def test_rows_that_do_not_fit_the_schema_are_refused_and_leave_no_file(tmp_path, piece, says):
    with pytest.raises(ValueError, match=says):
        write(tmp_path / "a", [TABLE, piece])
    assert list(tmp_path.iterdir()) == []


def test_an_exception_inside_the_block_leaves_no_file(tmp_path):
    def ours():
        yield TABLE
        raise RuntimeError("ours")

    with pytest.raises(RuntimeError, match="ours"):
        write(tmp_path / "a", ours())
    assert list(tmp_path.iterdir()) == []


def test_flipped_bits_anywhere_in_the_pages_are_caught_without_the_files_digest(tmp_path):
    draft = write(tmp_path / "a", [TABLE], row_group_bytes=1 << 20)
    data = draft.path.read_bytes()
    footer = int.from_bytes(data[-8:-4], "little") + 8
    wrong = 0
    for position in range(4, len(data) - footer, 41):
        flipped = bytearray(data)
        flipped[position] ^= 1 << position % 8
        try:
            table = read_table(pa.py_buffer(bytes(flipped)), None, "a")
        except CheckFailed:
            continue
        wrong += table != TABLE
    assert wrong == 0


@pytest.mark.long
def test_text_beyond_two_gibibytes_in_one_table(tmp_path):
    text = pa.array(["x" * (1 << 20)] * 16, pa.large_string())
    table = pa.table({"text": pa.chunked_array([text] * 136)})
    assert table.nbytes > 2**31
    draft = write(tmp_path / "a", [table.combine_chunks()], 64 << 20, table.schema)
    assert sum(batch.num_rows for batch in read_batches(draft.path, None, 16, "a")) == 16 * 136
    assert draft.content == content_digest(table)
