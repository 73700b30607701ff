"""Temporary folders: gone with their process, and with the next run where it was killed; those of others stay."""

from __future__ import annotations

import ast
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from corpusmill.store import scratch
from corpusmill.store.scratch import OWNER, PREFIX, Scratch, clear_abandoned, temporary_folder

OWNING = """
import os, sys, time
from pathlib import Path
from corpusmill.store.scratch import Scratch, temporary_folder
own = Scratch(Path(sys.argv[1]))
own.path().write_text("text of a crawl")
with temporary_folder(Path(sys.argv[1])) as folder:
    (folder / "deep").mkdir()
    print(own.folder, flush=True)
    time.sleep(60)
"""


def owned(folder: Path) -> subprocess.Popen[str]:
    """A process with two scratches in the folder, once it has them."""
    child = subprocess.Popen([sys.executable, "-c", OWNING, folder], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    child.stdout.readline()
    return child


def scratches(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"{PREFIX}*"))


def age(folder: Path, seconds: float) -> None:
    then = time.time() - seconds
    for path in (*folder.rglob("*"), folder):
        os.utime(path, (then, then), follow_symlinks=False)


def left_by(folder: Path, machine: str, name: str = "left", **more: object) -> Path:
    """A scratch whose owner holds no lock any more."""
    made = folder / f"{PREFIX}{name}"
    made.mkdir()
    (made / OWNER).write_text(json.dumps({"format": "corpusmill-scratch", "machine": machine, **more}))
    (made / "00000000").write_text("text of a crawl")
    return made


def test_a_living_process_keeps_its_folders_and_a_killed_one_loses_them(tmp_path):
    child = owned(tmp_path)
    try:
        clear_abandoned(tmp_path)
        assert len(scratches(tmp_path)) == 2
    finally:
        child.send_signal(signal.SIGKILL)
        child.communicate()
    assert len(scratches(tmp_path)) == 2
    with Scratch(tmp_path) as own:
        made = own.folder
        assert scratches(tmp_path) == [made]
    assert scratches(tmp_path) == []


def test_earlier_versions_see_that_a_scratch_is_in_use(tmp_path):
    """They lock the folder itself, and remove what is not locked."""
    with Scratch(tmp_path) as own:
        other = os.open(own.folder, os.O_RDONLY | os.O_DIRECTORY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(other)


def test_a_temporary_folder_is_gone_after_the_block_however_it_ends(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for parent in (None, tmp_path / "elsewhere"):
        found: list[Path] = []

        def interrupted(parent: Path | None, found: list[Path]) -> None:
            with temporary_folder(parent) as folder:
                assert folder.parent.stat().st_mode & 0o777 == 0o700
                (folder / "file").write_text("x")
                found.append(folder)
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            interrupted(parent, found)
        assert not found[0].exists()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_of_another_machine_only_what_is_a_day_old_goes(tmp_path):
    made = left_by(tmp_path, "another")
    clear_abandoned(tmp_path)
    assert made.exists()
    age(made, scratch.ELSEWHERE_S + 100)
    os.utime(made / "00000000")  # its owner is at work
    clear_abandoned(tmp_path)
    assert made.exists()
    age(made, scratch.ELSEWHERE_S + 100)
    clear_abandoned(tmp_path)
    assert not made.exists()


def test_a_living_process_of_another_machine_keeps_its_folder_where_locks_are_shared(tmp_path):
    child = owned(tmp_path)
    try:
        for made in scratches(tmp_path):
            (made / OWNER).write_text(json.dumps({"format": "corpusmill-scratch", "machine": "another"}))
            age(made, scratch.ELSEWHERE_S + 100)
        clear_abandoned(tmp_path)
        assert len(scratches(tmp_path)) == 2
    finally:
        child.kill()
        child.communicate()
    clear_abandoned(tmp_path)
    assert scratches(tmp_path) == []


def without_owner(made: Path) -> None:
    (made / OWNER).unlink()


def with_another_file(made: Path) -> None:
    (made / OWNER).write_text("mine")


def with_another_format(made: Path) -> None:
    (made / OWNER).write_text(json.dumps({"format": "other", "machine": scratch._machine()}))


def with_a_link_as_owner(made: Path) -> None:
    (made / OWNER).rename(made / "other")
    (made / OWNER).symlink_to(made / "other")


def with_a_pipe_as_owner(made: Path) -> None:
    (made / OWNER).unlink()
    os.mkfifo(made / OWNER)


def as_a_link(made: Path) -> None:
    elsewhere = made.parent / "elsewhere"
    made.rename(elsewhere)
    made.symlink_to(elsewhere)


@pytest.mark.parametrize(
    "change",
    [
        without_owner,
        with_another_file,
        with_another_format,
        with_a_link_as_owner,
        with_a_pipe_as_owner,
        as_a_link,
    ],
)
def test_what_is_not_a_scratch_of_ours_stays(tmp_path, change):
    made = left_by(tmp_path, scratch._machine())
    change(made)
    age(tmp_path, scratch.ELSEWHERE_S + 100)
    clear_abandoned(tmp_path)
    assert (made / "00000000").read_text() == "text of a crawl"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_what_belongs_to_another_user_stays_also_for_root(tmp_path):
    made = left_by(tmp_path, scratch._machine())
    os.chown(made, 12345, 12345)
    clear_abandoned(tmp_path)
    assert made.exists()


def test_what_a_kill_left_before_it_had_an_owner_goes_after_a_day(tmp_path):
    empty, unsaid = tmp_path / f"{PREFIX}a", tmp_path / f"{PREFIX}b"
    empty.mkdir()
    unsaid.mkdir()
    (unsaid / OWNER).touch()
    clear_abandoned(tmp_path)
    assert empty.exists()
    assert unsaid.exists()
    age(tmp_path, scratch.ELSEWHERE_S + 100)
    clear_abandoned(tmp_path)
    assert scratches(tmp_path) == []


def test_links_in_an_abandoned_scratch_are_not_followed(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("kept")
    made = left_by(tmp_path, scratch._machine())
    (made / "link").symlink_to(tmp_path / "kept")
    clear_abandoned(tmp_path)
    assert not made.exists()
    assert (tmp_path / "kept" / "file").read_text() == "kept"


def test_nothing_temporary_with_a_name_is_made_elsewhere():
    """TemporaryFile has no name and is gone with its process; the report of a fault stays on purpose."""
    allowed = {"corpusmill/store/scratch.py", "corpusmill/store/folder.py", "mill/cli.py"}
    root, found = Path(__file__).parents[3], set()
    for package in ("corpusmill", "tasks", "flows", "training", "mill"):
        for path in (root / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                name = getattr(node, "attr", getattr(node, "id", ""))
                if name in ("mkstemp", "mkdtemp", "mktemp", "TemporaryDirectory", "NamedTemporaryFile"):
                    found.add(path.relative_to(root).as_posix())
    assert found == allowed
