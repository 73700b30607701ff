"""Model files: found by path or name, fetched once through pip, refused when they are another file. No network here."""

from __future__ import annotations

import hashlib
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from corpusmill import models
from corpusmill.errors import CheckFailed, NotFound, Unavailable

NAME = "lid.176.ftz"
CONTENT = b"a model, as far as these tests go"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CORPUSMILL_MODELS", str(tmp_path / "models"))
    known = replace(models.KNOWN[NAME], sha256=hashlib.sha256(CONTENT).hexdigest())
    monkeypatch.setitem(models.KNOWN, NAME, known)
    return tmp_path / "models"


def pip_that_gives(monkeypatch: pytest.MonkeyPatch, content: bytes | None) -> list[list[str]]:
    """A pip that puts a wheel with this model into its folder, or fails; its command lines."""
    calls: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        calls.append(command)
        if content is None:
            return subprocess.CompletedProcess(command, 1, "", "ERROR: no route to the index")
        wheel = Path(command[command.index("--dest") + 1]) / "some.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(models.KNOWN[NAME].member, content)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(models.subprocess, "run", run)
    return calls


def test_a_model_is_fetched_once_and_found_by_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = pip_that_gives(monkeypatch, CONTENT)
    first, second = models.fetch(NAME), models.fetch(NAME)
    assert first == second
    assert "CC-BY-SA-3.0" in first.licence
    assert first.path.read_bytes() == CONTENT
    assert len(calls) == 1
    assert {"download", "--no-deps"} <= set(calls[0])
    assert models.model_path(NAME) == first.path
    assert [path.name for path in folder.iterdir()] == [NAME]  # nothing half-written beside it


def test_a_damaged_model_is_fetched_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir()
    (folder / NAME).write_bytes(b"half of it")
    pip_that_gives(monkeypatch, CONTENT)
    assert models.fetch(NAME).path.read_bytes() == CONTENT


def test_another_file_in_the_wheel_is_refused_and_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip_that_gives(monkeypatch, b"something else")
    with pytest.raises(CheckFailed, match="is not the expected file"):
        models.fetch(NAME)
    assert not folder.exists() or not list(folder.iterdir())


def test_without_network_the_message_says_where_to_put_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip_that_gives(monkeypatch, None)
    with pytest.raises(Unavailable) as caught:
        models.fetch(NAME)
    assert "no route to the index" in caught.value.why
    assert str(folder) in caught.value.do


def test_a_path_is_taken_as_it_is(folder: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.bin"
    mine.write_bytes(b"x")
    assert models.model_path(str(mine)) == mine
    assert models.model_digest(mine) == hashlib.sha256(b"x").hexdigest()


def test_a_model_that_is_not_there_is_named_with_the_way_out(folder: Path) -> None:
    with pytest.raises(NotFound, match="mill models fetch"):
        models.model_path(NAME)
    with pytest.raises(NotFound, match="neither a file nor one of"):
        models.model_path("none.bin")
