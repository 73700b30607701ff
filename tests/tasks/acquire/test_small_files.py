"""Small files put together: the cost follows bytes, one file more re-runs little, one bad file costs itself (B141)."""

from __future__ import annotations

import json
import random
import signal
import sys
import time
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill import plugins
from corpusmill.errors import Refused
from corpusmill.readers.warc import FileFacts
from corpusmill.schema import doc_id
from corpusmill.store import Store, open_store
from mill import cli
from tasks import acquire, extract, ingest
from tasks.acquire import SourceUnit, killers, notes
from tasks.acquire.tree import small_files
from tasks.acquire.tree.small_files import ALONE_BYTES, MOST_BYTES, MOST_FILES
from tasks.chain import build
from tasks.queries.export import rows as exported
from tasks.queries.plan import plan as make_plan
from tasks.sources import changed
from tests.servers import S3Server
from tests.tasks.acquire.reading import by_unit, recipe
from tests.tasks.test_changed import SETTLED_S
from tests.tasks.test_rows_built import RULES


def files(sizes: dict[str, int], kind: str = "jsonl") -> list[SourceUnit]:
    return [SourceUnit("s", "files", name, kind, stamp=f"{size}-x", size=size) for name, size in sizes.items()]


def groups(sizes: dict[str, int]) -> list[tuple[str, ...]]:
    return [unit.places for unit in small_files.together(files(sizes))]


def units_of(sizes: dict[str, int]) -> list[tuple[int, str, tuple[str, ...]]]:
    """Size, stamp and files of each unit: one whose file has another size is another unit."""
    return [(unit.size or 0, unit.stamp or "", unit.places) for unit in small_files.together(files(sizes))]


def put(root: Path, names: Sequence[str], text: str = "lies by the river") -> None:
    root.mkdir(exist_ok=True)
    for name in names:
        (root / name).write_text(json.dumps({"text": f"{name} {text}"}) + "\n")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "store", create=True)


def extracted(root: Path, store: Store) -> int:
    """How many units of extract ran."""
    made = recipe("jsonl", root)
    return sum(not extract.extract_file(unit, made, store)[1].reused for unit in acquire.plan(made, store))


def sizes_of(draw: random.Random, count: int, largest: int) -> dict[str, int]:
    """Files of sizes that are spread as real ones are: most are small, some nearly units of their own."""
    return {f"f{i:06d}.jsonl": min(largest, int(draw.lognormvariate(9, 3))) for i in range(count)}


@pytest.mark.parametrize(
    ("count", "largest"), [(1, 60), (100, ALONE_BYTES - 1), (10_000, 60), (10_000, ALONE_BYTES - 1), (100_000, 4000)]
)
def test_one_file_added_removed_or_changed_makes_at_most_two_other_units(count: int, largest: int) -> None:
    """Where a group becomes too full, too: every bound is met a few times on the way."""
    draw = random.Random(count)
    sizes = sizes_of(draw, count, largest)
    before = set(units_of(sizes))
    assert sorted(name for _, _, group in before for name in group) == sorted(sizes)
    assert all(len(group) <= MOST_FILES and size <= MOST_BYTES for size, _, group in before)
    assert len(before) <= 1 + count / 400 + sum(sizes.values()) / (MOST_BYTES / 3)
    for _ in range(1 if count > 1000 else 40):
        name, size = draw.choice(list(sizes)), draw.choice([0, 60, largest, 2 * ALONE_BYTES])
        without = {other: size for other, size in sizes.items() if other != name}
        others = ({**sizes, name.replace(".", "a."): size}, {**sizes, name: size}, without)
        for after in others if count < 100_000 else others[:1]:
            assert len(set(units_of(after)) - before) <= 2


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 400), st.integers(0, 10**6), st.integers(1, 40))
def test_groups_that_are_full_are_halved_and_no_other_moves(count: int, seed: int, largest: int) -> None:
    """The same arithmetic with bounds of 1,280 bytes and 48 files, 32 times the largest file and more."""
    draw = random.Random(seed)
    sizes = {f"{draw.getrandbits(32):08x}": draw.randint(0, largest) for _ in range(count)}
    most = small_files.MOST_BYTES, small_files.MOST_FILES
    small_files.MOST_BYTES, small_files.MOST_FILES = 1280, 48
    try:
        for _ in range(8):  # a history: each step is compared with the one before
            before, name = set(units_of(sizes)), draw.choice(list(sizes))
            change = draw.randrange(3)
            if change == 0 and len(sizes) > 2:
                del sizes[name]
            else:
                sizes[name if change == 1 else f"{draw.getrandbits(32):08x}"] = draw.randint(0, largest)
            after = set(units_of(sizes))
            assert len(after - before) <= 2
            assert all(len(group) <= 48 and size <= 1280 for size, _, group in after)
    finally:
        small_files.MOST_BYTES, small_files.MOST_FILES = most


