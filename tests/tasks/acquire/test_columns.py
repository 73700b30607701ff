"""Columns of rows: one bad value costs itself; the user's own columns come through, others are counted."""

from __future__ import annotations

import datetime
import gzip
import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from corpusmill.readers.warc import FileFacts
from tasks.acquire import parquet, units
from tests.tasks.acquire.reading import by_unit, outcomes, reasons, recipe

SECOND, FAR = 1_700_000_000, 99_999_999_999_999
FORM = "2023-11-14T22:13:20Z"


def hostile(data_dir: Path, name: str, to: Path) -> Path:
    (to / name).write_bytes((data_dir / "hostile" / name).read_bytes())
    return to


def written(folder: Path, columns: dict[str, Any], **options: Any) -> Path:
    pq.write_table(pa.table(columns), folder / "a.parquet", **options)
    return folder


@pytest.mark.parametrize(
    ("name", "rows", "unreadable"),
    [
        ("nanoseconds", 30, 0),
        ("far-year", 30, 1),
        ("unknown-zone", 30, 0),
        ("far-day", 30, 1),
        ("time-of-day", 30, 30),
        ("one-of-2500", 2500, 1),
    ],
)
def test_b94_a_date_without_a_form_costs_itself(
    name: str, rows: int, unreadable: int, data_dir: Path, tmp_path: Path
) -> None:
    facts = FileFacts()
    found = outcomes("parquet", hostile(data_dir, f"B94-{name}.parquet", tmp_path), facts, date="date")
    assert reasons(found) == {None: rows}
    assert sum(o.date is None for o in found) == facts.columns["date"].unreadable == unreadable
    assert facts.columns["date"].values == rows
    assert all(o.date.startswith("20") for o in found if o.date)
    assert [int((o.source_id or "").removeprefix("B94-")) for o in found] == list(range(rows))


