"""Who may import whom, and that names stay out of each other's way."""

from __future__ import annotations

import ast
import json
import pkgutil
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import corpusmill
import flows
import mill
import tasks
import training
from mill import cli

REPOSITORY = Path(__file__).resolve().parents[1]
OURS = {"corpusmill": corpusmill, "tasks": tasks, "flows": flows, "training": training, "mill": mill}


def modules(*packages: str) -> list[str]:
    """Names of all modules of our packages."""
    return [
        found.name for package in packages for found in pkgutil.walk_packages(OURS[package].__path__, f"{package}.")
    ]


def test_import_rules_hold():
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "0 broken" in done.stdout


def loaded_after(*names: str) -> set[str]:
    """Top-level modules in memory after importing these in a fresh process."""
    code = (
        f"import importlib, json, sys\nfor name in {list(names)!r}: importlib.import_module(name)\n"
        "print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_library_and_tasks_load_neither_prefect_nor_torch():
    assert not loaded_after(*modules("corpusmill", "tasks")) & {"prefect", "torch", "flows", "training"}


def test_the_launcher_of_training_loads_neither_torch_nor_prefect():
    assert not loaded_after("mill.train", "training.launch") & {"prefect", "torch"}


def test_a_build_with_nothing_to_do_loads_no_compiler_and_no_libraries_of_single_steps():
    loaded = loaded_after("mill.cli", "mill.build", "mill.progress", "tasks.chain", "tasks.ingest")
    assert not loaded & {"numba", "llvmlite", "scipy", "trafilatura", "datasketch", "tokenizers", "boto3", "stdnum"}


def test_no_module_of_flows_hides_a_top_level_package():
    taken = {*packages_distributions(), *OURS} - {"flows"}
    assert not {name.split(".")[1] for name in modules("flows")} & taken


@pytest.mark.parametrize(
    "target",
    [target for target, _ in cli.COMMANDS.values()]
    + [target for _, verbs in cli.GROUPS.values() for target, _ in verbs.values()],
)
def test_every_verb_is_there(target):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", f"import pkgutil; print(callable(pkgutil.resolve_name({target!r})))"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "True", done.stderr


def test_the_wheel_and_the_linters_know_all_packages():
    text = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    names = ", ".join(f'"{name}"' for name in ("corpusmill", "tasks", "flows", "training", "mill"))
    assert text.count(f"[{names}]") >= 3


def test_pinned_versions_name_no_source():
    lines = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert all(line.count("==") == 1 and "/" not in line and "@" not in line for line in lines)
    assert {"torch==2.13.0"} <= set(lines)
    assert {line.split("==")[0] for line in lines} >= {"lxml_html_clean", "prefect", "pyarrow", "datasketch"}


def looked_up_by_string(source: str) -> list[str]:
    """Expressions that read a manifest by string (`manifest["x"]`, `built.manifest.recipe.get("x")`), or raw JSON of
    one from the store (`store.manifest(...)`)."""
    found = []
    for node in ast.walk(ast.parse(source)):
        is_raw = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "manifest"
        if is_raw or (_key_of(node) and _is_manifest(node)):
            found.append(ast.unparse(node))
    return found


def _key_of(node: ast.AST) -> bool:
    key = node.slice if isinstance(node, ast.Subscript) else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
        key = node.args[0]
    return isinstance(key, ast.Constant) and isinstance(key.value, str)


def _is_manifest(node: ast.AST) -> bool:
    """Whether an expression begins with a manifest: a name or attribute called so, or the call that opens one."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute) and node.attr == "manifest":
            return True
        if not isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
            return False
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id in ("manifest", "open_manifest")


@pytest.mark.parametrize(
    "code",
    [
        'manifest["tables"]["lineage"]',
        'built.manifest.recipe["judge"]',
        'data.manifest.get("kind")',
        'open_manifest(store, digest).recipe["name"]',
        "store.manifest(digest, name)",
    ],
)
def test_a_look_up_by_string_is_seen(code):
    assert looked_up_by_string(code)
    assert not looked_up_by_string('manifest.tables[name]; rows["manifest"]; open_manifest(store).table("lineage")')


def test_no_other_module_reads_a_manifest_by_string():
    files = [path for package in (*OURS, "bench") for path in (REPOSITORY / package).rglob("*.py")]
    reads = {str(path.relative_to(REPOSITORY)): looked_up_by_string(path.read_text("utf-8")) for path in files}
    allowed = {"corpusmill/dataset/manifest.py", "corpusmill/store/store.py"}  # the types; and what reads their bytes
    assert {path: found for path, found in reads.items() if found and path not in allowed} == {}


def ignored_creates(tree: ast.AST) -> list[int]:
    """Lines where the answer of a `create` (whether the store holds these bytes) is dropped."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(call := node.value, ast.Call)
        and getattr(call.func, "attr", getattr(call.func, "id", "")).lstrip("_") in ("create", "create_file")
    ]


def test_no_answer_of_create_is_dropped():
    assert ignored_creates(ast.parse("store.create('a', b'')\n_create(1)\nok = store.create('a', b'')")) == [1, 2]
    for package in OURS:
        for path in (REPOSITORY / package).rglob("*.py"):
            assert not ignored_creates(ast.parse(path.read_text(encoding="utf-8"))), path


MOST_FILES = 20


def test_no_room_is_so_full_that_nothing_is_found_in_it():
    """Modules of a folder; what belongs together has a folder of its own."""
    rooms = {folder for package in OURS.values() for path in package.__path__ for folder in Path(path).rglob("*/")}
    rooms |= {Path(path) for package in OURS.values() for path in package.__path__}
    full = {str(room.relative_to(REPOSITORY)): n for room in rooms if (n := len(list(room.glob("*.py")))) > MOST_FILES}
    assert len(rooms) > 30
    assert not full
