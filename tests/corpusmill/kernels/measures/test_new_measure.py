"""A measure is added in one file: the how-to's kernel in a copy of the package, and nothing else touched."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

import corpusmill

PACKAGE = Path(corpusmill.__file__).parent
HOW_TO = PACKAGE.parent / "docs" / "how-to" / "add-a-rule.md"
TEXTS = ["Hello! Hello!", "calm", ""]
RULES = """
version = 1
definition = "corpusmill"
view = "raw"

[[rule]]
name = "too_loud"
measure = "exclamation_ratio"
max = 0.2
source = "us"
says = "More than one token in five is an exclamation mark."
"""
USE = """
import json, sys
from pathlib import Path
import pyarrow as pa
from corpusmill.kernels.measures import families
from corpusmill.kernels.measures.measures import measures
from corpusmill.kernels.rules.bounds import decide
from corpusmill.kernels.rules.rules import load_rules

rules, texts = load_rules(Path("loud.toml")), pa.array(json.loads(sys.argv[1]), pa.large_string())
found = measures(texts, rules.measured("raw"))
assert "numba" in sys.modules  # measures run here
print(json.dumps({
    "order": list(families.FAMILIES), "columns": found.schema.names, "values": found.to_pydict()["exclamation_ratio"],
    "reasons": decide(found, rules.bounds()).reason.to_pylist(), "file": families.__file__,
}))
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(PACKAGE, tmp_path / "corpusmill", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "loud.toml").write_text(RULES)
    return tmp_path


def shown_kernel() -> str:
    """The kernel that the how-to shows."""
    block = HOW_TO.read_text("utf-8").split("```python\n")[-1].split("```")[0]
    return dedent("   " + block.lstrip())


def run(copy: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=copy, env={**os.environ, "PYTHONPATH": str(copy)}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_kernel_that_says_what_it_measures_is_all_a_measure_needs(copy: Path) -> None:
    (copy / "corpusmill" / "kernels" / "measures" / "exclamations.py").write_text(shown_kernel())
    done = run(copy, USE, json.dumps(TEXTS))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["file"].startswith(str(copy))
    assert found["order"][-1] == "loudness"  # after all that is stored already
    assert found["columns"] == ["text_bytes", "word_total", "exclamation_ratio"]
    assert found["values"] == [2 / 4, 0.0, 0.0]
    assert found["reasons"] == ["too_loud", None, None]


def test_without_it_the_rule_is_refused(copy: Path) -> None:
    done = run(copy, USE, json.dumps(TEXTS))
    assert done.returncode != 0
    assert "exclamation_ratio" in done.stderr


def test_names_of_measures_are_known_without_numba(copy: Path) -> None:
    done = run(copy, "import sys; from corpusmill.kernels.rules import rules; print('numba' in sys.modules)")
    assert done.stdout.strip() == "False", done.stderr
