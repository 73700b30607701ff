"""A run killed (SIGKILL) before each system call of the folder backend and in the middle of each write, then run again.

Enumerated, not random: random kills missed a torn-write bug in 76 of 76 tries.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def memory_folder() -> Iterator[Path]:
    """A folder where fsync costs nothing, if there is one; a kill of the process does not ask for a disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


def crash_points(folder: Path, kind: str, every: int = 1) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    command = [sys.executable, "-m", "tests.corpusmill.store.killer", str(folder), kind, str(every)]
    done = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    whole, *points = (json.loads(line) for line in done.stdout.splitlines())
    return whole, points


def test_killed_at_any_step_the_store_is_valid_and_a_rerun_gives_the_same_dataset(memory_folder):
    whole, points = crash_points(memory_folder, "good")
    assert whole["ran"] == 3
    assert len(points) == whole["steps"] + len(whole["writes"]) > 90
    for point in points:
        assert point["killed"], point
        assert point["faults"] == [], point
        assert point["digest"] == whole["digest"], point
        assert point["entries"] == 1, point  # one publish is one history entry, however often it was tried
        assert point["repeated"] == 0, point  # a unit with a receipt never runs again
        assert point["left"] == 0, point  # no temporary files


@pytest.mark.parametrize(("mutant", "every"), [("receipt_first", 9), ("in_place", 2)])
def test_the_crash_test_catches_mutants(memory_folder, mutant, every):
    _, points = crash_points(memory_folder, mutant, every)
    assert sum(bool(point["faults"]) for point in points) >= 3
