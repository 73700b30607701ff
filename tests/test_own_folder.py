"""A folder of the user's with modules of our names breaks neither a verb nor a process that one starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from corpusmill.extractor.sandbox import sandbox
from flows.platform import server
from mill import cli
from training import launch

REPOSITORY = Path(__file__).resolve().parents[1]
NAMES = ("tasks", "flows", "training", "mill")
TARGETS = [
    target for table in (cli.COMMANDS, *(verbs for _, verbs in cli.GROUPS.values())) for target, _ in table.values()
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working folder with a module or package of each of our names; whoever imports one fails."""
    for name in ("tasks", "training"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong one')")
    for name in ("flows", "mill"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('the wrong one')")
    return tmp_path


def test_every_verb_runs_our_code(folder: Path) -> None:
    """As the entry script does: its own folder, not the working folder, is first on the path."""
    script = folder.with_name("bin") / "mill"
    script.parent.mkdir()
    script.write_text(f"import pkgutil, sys\nfor name in {TARGETS!r}: pkgutil.resolve_name(name)\n"
                      "import mill, tasks, flows, training\nfrom mill.cli import main\nmain()\n")  # fmt: skip
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    for words in (["recipe", "check", "demo"], ["status"]):
        done = subprocess.run(
            [sys.executable, str(script), *words], cwd=folder, env=env, capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("child", ["sandbox", "platform", "ranks"])
def test_processes_that_we_start_run_our_code(child: str, folder: Path) -> None:
    env = {
        "sandbox": sandbox._environment,
        "platform": lambda: server.child_env({}),
        "ranks": lambda: launch._environment(folder, 1),
    }[child]()
    code = f"import {', '.join(NAMES)}; print(*({', '.join(f'{name}.__file__' for name in NAMES)}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, env=env, capture_output=True, text=True)
    assert done.stdout.split() == [str(REPOSITORY / name / "__init__.py") for name in NAMES], done.stderr


def test_units_in_worker_processes_run_our_code(folder: Path) -> None:
    script = folder.with_name("build.py")
    script.write_text("""
from corpusmill.engine.local import Engine
from tasks.batches import Batches
def where(number):
    import tasks
    return tasks.__file__
if __name__ == "__main__":
    with Engine(2) as engine:
        print(*engine.map(where, range(4)))
""")
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run([sys.executable, str(script)], cwd=folder, env=env, capture_output=True, text=True)
    assert set(done.stdout.split()) == {str(REPOSITORY / "tasks" / "__init__.py")}, done.stderr
