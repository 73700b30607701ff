"""The local file of measures: answered from while it is the one that was made, made anew and noted otherwise."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import duckdb
import pytest

from corpusmill import file_state
from tasks.acquire import notices
from tasks.queries.whatif.sealed import discard, sealed


class Asked:
    """A file of one dataset, and how often it was made."""

    def __init__(self, folder: Path, owner: str = "a" * 64) -> None:
        self.file, self.owner, self.made = folder / f"whatif-{owner[:32]}.duckdb", owner, 0

    def __call__(self) -> tuple[str, list[str]]:
        """What the file says whose it is, and the notes."""
        with notices.heard() as said:
            path = sealed(self.file, self.owner, self._make)
        with duckdb.connect(str(path), read_only=True) as db:
            rows = db.execute("SELECT owner FROM measures").fetchall()
        return rows[0][0], said

    def _make(self, path: Path) -> None:
        self.made += 1
        with duckdb.connect(str(path)) as db:
            db.execute("CREATE TABLE measures AS SELECT ? AS owner", [self.owner])


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    found = Asked(tmp_path / "cache")
    assert found() == (found.owner, [])
    return found


def test_a_sealed_file_is_made_once_and_its_copy_elsewhere_holds(asked: Asked, tmp_path: Path) -> None:
    assert [asked() for _ in range(3)] == [(asked.owner, [])] * 3
    assert asked.made == 1
    (tmp_path / "other").mkdir()
    for path in asked.file.parent.glob("whatif*"):
        shutil.copy(path, tmp_path / "other" / path.name)
    moved = Asked(tmp_path / "other")
    assert moved() == (asked.owner, [])
    assert moved.made == 0


def test_a_file_whose_state_is_that_of_its_seal_is_not_read_again(asked: Asked, monkeypatch) -> None:
    later = time.time_ns() + 10**10
    monkeypatch.setattr(file_state.time, "time_ns", lambda: later)
    asked()
    monkeypatch.setattr("tasks.queries.whatif.sealed.hash_stream", lambda stream: pytest.fail("read again"))
    asked()


def flip(file: Path) -> None:
    before, data = file.stat(), bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def edit(file: Path) -> None:
    """Valid to DuckDB: other figures under good checksums."""
    with duckdb.connect(str(file)) as db:
        db.execute("UPDATE measures SET owner = 'somebody else'")


def of_another_dataset(file: Path) -> None:
    other = Asked(file.parent, "b" * 64)
    other()
    other.file.replace(file)


def with_its_seal(file: Path) -> None:
    other = Asked(file.parent, "b" * 64)
    other()
    other.file.replace(file)
    Path(f"{other.file}.seal").replace(f"{file}.seal")


def a_link(file: Path) -> None:
    elsewhere = file.with_name("elsewhere")
    file.rename(elsewhere)
    file.symlink_to(elsewhere)


def unsealed(file: Path) -> None:
    Path(f"{file}.seal").unlink()


def a_damaged_seal(file: Path) -> None:
    flip(Path(f"{file}.seal"))


def a_log_to_replay(file: Path) -> None:
    Path(f"{file}.wal").write_bytes(b"changes of somebody else")


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-4096])


@pytest.mark.parametrize(
    "change", [flip, edit, of_another_dataset, with_its_seal, a_link, unsealed, a_damaged_seal, a_log_to_replay, cut]
)
@pytest.mark.parametrize("settled", [True, False])
def test_what_is_not_the_sealed_file_is_noted_and_made_anew(asked: Asked, monkeypatch, change, settled) -> None:
    if settled:  # the state is in the seal
        later = time.time_ns() + 10**10
        monkeypatch.setattr(file_state.time, "time_ns", lambda: later)
        asked()
        time.sleep(0.02)
    change(asked.file)
    owner, said = asked()
    assert owner == asked.owner
    assert len(said) == 1
    assert "made anew" in said[0]
    assert asked.made == 2
    assert asked() == (asked.owner, [])
    assert not list(asked.file.parent.glob("corpusmill-scratch-*/*"))


def test_a_killed_making_leaves_nothing_behind_for_the_next(asked: Asked) -> None:
    discard(asked.file)

    def dies(path: Path) -> None:
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sealed(asked.file, asked.owner, dies)
    assert asked() == (asked.owner, [])
    assert sorted(path.name for path in asked.file.parent.iterdir() if not path.name.startswith("corpusmill")) == [
        asked.file.name,
        f"{asked.file.name}.seal",
    ]
