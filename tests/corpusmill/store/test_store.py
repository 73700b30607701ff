"""What the store promises, on a folder and on a real S3 server alike."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from corpusmill.canonical import canonical_json, sha256
from corpusmill.errors import CheckFailed, NotFound, Refused, UsageError
from corpusmill.store import Output, Store, Unit, open_store, reader
from tests.corpusmill.store.smallrun import inconsistencies, small_run

TABLE = pa.table(
    {
        "doc_id": pa.array([b"a" * 16, b"b" * 16, b"c" * 16], pa.binary(16)),
        "text": pa.array(["eins", None, "drei"], pa.large_string()),
        "lens": pa.array([[1, 2], [], [3]], pa.list_(pa.uint32())),
    }
)
UNIT = Unit("extract", 1, {"mode": "fast", "bound": 0.65}, ("input",), models={"lid": "0" * 64})


def commit(store: Store, unit: Unit = UNIT, table: pa.Table = TABLE, **more):
    return store.commit(unit, {"documents": store.draft_table(table)}, **more)


# units and receipts


def test_the_key_of_a_unit_is_that_of_its_six_fields():
    assert UNIT.key == sha256(
        b'{"config":{"bound":0.65,"mode":"fast"},"inputs":["input"],"libraries":{},"models":{"lid":"'
        + b"0" * 64
        + b'"},'
        b'"stage":"extract","version":1}'
    )


def test_a_committed_unit_is_found_with_everything_that_was_said_of_it(store):
    assert store.receipt(UNIT) is None
    said = {
        "counters": {"docs": 3},
        "reasons": {"no_text": {"docs": 1, "bytes": 20}},
        "facts": {"locator": "a/b.warc.gz", "share": 0.5},
        "versions": {"pyarrow": pa.__version__},
    }
    receipt = store.commit(UNIT, {"documents": store.draft_table(TABLE), "card": store.draft_bytes(b"# card")}, **said)
    again = open_store(store.uri).receipt(UNIT)
    assert again == receipt == store.receipt(UNIT)
    assert (again.stage, again.key, again.counters, again.reasons) == (
        "extract",
        UNIT.key,
        said["counters"],
        said["reasons"],
    )
    assert (again.facts, again.versions) == (said["facts"], said["versions"])
    assert again.outputs["documents"].rows == 3
    assert again.outputs["card"] == Output(
        f"objects/{sha256(b'# card')[:2]}/{sha256(b'# card')}", sha256(b"# card"), None, 6, None
    )


def test_the_receipt_names_its_unit_and_holds_neither_time_nor_host_nor_path(store):
    commit(store)
    stored = store.get(f"receipts/extract/{UNIT.key}.1")
    assert b'"unit":' + canonical_json(UNIT.to_json()) in stored
    for private in (os.uname().nodename, str(Path.cwd()), os.environ.get("USER", "root/")):
        assert private.encode() not in stored


def test_of_two_results_the_first_counts_and_the_difference_is_recorded(store):
    first = commit(store)
    assert commit(open_store(store.uri)) == first
    assert store.list("runs/") == []
    assert commit(open_store(store.uri), table=TABLE.slice(1)) == first
    assert len(store.list(f"runs/divergences/extract/{UNIT.key}.")) == 1
    assert len(store.list("receipts/")) == 1


def test_a_receipt_whose_objects_are_gone_is_a_miss_and_is_repaired(store):
    first = commit(store)
    store.backend.delete(first.outputs["documents"].name)
    fresh = open_store(store.uri)
    assert fresh.receipt(UNIT) is None
    assert commit(fresh) == first  # the same bytes again: the old receipt holds again
    store.backend.delete(first.outputs["documents"].name)
    other = commit(open_store(store.uri), table=TABLE.slice(1))  # other bytes: a second receipt, the old one stays
    assert store.list("receipts/") == [f"receipts/extract/{UNIT.key}.1", f"receipts/extract/{UNIT.key}.2"]
    assert open_store(store.uri).receipt(UNIT) == other


@pytest.mark.parametrize("change", [lambda data: data[:-9], lambda data: data.replace(b'"docs":3', b'"docs":4')])
def test_a_torn_or_edited_receipt_is_reported(store, change):
    commit(store, counters={"docs": 3})
    name = f"receipts/extract/{UNIT.key}.1"
    data = store.get(name)
    store.backend.delete(name)
    store.create(name, change(data))
    with pytest.raises(CheckFailed, match="damaged"):
        open_store(store.uri).receipt(UNIT)


def test_scratch_files_are_gone_after_a_commit_and_a_users_file_stays(store, tmp_path):
    own, theirs = store.draft_bytes(b"own"), tmp_path / "theirs"
    theirs.write_bytes(b"theirs")
    receipt = store.commit(UNIT, {"own": own, "theirs": store.draft_file(theirs, content="c" * 64, rows=7)})
    assert not own.path.exists()
    assert theirs.exists()
    assert (receipt.outputs["theirs"].content, receipt.outputs["theirs"].rows) == ("c" * 64, 7)


# reads


def test_tables_come_back_as_they_were_whole_by_column_and_in_batches(store):
    output = commit(store).outputs["documents"]
    assert store.table(output) == TABLE
    assert store.table(output, ["lens", "doc_id"]) == TABLE.select(["lens", "doc_id"])
    batches = list(store.batches(output, ["text"], batch_rows=2))
    assert [batch.num_rows for batch in batches] == [2, 1]
    assert pa.Table.from_batches(batches) == TABLE.select(["text"])
    with pytest.raises(KeyError):
        store.table(output, ["nope"])


def test_a_verified_local_file_is_there_for_whom_needs_a_path(store, tmp_path, monkeypatch):
    output = store.commit(UNIT, {"data": store.draft_bytes(b"data" * 1000)}).outputs["data"]
    assert store.local_path(output).read_bytes() == store.bytes(output) == b"data" * 1000
    monkeypatch.setenv("CORPUSMILL_CACHE", str(tmp_path / "cache"))
    path = open_store(store.uri).local_path(output)
    assert path.read_bytes() == b"data" * 1000
    assert store.backend.local(output.name) in (path, None)


def test_a_copy_in_the_cache_that_went_bad_is_fetched_again(s3_store, tmp_path, monkeypatch):
    monkeypatch.setenv("CORPUSMILL_CACHE", str(tmp_path / "cache"))
    output = s3_store.commit(UNIT, {"data": s3_store.draft_bytes(b"data" * 1000)}).outputs["data"]
    path = s3_store.local_path(output)
    path.write_bytes(b"dada" * 1000)
    reader._verified.clear()  # as in the next process
    assert s3_store.local_path(output).read_bytes() == b"data" * 1000
    assert [file.name for file in (tmp_path / "cache").rglob("*") if file.is_file() and file.name != "owner"] == [
        output.digest
    ]


def flip(store: Store, output: Output) -> None:
    """One bit of the stored object, as a bad disk or an intruder would."""
    data = bytearray(store.get(output.name))
    data[len(data) // 2] ^= 16
    if path := store.backend.local(output.name):
        path.write_bytes(data)
    else:
        store.backend.client.put_object(
            Bucket=store.backend.bucket, Key=store.backend.prefix + output.name, Body=bytes(data)
        )


def test_a_flipped_bit_is_reported_by_every_reader(store, tmp_path, monkeypatch):
    big = pa.table({"text": pa.array([f"{n} " * 50 for n in range(2000)], pa.large_string())})
    output = commit(store, table=big).outputs["documents"]
    flip(store, output)
    reader._verified.clear()
    readers = {
        "table": lambda: store.table(output),
        "batches": lambda: list(store.batches(output)),
        "bytes": lambda: store.bytes(output),
        "local_path": lambda: store.local_path(output),
    }
    for cache in (None, str(tmp_path / "cache")):
        if cache:
            monkeypatch.setenv("CORPUSMILL_CACHE", cache)
        for read in readers.values():
            with pytest.raises(CheckFailed, match="damaged") as caught:
                read()
            assert output.name in str(caught.value)
    with pytest.raises(Refused, match="damaged"):
        commit(open_store(store.uri), table=big)


def test_a_bit_flipped_after_the_file_was_verified_is_caught_by_its_page(folder_store):
    big = pa.table({"text": pa.array([f"{n} " * 50 for n in range(2000)], pa.large_string())})
    output = commit(folder_store, table=big).outputs["documents"]
    folder_store.table(output)
    flip(folder_store, output)
    with pytest.raises(CheckFailed, match="damaged"):
        folder_store.table(output)
    with pytest.raises(CheckFailed, match="damaged"):
        list(folder_store.batches(output))


def test_missing_objects_and_names_are_not_found(store, tmp_path):
    gone = Output(f"objects/ab/ab{'0' * 62}", "ab" + "0" * 62, None, 1, None)
    for read in (store.table, store.bytes, store.local_path):
        with pytest.raises(NotFound):
            read(gone)
    with pytest.raises(NotFound):
        store.get("runs/nothing")
    with pytest.raises(NotFound):
        store.get_file("runs/nothing", tmp_path / "file")
    assert list(tmp_path.glob("tmp*")) == []
    assert not store.exists("runs/nothing")


def test_a_reference_whose_name_is_not_of_its_digest_is_never_followed(store):
    output = commit(store).outputs["documents"]
    for name in ("STORE.json", "../../etc/passwd", f"objects/ab/ab{'0' * 62}"):
        with pytest.raises(CheckFailed):
            store.bytes(Output(name, output.digest, None, output.size, None))


# names


def test_create_is_first_wins_and_equal_bytes_are_ours(store, tmp_path):
    assert store.create("runs/x/claim.1", b"one")
    assert store.create("runs/x/claim.1", b"one")
    assert not store.create("runs/x/claim.1", b"two")
    assert store.get("runs/x/claim.1") == b"one"
    file = tmp_path / "file"
    file.write_bytes(b"f" * 9_000_000)
    assert store.create_file("checkpoints/r/000010/__0_0.distcp", file)
    assert store.create_file("checkpoints/r/000010/__0_0.distcp", file)
    assert store.create("checkpoints/r/000010/.metadata", b"m")
    assert store.create("checkpoints/r/000010/COMMIT.json", b"{}")
    store.get_file("checkpoints/r/000010/__0_0.distcp", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == file.read_bytes()
    assert store.exists("runs/x/claim.1")
    assert store.list("checkpoints/r/") == [
        "checkpoints/r/000010/.metadata",
        "checkpoints/r/000010/COMMIT.json",
        "checkpoints/r/000010/__0_0.distcp",
    ]
    assert store.list("checkpoints/r/000010/CO") == ["checkpoints/r/000010/COMMIT.json"]


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/abs",
        "a//b",
        "a/../b",
        "..",
        "./a",
        "a/",
        "Upper",
        "ä",
        "a b",
        "a\0b",
        "a\nb",
        "tmp/x",
        "a" * 256,
        "a/" * 500 + "a",
    ],
)
def test_names_that_could_lead_astray_are_refused(folder_store, name):
    for use in (
        lambda: folder_store.create(name, b""),
        lambda: folder_store.get(name),
        lambda: folder_store.exists(name),
    ):
        with pytest.raises(ValueError, match="is no name in a store"):
            use()


@pytest.mark.parametrize("prefix", ["../", "/etc/", "a/../../"])
def test_lists_stay_inside_the_store(folder_store, prefix):
    with pytest.raises(ValueError, match="is no prefix"):
        folder_store.list(prefix)


# publishing


def manifest_of(receipt, **more):
    return {"format": 1, "name": "web-en", "shards": [receipt.outputs["documents"].to_json()], **more}


def test_published_datasets_are_found_by_every_kind_of_reference(store):
    receipt = commit(store)
    first = store.publish("web-en", manifest_of(receipt, seed=1), why="first")
    second = store.publish("web-en", manifest_of(receipt, seed=2), why="second")
    assert first == sha256(canonical_json(manifest_of(receipt, seed=1)))
    assert store.resolve("web-en") == ("web-en", second)
    assert store.resolve(f"web-en@{first[:6]}") == ("web-en", first)
    assert store.resolve(f"web-en@{first}") == ("web-en", first)
    assert store.resolve(first) == ("web-en", first)
    assert store.manifest(first) == store.manifest(first, "web-en") == manifest_of(receipt, seed=1)
    assert store.names() == ["web-en"]
    for wrong in ("web-en@12345", "web-en@", "@abcdef", "Web", "a/b", "web-en@ABCDEF", ""):
        with pytest.raises(UsageError):
            store.resolve(wrong)
    missing = "0" * 6 if not first.startswith("0" * 6) else "1" * 6
    for absent in ("nothing", f"web-en@{missing}", "0" * 64):
        with pytest.raises(NotFound):
            store.resolve(absent)


def test_publishing_the_head_again_adds_no_entry_and_the_history_is_a_chain(store):
    receipt = commit(store)
    for seed in (1, 1, 2, 2, 1):
        store.publish("web-en", manifest_of(receipt, seed=seed), why=f"seed {seed}")
    entries = store.history("web-en")
    assert [(entry["number"], entry["why"]) for entry in entries] == [(1, "seed 1"), (2, "seed 2"), (3, "seed 1")]
    assert entries[0]["previous"] is None
    assert entries[0]["manifest"] == entries[2]["manifest"] == store.resolve("web-en")[1]
    stored = store.get("history/web-en/00000002")
    store.backend.delete("history/web-en/00000002")
    with pytest.raises(CheckFailed, match="follow"):
        store.history("web-en")
    store.create("history/web-en/00000002", stored.replace(b"seed 2", b"seed 9"))
    with pytest.raises(CheckFailed, match="damaged"):
        store.history("web-en")


def test_expect_head_turns_a_lost_race_into_a_refusal(store):
    receipt = commit(store)
    first = store.publish("web-en", manifest_of(receipt, seed=1), why="")
    second = store.publish("web-en", manifest_of(receipt, seed=2), why="", expect_head=first)
    with pytest.raises(Refused):
        store.publish("web-en", manifest_of(receipt, seed=3), why="", expect_head=first)
    assert store.resolve("web-en") == ("web-en", second)


@pytest.mark.parametrize("fault", ["missing", "size", "digest", "name"])
def test_a_manifest_with_a_reference_that_does_not_hold_is_not_published(store, fault):
    receipt = commit(store)
    output = receipt.outputs["documents"].to_json()
    if fault == "missing":
        store.backend.delete(output["name"])
    elif fault == "size":
        output["size"] += 1
    elif fault == "digest":
        output["digest"] = "0" * 64
    else:
        output["name"] = "STORE.json"
    with pytest.raises(CheckFailed, match="1 of the 1 objects"):
        store.publish("web-en", {"name": "web-en", "deep": {"er": [output]}}, why="")
    assert store.names() == []
    assert store.list("datasets/") == []


def test_objects_named_only_by_the_lineage_table_are_checked_too(store):
    receipt = commit(store)
    kept, lost = receipt.outputs["documents"], store.draft_bytes(b"never stored")
    rows = [
        {"stage": "extract", "name": kept.name, "digest": kept.digest, "size": kept.size},
        {
            "stage": "extract",
            "name": f"objects/{lost.digest[:2]}/{lost.digest}",
            "digest": lost.digest,
            "size": lost.size,
        },
    ]
    lineage = commit(store, Unit("publish", 1, {}, ()), pa.Table.from_pylist(rows)).outputs["documents"]
    with pytest.raises(CheckFailed, match="1 of the 3 objects"):
        store.publish("web-en", {"name": "web-en", "tables": {"lineage": lineage.to_json()}}, why="", lineage=lineage)


# several writers


def test_racing_publishers_get_one_entry_each_and_none_twice(store):
    receipt = commit(store)
    manifests = [manifest_of(receipt, seed=seed % 4) for seed in range(8)]
    with ThreadPoolExecutor(8) as pool:
        digests = set(pool.map(lambda manifest: store.publish("web-en", manifest, why="race"), manifests))
    entries = store.history("web-en")
    assert {entry["manifest"] for entry in entries} == digests
    assert len(entries) >= 4
    assert all(left["manifest"] != right["manifest"] for left, right in itertools.pairwise(entries))


def test_two_processes_doing_the_same_run_end_with_one_dataset(store):
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        results = pool.map(_run, [store] * 2)
    digests = {digest for digest, _ in results}
    assert len(digests) == 1
    assert inconsistencies(store) == []
    assert len(store.history("small")) == 1
    assert store.list("runs/") == []
    assert small_run(store) == (digests.pop(), 0)


def _run(store: Store) -> tuple[str, int]:
    return small_run(store)


def test_a_store_pickles_as_its_address(store):
    receipt = commit(store)
    assert pickle.loads(pickle.dumps(store)).receipt(UNIT) == receipt
