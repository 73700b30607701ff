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
import gc, sys, tempfile
from pathlib import Path
from corpusmill import compiled, extract
from tests import golden
with tempfile.TemporaryDirectory() as folder:
    golden.digests(Path(folder))
extract("<html><body><h1>Title</h1><p>A page with some text, and a second sentence for it.</p></body></html>")
kernels = [k for k in gc.get_objects() if type(k) is compiled.Kernel and k._kept and "dispatcher" in k.__dict__]
missed = {f"{k.__module__}.{k.__qualname__} {list(n)}" for k in kernels if (n := k.dispatcher.stats.cache_misses)}
print(len(kernels), sorted(missed))
"""


@pytest.mark.timeout(1200)
def test_a_build_after_warm_compiles_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["warm", "--json"]) == 0
    assert '"kernels": ' in capsys.readouterr().out
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", AFTER], capture_output=True, text=True, check=True, env=env)
    count, _, missed = done.stdout.strip().splitlines()[-1].partition(" ")
    assert int(count) > 40
    assert missed == "[]"


def test_what_nobody_used_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORPUSMILL_KERNELS", str(tmp_path))
    for name, days in (("used.nbc", 3), ("old.nbc", 40), ("dead.nbc.lock", 2), ("now.nbc.lock", 0)):
        (tmp_path / name).touch()
        moment = (tmp_path / name).stat().st_mtime - days * 86_400
        os.utime(tmp_path / name, (moment, moment))
    assert compiled.prune() == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["now.nbc.lock", "used.nbc"]