def test_large_files_archives_blocks_and_trees_are_units_of_their_own() -> None:
    assert len(groups({"a": 1, "b": ALONE_BYTES, "c": 1})) == 2
    assert len(groups({"a": ALONE_BYTES - 1, "b": ALONE_BYTES - 1})) == 1
    assert len(small_files.together(files({"a": 1, "b": 1}, "warc"))) == 2
    assert len(small_files.together([SourceUnit("s", "x", name, "code") for name in "ab"])) == 2
    blocks = [SourceUnit("s", "x", "a", "jsonl", block, 2, size=9) for block in range(2)]
    assert small_files.together(blocks) == blocks
    two = [SourceUnit(source, "x", "a", "jsonl", size=9) for source in ("s", "t")]
    assert small_files.together(two) == two
    assert MOST_BYTES > 32 * ALONE_BYTES
    assert len(groups({f"{i:05d}": 0 for i in range(MOST_FILES)})) == 1
    assert len(groups({f"{i:05d}": 0 for i in range(MOST_FILES + 1)})) == 2


def test_outcomes_ids_and_faults_are_those_of_the_files_read_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, [f"{i}.jsonl" for i in range(5)])
    (tmp_path / "2.jsonl").write_bytes(b'{"text": "good"}\n\nbad\n')
    (tmp_path / "3.jsonl").write_bytes(
        b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 1\n"
    )
    made, facts = recipe("jsonl", tmp_path), FileFacts()
    ((unit, found),) = by_unit(made, facts)
    assert unit.members == tuple(f"{i}.jsonl" for i in range(5))
    assert [(o.file, o.offset, o.reason) for o in found] == [
        *(("0.jsonl", 0, None), ("1.jsonl", 0, None), ("2.jsonl", 0, None), ("2.jsonl", 18, "bad_row")),
        *(("3.jsonl", 0, "pointer"), ("4.jsonl", 0, None)),
    ]
    assert facts.faults == [{"file": "3.jsonl", "offset": 0, "reason": "pointer"}]
    assert facts.bytes == sum(file.stat().st_size for file in tmp_path.iterdir())
    assert facts.not_content == {"blank_line": 1}
    monkeypatch.setattr("tasks.acquire.tree.small_files.ALONE_BYTES", 0)
    alone = [(unit.locator, o.offset, o.reason, o.text) for unit, outcomes in by_unit(made) for o in outcomes]
    assert alone == [(o.file, o.offset, o.reason, o.text) for o in found]


def test_a_dataset_of_small_files_names_the_file_of_each_document(tmp_path: Path, store: Store) -> None:
    put(tmp_path / "root", [f"{i}.jsonl" for i in range(4)])
    (tmp_path / "root" / "bad.jsonl").write_text("[]\n")
    made = recipe("jsonl", tmp_path / "root")
    (tmp_path / "any.toml").write_text(RULES)
    lenient = {"rules": str(tmp_path / "any.toml")}, {"keep": ("*",), "min_score": 0.0}
    made = made.model_copy(
        update={
            "filter": made.filter.model_copy(update=lenient[0]),
            "language": made.language.model_copy(update=lenient[1]),
        }
    )
    done = build(made, store, lambda stage, fn, units: [fn(unit) for unit in units])
    assert done.units_run["extract"] == 1
    names = [f"{i}.jsonl" for i in range(4)]
    assert [file.locator for file in done.manifest.inputs] == [*names, "bad.jsonl"]
    assert {file.bytes for file in done.manifest.inputs} == {
        (tmp_path / "root" / n).stat().st_size for n in [*names, "bad.jsonl"]
    }
    rows = list(exported(store, done.manifest))
    assert [row["file"] for row in rows] == [*names, "bad.jsonl"]
    assert [row["doc_id"] for row in rows[:4]] == [doc_id("s", "files", name, 0).hex() for name in names]
    rejects = store.table(done.manifest.table("rejects")).to_pylist()
    assert {row["locator"] for row in rejects} <= {f"s/{name}" for name in [*names, "bad.jsonl"]}
    assert "s/bad.jsonl" in {row["locator"] for row in rejects if row["reason"] == "bad_row"}
    assert cli.run(["verify", "t", "--sources", "--store", store.uri]) == 0
    assert cli.run(["lineage", "t", "--store", store.uri]) == 0
    planned = make_plan(made, store).to_json()
    assert (planned["files"], planned["done"], planned["sources"][0]["units"]) == (5, 5, 1)
    put(tmp_path / "root", ["2.jsonl"], "has another text")
    planned = make_plan(made, store).to_json()
    assert (planned["changed"], planned["done"]) == (["s/2.jsonl"], 0)
    put(tmp_path / "root", ["2a.jsonl"])
    assert make_plan(made, store).to_json()["changed"] == ["s/2.jsonl"]
    again = build(made, store, lambda stage, fn, units: [fn(unit) for unit in units])
    assert again.changed == ("s/2.jsonl",)


