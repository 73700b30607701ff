"""Links in a folder store: refused by name; nothing outside of the store is read, written or deleted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from corpusmill.errors import NotFound, Refused
from corpusmill.store import Output, Store, Unit, open_store
from corpusmill.store.scratch import OWNER
from tests.corpusmill.store.smallrun import small_run


def replaced(path: Path, elsewhere: Path) -> Path:
    """The folder or file is moved away; a link to where it is now takes its place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        path.rename(elsewhere)
    else:
        elsewhere.mkdir()
    path.symlink_to(elsewhere)
    return path


def state(folder: Path) -> list[tuple[str, int, int]]:
    """Names, sizes and times of all below a folder."""
    return sorted((str(p), p.lstat().st_size, p.lstat().st_mtime_ns) for p in (folder, *folder.rglob("*")))


@pytest.fixture
def built(folder_store: Store) -> Store:
    small_run(folder_store)
    return folder_store


@pytest.mark.parametrize("what", ["objects", "receipts", "receipts/extract", "datasets/small", "history/small", "tmp"])
@pytest.mark.parametrize("inside", [True, False], ids=["to elsewhere in the store", "to outside"])
def test_a_run_refuses_a_link_by_name_and_leaves_what_it_leads_to(built, tmp_path, what, inside):
    root = Path(built.uri)
    elsewhere = root / "elsewhere" if inside else tmp_path / "elsewhere"
    link = replaced(root / what, elsewhere)
    before = state(elsewhere)
    with pytest.raises(Refused, match=f"{link} is a link") as caught:
        small_run(open_store(root), files=3)
    assert str(elsewhere) in caught.value.why
    assert state(elsewhere) == before
    with pytest.raises(Refused, match=f"{link} is a link"):
        open_store(root).refuse_links()


def test_a_linked_folder_of_objects_is_neither_read_nor_written(built, tmp_path):
    root = Path(built.uri)
    name = built.list("objects/")[0]
    folder = name.rpartition("/")[0]
    link = replaced(root / folder, tmp_path / "elsewhere")
    digest = name.rpartition("/")[2]
    output = Output(name, digest, None, (tmp_path / "elsewhere" / digest).stat().st_size, None)
    fresh = open_store(root)
    for use in (
        lambda: fresh.bytes(output),
        lambda: fresh.local_path(output),
        lambda: fresh.table(output),
        lambda: fresh.exists(name),
        lambda: fresh.list(f"{folder}/"),
        lambda: fresh.list("objects/"),
        lambda: fresh.create(f"{folder}/new", b"x"),
        lambda: fresh.get_file(name, tmp_path / "copy"),
        lambda: fresh.backend.delete(name),
    ):
        with pytest.raises(Refused, match=f"{link} is a link"):
            use()
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == [digest]
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("kind", ["link", "dead link", "pipe"])
def test_what_is_no_file_is_not_read_as_one(built, tmp_path, kind):
    root, name = Path(built.uri), "runs/x/log.1.txt"
    (root / "runs" / "x").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    if kind == "pipe":
        os.mkfifo(root / name)
    else:
        (root / name).symlink_to(tmp_path / ("secret" if kind == "link" else "nothing"))
    for use in (built.get, built.exists, lambda n: built.create(n, b"x"), lambda n: built.list("runs/")):
        with pytest.raises(Refused, match=name):
            use(name)
    assert (tmp_path / "secret").read_text() == "secret"
    assert not (tmp_path / "nothing").exists()


def test_a_linked_marker_is_no_store(tmp_path):
    open_store(tmp_path / "other", create=True)
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "STORE.json").symlink_to(tmp_path / "other" / "STORE.json")
    for create in (False, True):
        with pytest.raises(Refused, match=r"STORE\.json is a link"):
            open_store(tmp_path / "store", create=create)


def test_a_store_may_itself_lie_behind_a_link(built, tmp_path):
    (tmp_path / "link").symlink_to(built.uri)
    assert small_run(open_store(tmp_path / "link"))[1] == 0
    with pytest.raises(NotFound):
        open_store(tmp_path / "link").get("runs/nothing")


def test_a_scratch_of_somebody_else_in_tmp_stays(built):
    theirs = Path(built.uri) / "tmp" / "corpusmill-scratch-x"
    theirs.mkdir(parents=True, exist_ok=True)
    (theirs / "file").write_text("theirs")
    open_store(built.uri).commit(Unit("extract", 1, {}, ("new",)), {})
    assert (theirs / "file").read_text() == "theirs"
    assert not (theirs / OWNER).exists()