ODD: dict[str, tuple[pa.Array, list[str | None], int]] = {
    "microseconds, far": (pa.array([SECOND * 10**6, 2**62, None], pa.timestamp("us")), [FORM, None, None], 1),
    "before the year 1": (pa.array([SECOND, -FAR, SECOND], pa.timestamp("s", tz="+25:00")), [FORM, None, FORM], 1),
    "milliseconds of date64": (
        pa.array([86_400_000, None, 2**60 // 86_400_000 * 86_400_000], pa.int64()).cast(pa.date64()),
        ["1970-01-02T00:00:00Z", None, None],
        1,
    ),
    "text": (pa.array(["2023-11-14 22:13:20", "yesterday", ""]), [FORM, None, None], 1),
    "broken text": (pa.array([b"2023-11-14T22:13:20Z", b"\xff\xfe", None]).cast(pa.binary()), [FORM, None, None], 1),
    "seconds": (pa.array([SECOND, 17, -5]), [FORM, None, None], 2),
    "decimal": (pa.array([Decimal(SECOND), Decimal(1), None]), [FORM, None, None], 1),
    "durations": (pa.array([1, 2, None], pa.duration("s")), [None] * 3, 2),
    "lists": (pa.array([["2023-11-14"], [], None]), [None] * 3, 2),
    "structs": (pa.array([{"a": 1}, {"a": 2}, None]), [None] * 3, 2),
    "booleans": (pa.array([True, False, None]), [None] * 3, 2),
    "a dictionary": (pa.array([FORM, "never", FORM]).dictionary_encode(), [FORM, None, FORM], 1),
    "a dictionary of far times": (
        pa.array([SECOND * 1000, FAR * 1000, None], pa.timestamp("ms")).dictionary_encode(),
        [FORM, None, None],
        1,
    ),
    "nothing": (pa.nulls(3), [None] * 3, 0),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("version", ["1.0", "2.6"])
def test_every_kind_of_date_column_keeps_the_texts(name: str, version: str, tmp_path: Path) -> None:
    dates, forms, unreadable = ODD[name]
    try:
        written(tmp_path, {"text": ["a text", "b text", "c text"], "date": dates}, version=version)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as err:
        pytest.skip(f"cannot be written so: {err}")
    facts = FileFacts()
    found = outcomes("parquet", tmp_path, facts)
    assert [(o.text, o.date) for o in found] == list(zip(("a text", "b text", "c text"), forms, strict=True))
    assert facts.columns["date"].unreadable == unreadable


def test_b95_bytes_are_read_as_utf_8(data_dir: Path, tmp_path: Path) -> None:
    assert reasons(outcomes("parquet", hostile(data_dir, "B95-bytes-as-text.parquet", tmp_path))) == {None: 30}


TEXTS = [b"gr\xc3\xbcn", b"\xff\xfe\x00", None, b"blau", b""]


@pytest.mark.parametrize(
    "kind",
    [
        pa.binary(),
        pa.large_binary(),
        pa.binary_view(),
        pa.dictionary(pa.int32(), pa.binary()),
        pa.string(),
        pa.large_string(),
    ],
    ids=str,
)
def test_a_text_that_is_not_utf_8_costs_its_row(kind: pa.DataType, tmp_path: Path) -> None:
    values = pa.array(TEXTS, pa.binary())
    values = values.view(kind) if kind == pa.string() else values
    values = values.cast(pa.large_binary()).view(kind) if kind == pa.large_string() else values.cast(kind)
    found = outcomes("parquet", written(tmp_path, {"text": values}))
    assert [o.text or o.reason for o in found] == ["grün", "bad_encoding", "no_text_column", "blau", "empty_body"]


@pytest.mark.parametrize(
    "kind", [pa.int64(), pa.float64(), pa.list_(pa.string()), pa.bool_(), pa.timestamp("ms")], ids=str
)
def test_a_text_column_of_another_type_is_named_with_it(kind: pa.DataType, tmp_path: Path) -> None:
    values = pa.array([["a"], ["b"]], kind) if pa.types.is_list(kind) else pa.array([1, 0]).cast(kind)
    facts = FileFacts()
    found = outcomes("parquet", written(tmp_path, {"text": values, "other": ["x", None]}), facts)
    assert reasons(found) == {"no_text_column": 2}
    assert facts.columns["text"].type.partition("<")[0] == str(kind).partition("<")[0]
    assert (facts.columns["text"].unreadable, facts.columns["other"].values) == (2, 1)


def test_a_bad_value_costs_its_row_in_a_file_of_ten_thousand(tmp_path: Path) -> None:
    dates = pa.array([SECOND + i if i % 1000 else FAR for i in range(10_000)], pa.timestamp("s"))
    written(tmp_path, {"text": [f"text {i}" for i in range(10_000)], "date": dates}, row_group_size=3000)
    facts = FileFacts()
    found = outcomes("parquet", tmp_path, facts)
    assert [o.offset for o in found] == list(range(10_000))
    assert (sum(o.date is None for o in found), facts.columns["date"].unreadable) == (10, 10)


ROWS = [{"id": i, "content": {"text": f'text {i} }} ] " \\', "n": i}, "meta": {"score": i / 2}} for i in range(30)]
SHAPES = {
    "lines": "\n".join(map(json.dumps, ROWS)),
    "one array in a line": json.dumps(ROWS),
    "an array over many lines": json.dumps(ROWS, indent=2),
    "an array, an object a line": "[\n" + ",\n".join(map(json.dumps, ROWS)) + "\n]\n",
    "objects over many lines": "\n".join(json.dumps(row, indent=1) for row in ROWS),
    "objects over many lines, commas between": ",\n".join(json.dumps(row, indent=4) for row in ROWS),
    "arrays, one behind the other": json.dumps(ROWS[:7], indent=1) + "\n" + json.dumps(ROWS[7:]),
    "a byte order mark and blanks": "\ufeff \n\n" + json.dumps(ROWS, indent="\t"),
    "objects that begin on the line of their first key": "\n".join(
        json.dumps(row, indent=1).replace("{\n", "{ ", 1) for row in ROWS
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_b104_rows_in_any_shape_of_json_are_rows(shape: str, suffix: str, tmp_path: Path) -> None:
    data = SHAPES[shape].encode()
    (tmp_path / f"a.jsonl{suffix}").write_bytes(gzip.compress(data) if suffix else data)
    found = outcomes("jsonl", tmp_path, text="content.text", columns=["meta.score"])
    assert [o.text for o in found] == [row["content"]["text"] for row in ROWS]
    assert [json.loads(o.columns or "") for o in found] == [{"meta.score": row["meta"]["score"]} for row in ROWS]
    assert len({o.offset for o in found}) == 30


def test_objects_amid_other_values_are_rows_and_the_rest_is_counted(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('[{"text": "one"}, 17, "a \\" string", {"text": "two"},\n{"text": "cut')
    assert [o.text or o.reason for o in outcomes("jsonl", tmp_path)] == ["one", "bad_row", "two", "truncated"]
    (tmp_path / "a.jsonl").write_text('{"text": "cut\n{"text": "one"}\n[1]\n{"text": "two"}\n')
    assert [o.text or o.reason for o in outcomes("jsonl", tmp_path)] == ["bad_row", "one", "bad_row", "two"]
    (tmp_path / "a.jsonl").write_text('{\n{"text": "one"}\n{"text": "two"}\n')
    assert [o.text or o.reason for o in outcomes("jsonl", tmp_path)] == ["bad_row", "one", "two"]


def test_one_array_is_read_once_however_many_blocks_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(ROWS, indent=1))
    monkeypatch.setattr(units, "BLOCK_BYTES", 700)
    blocks = by_unit(recipe("jsonl", tmp_path, text="content.text"))
    assert len(blocks) > 3
    assert [o.text for _, found in blocks for o in found] == [row["content"]["text"] for row in ROWS]


def test_too_large_objects_are_not_held(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        json.dumps([{"text": "one"}, {"text": "x" * 4_000_000}, {"text": "two"}], indent=1)
    )
    ((_, found),) = by_unit(recipe("jsonl", tmp_path), max_payload_bytes=1024)
    assert [o.text or o.reason for o in found] == ["one", "too_large", "two"]


def test_columns_within_columns_are_named_by_dots_in_parquet(tmp_path: Path) -> None:
    inner = [{"text": f"inner {i}", "who": {"name": f"n{i}"}} if i != 2 else None for i in range(4)]
    written(tmp_path, {"content": inner, "content.title": ["called so"] * 4, "other": [1, 2, None, None]})
    facts = FileFacts()
    found = outcomes("parquet", tmp_path, facts, text="content.text", title="content.title", author="content.who.name")
    assert [(o.text, o.title, o.author) for o in found if o.text] == [
        (f"inner {i}", "called so", f"n{i}") for i in (0, 1, 3)
    ]
    assert found[2].reason == "no_text_column"
    left_out = {name: column.values for name, column in facts.columns.items() if column.becomes is None}
    assert left_out == {"other": 2}


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_own_columns_come_through_and_others_are_counted(kind: str, tmp_path: Path) -> None:
    row = {
        "text": "a text", "id": 7, "title": "Title", "author": ["Ann", "Bo"], "date": "31.12.2019", "license": "cc0",
        "score": 0.5, "tags": ["a", "b"], "metadata": {"n": [1, None]}, "none": None,
    }  # fmt: skip
    rows = [row, {**row, "score": None, "title": "x" * 70_000, "date": "never"}]
    if kind == "jsonl":
        (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    else:
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    facts = FileFacts()
    first, second = outcomes(kind, tmp_path, facts, columns=["score", "metadata", "gone"])
    assert (first.source_id, first.title, first.author) == ("7", "Title", "Ann, Bo")
    assert (first.date, first.licence) == ("2019-12-31T00:00:00Z", "cc0")
    assert json.loads(first.columns or "") == {"score": 0.5, "metadata": {"n": [1, None]}}
    assert json.loads(second.columns or "") == {"metadata": {"n": [1, None]}}
    assert (second.title, second.date) == (None, None)
    seen = {name: (c.becomes, c.values, c.unreadable) for name, c in facts.columns.items()}
    assert seen["tags"] == (None, 2, 0)
    assert seen["title"] == ("title", 2, 1)
    assert seen["date"] == ("date", 2, 1)
    assert seen["gone"] == ("columns", 0, 0)
    assert seen["score"] == ("columns", 1, 0)
    assert facts.columns["date"].example == "never"
    assert seen.get("none", (None, 0, 0)) == (None, 0, 0)


def test_b151_columns_are_counted_by_name(data_dir: Path, tmp_path: Path) -> None:
    facts = FileFacts()
    hostile(data_dir, "B151-columns.jsonl", tmp_path)
    found = outcomes("jsonl", tmp_path, facts, id="id", url="url", date="date")
    assert {(o.title, o.licence) for o in found} >= {("Title 0", "cc-by"), ("Title 1", "cc0")}
    left_out = {name: column.values for name, column in facts.columns.items() if column.becomes is None}
    assert left_out == {"metadata": 8, "late_key": 1}


@pytest.mark.parametrize("number", [1, 100, 10_000])
def test_any_number_of_columns_is_counted_in_bounded_space(number: int, tmp_path: Path) -> None:
    lines = (json.dumps({"text": "t", f"column {i}": i, "last": None}) for i in range(number))
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    facts = FileFacts()
    assert reasons(outcomes("jsonl", tmp_path, facts)) == {None: number}
    assert len(facts.columns) <= 1001
    assert sum(column.values for name, column in facts.columns.items() if name != "text") == number


def test_own_values_are_json_whatever_they_are(tmp_path: Path) -> None:
    wide = {
        "text": ["t"],
        "when": pa.array([datetime.datetime(2020, 1, 2, 3)], pa.timestamp("us")),
        "day": pa.array([2**30], pa.int32()).cast(pa.date32()),
        "money": [Decimal("1.50")],
        "raw": [b"bytes"],
        "broken": [b"\xff"],
        "deep": [{"at": datetime.time(1, 2), "list": [b"x", None]}],
        "nan": [float("nan")],
        "nul": ["a\0b"],
    }
    facts = FileFacts()
    (found,) = outcomes("parquet", written(tmp_path, wide), facts, columns=[name for name in wide if name != "text"])
    assert json.loads(found.columns or "") == {
        "when": "2020-01-02T03:00:00Z",
        "money": "1.50",
        "raw": "bytes",
        "deep": {"at": "01:02:00", "list": ["x", None]},
        "nul": "ab",
    }
    assert {name for name, column in facts.columns.items() if column.unreadable} == {"day", "broken", "nan"}


def dictionary_bomb(path: Path) -> None:
    """One string of 1 MiB, 2,048 rows that point to it (B135)."""
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 2048, pa.int32()), pa.array(["a" * 2**20]))
    pq.write_table(pa.table({"text": text}), path, compression="zstd")


def plain_dictionary_bomb(path: Path) -> None:
    """The same, without a word of Arrow's that it is a dictionary."""
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 2048, pa.int32()), pa.array(["a" * 2**20]))
    pq.write_table(pa.table({"text": text}), path, compression="gzip", store_schema=False)


def long_dictionary_bomb(path: Path) -> None:
    """One string of 40 MiB, 500 rows that point to it."""
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 500, pa.int32()), pa.array(["a" * (40 * 2**20)]))
    pq.write_table(pa.table({"text": text}), path, compression="brotli", dictionary_pagesize_limit=2**30)


