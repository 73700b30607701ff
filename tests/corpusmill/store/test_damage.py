"""Stored bytes that are not what was stored: nothing is published over them, and nothing that was checked once is
believed after it changed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from corpusmill import file_state
from corpusmill.canonical import canonical_json
from corpusmill.errors import CheckFailed, MillError, Refused
from corpusmill.file_state import while_unchanged
from corpusmill.store import Output, Store, Unit, open_store
from corpusmill.store.receipts import unseal
from tests.corpusmill.store.smallrun import small_run

HEAD = "datasets/small/"


def replace(store: Store, name: str, data: bytes) -> None:
    """Other bytes under a name, as a bad disk or an intruder would."""
    if path := store.backend.local(name):
        path.write_bytes(data)
    else:
        store.backend.client.put_object(Bucket=store.backend.bucket, Key=store.backend.prefix + name, Body=data)


def flipped(data: bytes) -> bytes:
    return bytes([*data[: len(data) // 2], data[len(data) // 2] ^ 16, *data[len(data) // 2 + 1 :]])


def manifests(store: Store) -> list[str]:
    return [name for name in store.list(HEAD) if name.endswith(".json")]


@pytest.mark.parametrize(
    "damage",
    [flipped, lambda data: data[:-5], lambda data: b"", lambda data: canonical_json({"name": "small", "other": 1})],
    ids=["a flipped bit", "cut short", "empty", "another manifest"],
)
def test_a_damaged_manifest_is_no_success_and_is_written_anew_once_it_is_removed(store, damage):
    digest, _ = small_run(store)
    (name,) = manifests(store)
    replace(store, name, damage(store.get(name)))
    with pytest.raises(Refused, match=f"{name} is damaged"):
        small_run(open_store(store.uri))
    store.backend.delete(name)
    assert small_run(open_store(store.uri)) == (digest, 0)
    assert store.manifest(digest)["name"] == "small"


def test_what_only_one_may_write_is_refused_where_other_bytes_are(store):
    store.put("runs/x/log.1.txt", b"one")
    store.put("runs/x/log.1.txt", b"one")
    with pytest.raises(Refused, match=r"runs/x/log.1.txt is damaged"):
        store.put("runs/x/log.1.txt", b"two")


def test_a_store_made_meanwhile_must_be_one_that_this_version_knows(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "corpusmill.store.store.create", lambda backend, name, source: bool((backend.root / name).write_text("{}")) < 0
    )
    (tmp_path / "store").mkdir()
    with pytest.raises(CheckFailed, match=r"STORE\.json is damaged"):
        open_store(tmp_path / "store", create=True)


@pytest.mark.parametrize("stage", ["extract", "judge", "publish"])
def test_an_object_of_equal_size_but_other_bytes_is_not_published(folder_store, stage):
    digest, _ = small_run(folder_store)
    manifest = folder_store.manifest(digest)
    lineage = Output.from_json(manifest["tables"]["lineage"])
    receipt = folder_store.list(f"receipts/{stage}/")[0]
    victim = unseal(folder_store.get(receipt), receipt)["outputs"]["table"]["name"]
    replace(folder_store, victim, flipped(folder_store.get(victim)))
    with pytest.raises(CheckFailed, match=f"{victim} is damaged"):
        open_store(folder_store.uri).publish("small", manifest, why="again", lineage=lineage)


def in_place(path: Path) -> None:
    """Bytes change, size and modification time do not."""
    before = path.stat()
    path.write_bytes(flipped(path.read_bytes()))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def by_another(path: Path) -> None:
    """Another file of equal size and time takes the place."""
    before, other = path.stat(), path.with_name("other")
    other.write_bytes(flipped(path.read_bytes()))
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(path)


def shorter(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize("settled", [True, False], ids=["after a while", "within a tick of the clock"])
@pytest.mark.parametrize("edit", [in_place, by_another, shorter])
def test_a_file_that_was_verified_is_verified_again_once_it_changed(folder_store, monkeypatch, edit, settled):
    output = folder_store.commit(UNIT, {"data": folder_store.draft_bytes(b"data" * 1000)}).outputs["data"]
    path = folder_store.local_path(output)
    if settled:
        later = time.time_ns() + 10**10
        monkeypatch.setattr(file_state.time, "time_ns", lambda: later)
        assert folder_store.local_path(output) == path
        time.sleep(0.02)  # a tick of this file system
    edit(path)
    with pytest.raises(CheckFailed, match="damaged"):
        folder_store.local_path(output)


UNIT = Unit("extract", 1, {}, ("input",))


def test_an_unchanged_file_is_hashed_once(folder_store, monkeypatch):
    output = folder_store.commit(UNIT, {"data": folder_store.draft_bytes(b"data" * 1000)}).outputs["data"]
    later = time.time_ns() + 10**10
    monkeypatch.setattr(file_state.time, "time_ns", lambda: later)
    folder_store.local_path(output)
    monkeypatch.setattr("corpusmill.store.reader.hash_stream", lambda stream: pytest.fail("read again"))
    folder_store.local_path(output)


def test_what_was_read_from_a_file_is_remembered_while_it_is_the_same(tmp_path, monkeypatch):
    calls: list[str] = []
    monkeypatch.setattr(file_state, "TICK_NS", 10**7)

    def read(path: Path) -> str:
        calls.append(path.read_text())
        return calls[-1]

    plain, with_card = while_unchanged(4)(read), while_unchanged(4, lambda path: path.with_suffix(".card"))(read)
    path = tmp_path / "model"

    def after(change: Callable[[], object], asked: Callable[[Path], str]) -> int:
        change()
        time.sleep(0.03)
        calls.clear()
        asked(path)
        asked(path)
        return len(calls)

    assert after(lambda: path.write_text("one"), plain) == 1
    assert after(lambda: None, plain) == 0
    assert after(lambda: path.write_text("two"), plain) == 1
    assert after(lambda: None, with_card) == 1
    assert after(lambda: path.with_suffix(".card").write_text("asked otherwise"), with_card) == 1
    path.unlink()
    with pytest.raises(FileNotFoundError):
        plain(path)


def test_a_damaged_receipt_of_a_history_is_no_base_for_the_next_entry(store):
    small_run(store)
    (name,) = store.list("history/small/")
    replace(store, name, flipped(store.get(name)))
    with pytest.raises(MillError, match="damaged"):
        small_run(open_store(store.uri), files=3)
    assert len(manifests(store)) == 2  # stored, not published
    assert len(store.list("history/small/")) == 1
