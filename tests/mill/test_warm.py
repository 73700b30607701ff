"""`mill warm` leaves nothing to compile: a build and an extraction after it find all their kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from corpusmill import compiled
from mill import cli

AFTER = """
import gc, tempfile
from pathlib import Path
from corpusmill import compiled, extract
from mill import warm
from tests import golden

def called():
    kernels = [k for k in gc.get_objects() if type(k) is compiled.Kernel and k._kept and "dispatcher" in k.__dict__]
    return {f"{k.__module__}.{k.__qualname__} {s}" for k in kernels for s in k.dispatcher.overloads}

with tempfile.TemporaryDirectory() as folder:
    for name, part in warm.PARTS.items():
        part(Path(folder) / name)
    ours = called()
    golden.digests(Path(folder) / "golden")
extract("<html><body><h1>Title</h1><p>A page with some text, and a second sentence for it.</p></body></html>")
print(len(ours), sorted(called() - ours))
"""
"""Whatever code is kept already: what a build and an extraction call, the workload has called with the same types."""


@pytest.mark.timeout(1200)
def test_a_build_after_warm_compiles_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["warm", "--json"]) == 0
    assert '"kernels": ' in capsys.readouterr().out
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", AFTER], capture_output=True, text=True, check=True, env=env)
    count, _, missed = done.stdout.strip().splitlines()[-1].partition(" ")
    assert int(count) > 60
    assert missed == "[]"


def test_what_nobody_used_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORPUSMILL_KERNELS", str(tmp_path))
    code, part = f"words.scan-{'0' * 40}.nbc", "0" * 16
    ages = {code: 3, code.replace("0", "1"): 40, f"{code}.lock": 2, f"{code}.{part}.tmp": 2}
    ages |= {f"all-{'0' * 40}.done": 40, "thesis.tex": 900, "data.nbc": 900, "notes.lock": 900, "other.done": 900}
    for name, days in ages.items():
        (tmp_path / name).touch()
        moment = (tmp_path / name).stat().st_mtime - days * 86_400
        os.utime(tmp_path / name, (moment, moment))
    assert compiled.prune() == 4
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == sorted([code, "thesis.tex", "data.nbc", "notes.lock", "other.done"]), "the user's own files stay"


def test_where_nothing_can_be_kept_warm_is_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.delenv("CORPUSMILL_KERNELS", raising=False)
    assert cli.run(["warm"]) == 7
    err = capsys.readouterr().err
    assert str(tmp_path / "file") in err
    assert "CORPUSMILL_KERNELS" in err


def test_a_folder_that_was_warmed_needs_nothing_even_if_it_is_read_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CORPUSMILL_KERNELS", str(tmp_path))
    (tmp_path / f"all-{compiled.stamp_of_all()[:40]}.done").touch()
    monkeypatch.setattr(compiled, "writable", lambda: None)
    assert cli.run(["warm"]) == 0
    assert f"in {tmp_path}" in capsys.readouterr().out


def test_a_folder_of_somebody_else_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A container with a random user: HOME is there and may not be looked into."""
    (tmp_path / "home").mkdir()
    monkeypatch.delenv("CORPUSMILL_KERNELS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))

    def forbidden(path: Path, pattern: str) -> list[Path]:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "glob", forbidden)
    assert compiled.stored() == (0, 0)
    assert not compiled.is_warm()