def prefix_bomb(path: Path) -> None:
    """Strings that repeat the one before (DELTA_BYTE_ARRAY)."""
    column = pa.array(["a" * 2**20] * 100)
    options: Any = {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}}
    pq.write_table(pa.table({"text": column}), path, compression="snappy", **options)


def page_bomb(path: Path) -> None:
    """One value of 120 MiB in a page of some kB, and a good row in a row group of its own."""
    rows = pa.table({"text": ["good", "a" * (120 * 2**20)]})
    pq.write_table(rows, path, compression="zstd", use_dictionary=False, row_group_size=1)


BOMBS = {
    dictionary_bomb: (2048, {None: 64, "bomb": 1984}),
    plain_dictionary_bomb: (2048, {None: 64, "bomb": 1984}),
    long_dictionary_bomb: (500, {"too_large": 2, "bomb": 498}),
    prefix_bomb: (100, {None: 64, "bomb": 36}),
    page_bomb: (2, {None: 1, "bomb": 1}),
}


def read_apart(kind: str, root: Path) -> tuple[dict[str | None, int], int]:
    """Outcomes of a source by reason, read in a process of its own, and that process's peak in MiB."""
    code = (
        "import json, sys; from collections import Counter; from corpusmill.config import parse_recipe\n"
        "from corpusmill.readers.outcomes import ReadOptions; from corpusmill.readers.warc import FileFacts\n"
        "from tasks import acquire\n"
        "made = parse_recipe({'name': 't', 'source': {'s': {'kind': sys.argv[2], 'root': sys.argv[1]}}}, 'test')\n"
        "(unit,) = acquire.plan(made)\n"
        "with acquire.fetched(unit, made) as file:\n"
        "    found = Counter(o.reason for o in acquire.read(unit, file, made, ReadOptions(), FileFacts()))\n"
        "peak = next(int(line.split()[1]) // 1024 for line in open('/proc/self/status') if line.startswith('VmHWM'))\n"
        "print(json.dumps([sorted(found.items(), key=str), peak]))"
    )
    done = subprocess.run([sys.executable, "-c", code, root, kind], capture_output=True, text=True, check=True)
    found, mebibytes = json.loads(done.stdout)
    return dict(found), mebibytes


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.__name__)
def test_b135_a_bomb_in_parquet_gives_every_row_an_outcome_in_bounded_memory(bomb: Any, tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    bomb(tmp_path / "s" / "a.parquet")
    found, mebibytes = read_apart("parquet", tmp_path / "s")
    rows, expected = BOMBS[bomb]
    assert sum(found.values()) == rows
    assert found == expected
    assert mebibytes < 600


@pytest.mark.parametrize("value", ["{},", "[],", '{"a":1},', "[[],"])
def test_a_line_of_nothing_but_brackets_is_a_bomb_and_the_next_is_read(value: str, tmp_path: Path) -> None:
    many = (value * (30 * 2**20 // len(value)))[:-1] + "]" * (value == "[[],") * (30 * 2**20 // 4)
    (tmp_path / "a.jsonl").write_text('{"text": "good", "x": [' + many + ']}\n{"text": "after"}\n', encoding="ascii")
    found, mebibytes = read_apart("jsonl", tmp_path)
    assert found in ({"bomb": 1, None: 1}, {"too_large": 1, None: 1})
    assert mebibytes < 600


def test_a_file_whose_footer_is_too_large_to_look_at_is_read_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "row_groups", lambda path: None)
    written(tmp_path, {"text": [f"text {i}" for i in range(100)]})
    assert [o.text for o in outcomes("parquet", tmp_path)] == [f"text {i}" for i in range(100)]


@pytest.mark.parametrize("seed", range(24))
def test_whatever_bytes_are_broken_nothing_but_outcomes_comes_of_it(seed: int, tmp_path: Path) -> None:
    import random

    written(tmp_path, {"text": [f"text {i}" for i in range(50)], "n": list(range(50))}, write_page_checksum=True)
    data, draw = bytearray((tmp_path / "a.parquet").read_bytes()), random.Random(seed)
    for _ in range(1 + seed % 5):
        data[draw.randrange(len(data) - 200 if seed % 2 else 4, len(data))] = draw.randrange(256)
    (tmp_path / "a.parquet").write_bytes(data)
    code = (
        "import sys; from tests.tasks.acquire.reading import outcomes, reasons\n"
        "print(reasons(outcomes('parquet', sys.argv[1])))"
    )
    if seed < 3:  # Arrow may end the process where metadata are broken: the others show that ours does not raise
        assert subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, check=False).returncode == 0
    from corpusmill.readers.parquet_layout import Malformed, largest_page, row_groups

    try:
        with (tmp_path / "a.parquet").open("rb") as file:
            for group in row_groups(tmp_path / "a.parquet") or ():
                assert all(len(largest_page(file, chunk)) == 2 for chunk in group)
    except Malformed:
        pass


def test_the_layout_of_a_file_is_what_arrow_says_of_it(tmp_path: Path) -> None:
    from corpusmill.readers.parquet_layout import largest_page, row_groups

    table = {"text": [f"text {i}" * 50 for i in range(5000)], "n": [i if i % 3 else None for i in range(5000)]}
    written(tmp_path, table, row_group_size=1700, data_page_size=20_000)
    about = pq.read_metadata(tmp_path / "a.parquet")
    groups = row_groups(tmp_path / "a.parquet") or []
    assert len(groups) == about.num_row_groups
    with (tmp_path / "a.parquet").open("rb") as file:
        for i, chunks in enumerate(groups):
            for j, chunk in enumerate(chunks):
                said = about.row_group(i).column(j)
                assert (chunk.path, chunk.end - chunk.begin) == (said.path_in_schema, said.total_compressed_size)
                assert chunk.begin == min(said.data_page_offset, said.dictionary_page_offset or said.data_page_offset)
                assert chunk.nulls == said.statistics.null_count
                assert 0 < largest_page(file, chunk)[0] < 2 * 2**20
    assert pc.sum(pa.array([chunk.nulls for chunks in groups for chunk in chunks])).as_py() == 1667


def nulls(path: Path, count: int, texts: int = 0, **options: Any) -> None:
    """A row group of nulls, with some texts among them and, where there are texts, numbers beside them."""
    column: list[str | None] = [None] * count
    for i in range(texts):
        column[i * count // texts] = f"text {i} of a sparse column"
    table = {"text": pa.array(column, pa.string())} | ({"n": list(range(count))} if texts else {})
    pq.write_table(pa.table(table), path, **options)


@pytest.mark.parametrize("options", [{}, {"row_group_size": 40_000}, {"compression": "zstd", "use_dictionary": False}])
def test_far_more_rows_than_a_file_has_bytes_are_one_outcome_and_a_count(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of a billion nulls takes some kB, and took hours."""
    monkeypatch.setattr(parquet, "FREE_ROWS", 1000)
    nulls(tmp_path / "a.parquet", 200_000, **options)
    facts = FileFacts()
    found = reasons(outcomes("parquet", tmp_path, facts))
    listed = max(1000, 2 * (tmp_path / "a.parquet").stat().st_size)
    groups = 200_000 // options.get("row_group_size", 200_000)
    assert found == {"no_text_column": listed, "bomb": groups}
    assert facts.counts["rows:bomb"] + listed == 200_000
    assert len(facts.faults) == groups


def test_a_footer_that_promises_rows_which_are_not_there_is_bounded_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "FREE_ROWS", 1000)
    nulls(tmp_path / "a.parquet", 30_000, use_dictionary=False)
    data = bytearray((tmp_path / "a.parquet").read_bytes())
    data[4:60] = bytes(56)  # the first page's head
    (tmp_path / "a.parquet").write_bytes(data)
    facts = FileFacts()
    found = reasons(outcomes("parquet", tmp_path, facts))
    assert set(found) == {"damaged"}
    assert found["damaged"] - 1 + facts.counts["rows:damaged"] == 30_000
    assert found["damaged"] < 5000


def test_sparse_columns_are_read_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "FREE_ROWS", 1000)
    nulls(tmp_path / "a.parquet", 50_000, texts=25, compression="zstd")
    facts = FileFacts()
    found = outcomes("parquet", tmp_path, facts)
    assert [o.text for o in found if o.text] == [f"text {i} of a sparse column" for i in range(25)]
    assert reasons(found) == {None: 25, "no_text_column": 49_975}
    assert not facts.counts
