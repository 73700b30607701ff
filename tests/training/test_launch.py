"""What the launcher says when there is no result: a rank's own words, a killed rank, or the first error of the log."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from corpusmill.errors import MillError, Refused, Unavailable
from tests.training.toy import Toy
from training import launch


def test_a_ranks_own_words_are_handed_on(toy: Toy, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("")
    (tmp_path / "error.1.json").write_text(json.dumps({"id": "refused", "what": "a", "why": "b", "do": "c"}))
    fault = launch._fault(toy.spec(), tmp_path, 1)
    assert isinstance(fault, Refused)
    assert str(fault) == "a\nb\nc"


@pytest.mark.parametrize(
    ("log", "kind", "says"),
    [
        ("RuntimeError: Connection closed\nfailed (exitcode: -9) local_rank: 1\n", Unavailable, "SIGKILL"),
        ("  exitcode  : -15 (pid: 3)\n[rank0]: KeyError: 'x'\n", MillError, "KeyError: 'x'"),
        ("ValueError: first\nRuntimeError: second\n", MillError, "ValueError: first"),
        ("", MillError, "no error in the log"),
    ],
)
def test_faults_are_told_from_the_log(log: str, kind: type[MillError], says: str, toy: Toy, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(log)
    fault = launch._fault(toy.spec(), tmp_path, 1)
    assert type(fault) is kind
    assert says in fault.why
    assert toy.spec().run_id in fault.what
    assert "latest checkpoint" in fault.do


def test_ranks_run_our_code_whatever_lies_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's own training.py in the working directory is not imported."""
    (tmp_path / "training.py").write_text("raise SystemExit('the wrong one')")
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    env = launch._environment(tmp_path, 3)
    assert env["OMP_NUM_THREADS"] == "3"
    assert env["PYTHONPATH"].endswith(f"{os.pathsep}/elsewhere")
    subprocess.run([sys.executable, "-c", "import training.run"], cwd=tmp_path, env=env, check=True)
    monkeypatch.setenv("CORPUSMILL_CACHE", "/kept")
    assert launch._environment(tmp_path, 1)["CORPUSMILL_CACHE"] == "/kept"


def test_sigterm_is_an_exception_only_while_training_and_only_where_nobody_else_cares() -> None:
    with pytest.raises(SystemExit) as left, launch._terminable():
        os.kill(os.getpid(), signal.SIGTERM)
    assert left.value.code == 143
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    heard: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        with launch._terminable():
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    assert heard == [signal.SIGTERM]


def test_importing_the_launcher_needs_no_torch_and_no_prefect() -> None:
    code = "import sys, training.launch; assert not {'torch', 'prefect'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