def test_a_group_is_read_again_only_where_one_of_its_files_has_other_bytes(tmp_path: Path, store: Store) -> None:
    root = tmp_path / "root"
    put(root, [f"{i:03d}.jsonl" for i in range(50)])
    time.sleep(SETTLED_S)
    assert extracted(root, store) == len(acquire.plan(recipe("jsonl", root))) <= 2
    assert all(notes.known(unit, store) for unit in acquire.plan(recipe("jsonl", root)))
    assert extracted(root, store) == 0
    (root / "007.jsonl").touch()
    assert extracted(root, store) == 0
    put(root, ["007.jsonl"], "lies by the sea now")
    assert extracted(root, store) == 1
    put(root, ["007a.jsonl"])
    assert 1 <= extracted(root, store) <= 2
    (root / "007a.jsonl").unlink()
    assert extracted(root, store) == 0


def test_an_ingestion_reads_new_files_and_refuses_changed_ones(tmp_path: Path, store: Store) -> None:
    root = tmp_path / "root"

    def run() -> list[list[str]]:
        made = recipe("jsonl", root)
        done = ingest.ingest(made, store, lambda stage, fn, units: [fn(unit) for unit in units])
        return [[file.locator for file in manifest.inputs] for _, manifest in done.published]

    put(root, ["a.jsonl", "c.jsonl"])
    assert run() == [["a.jsonl", "c.jsonl"]]
    put(root, ["b.jsonl", "d.jsonl"])
    time.sleep(SETTLED_S)
    assert run() == [["b.jsonl", "d.jsonl"]]
    assert run() == []
    put(root, ["c.jsonl"], "is another one")
    with pytest.raises(Refused, match=r"1 source file has other bytes than in t-documents: s/c\.jsonl"):
        run()


def test_small_objects_of_a_bucket_are_put_together_too(
    tmp_path: Path, store: Store, s3_uri: str, s3_server: S3Server, brief_waits: None
) -> None:
    bucket, _, prefix = s3_uri.removeprefix("s3://").partition("/")

    def upload(name: str, text: str) -> None:
        body = json.dumps({"text": text}).encode()
        s3_server.client().put_object(Bucket=bucket, Key=f"{prefix}/{name}", Body=body)

    for name in "abc":
        upload(f"{name}.jsonl", f"{name} lies by the river")
    made = recipe("jsonl", s3_uri)
    (unit,) = acquire.plan(made)
    assert unit.members == ("a.jsonl", "b.jsonl", "c.jsonl")
    read, done = extract.extract_file(unit, made, store)
    assert done.receipt.counters["extract.docs_out"] == 3
    assert notes.known(unit, store) is not None
    before = extract.inputs_of(read.receipt)
    upload("b.jsonl", "b lies by the sea")
    assert changed.changed(acquire.plan(made), before, made, store) == ("s/b.jsonl",)
    assert not extract.extract_file(acquire.plan(made)[0], made, store)[1].reused


KILLER = """
import os, signal
from tasks.acquire.texts import document
VERSION = 1
def read(unit, file, config, options, facts):
    text = file.path.read_text()
    if text == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    yield document(text, options, offset=0, record_type="row", extractor="text")
"""


def test_a_killed_reader_costs_its_file_not_its_group(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "killing_source.py").write_text(KILLER)
    monkeypatch.syspath_prepend(str(tmp_path / "mine"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.delitem(sys.modules, "killing_source", raising=False)
    for cached in (plugins.module, plugins.identity):
        cached.cache_clear()
    (tmp_path / "root").mkdir()
    for i in range(5):
        (tmp_path / "root" / f"{i}.tsv").write_text("kill" if i in (1, 4) else f"text {i}")
    made = recipe("own", tmp_path / "root", pattern="*.tsv", module="killing_source")
    (unit,) = acquire.plan(made)
    worker = get_context("fork").Process(target=extract.extract_file, args=(unit, made, store))
    worker.start()
    worker.join()
    assert worker.exitcode == -signal.SIGKILL

    _, done = extract.extract_file(unit, made, store)
    assert done.receipt.counters["extract.docs_out"] == 3
    assert {reason: ended["docs"] for reason, ended in done.receipt.reasons.items()} == {"crashed": 2}
    read = store.table(done.receipt.outputs["records"], columns=["file", "reason"]).to_pylist()
    assert [row["file"] for row in read if row["reason"] == "crashed"] == ["1.tsv", "4.tsv"]
    assert list((tmp_path / killers.FOLDER).iterdir()) == []


def test_an_error_of_a_reader_leaves_no_suspect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    watch = killers.Watch("0" * 64)
    with pytest.raises(ZeroDivisionError), watch:
        watch.reads(1 // 0)
    assert killers.Watch("0" * 64).suspect is None
    with killers.Watch("1" * 64) as watch:
        watch.reads(2)
        assert killers.Watch("1" * 64).suspect == 2
