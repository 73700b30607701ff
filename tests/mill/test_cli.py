"""The command `mill`: quick help, one clear message for every way to fail, its exit code, nothing half-written."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from corpusmill.errors import MillError
from mill import cli

MILL = Path(sys.executable).with_name("mill")


@pytest.fixture(autouse=True)
def _away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CORPUSMILL_STORE", raising=False)


def said(capsys: pytest.CaptureFixture, *argv: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command run in this process."""
    code = cli.run(argv)
    out = capsys.readouterr()
    return code, out.out, out.err


def test_help_is_quick_and_imports_nothing_heavy():
    heavy = ("prefect", "torch", "duckdb", "pyarrow", "numba", "boto3")
    code = (
        "import sys\nfrom mill.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        f"print([m for m in {heavy!r} if m in sys.modules])"
    )
    took = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        assert done.stdout.splitlines()[-1] == "[]"
    assert all(f"\u2502 {verb} " in done.stdout for verb in (*cli.COMMANDS, *cli.GROUPS))
    assert (
        min(took) < 0.8
    )  # twice of a quiet machine; CPU seconds: how long others keep the machine busy is not our doing


def test_both_names_of_the_command_work():
    for name in ("mill", "corpusmill"):
        done = subprocess.run([MILL.with_name(name), "--version"], capture_output=True, text=True, check=True)
        assert done.stdout.strip()


WRITING = [
    ["export", "x", "-o"],
    ["lsh", "--svg"],
    ["quality", "train", "--positive", "p", "--negative", "n", "-o"],
    ["perplexity", "train", "--text", "t", "-o"],
    ["perplexity", "train", "--text", "t", "-o", "m", "--arpa"],
    ["perplexity", "convert", "a.arpa", "-o"],
    *(["demo", "--home"], ["up", "--home"], ["down", "--home"], ["status", "--home"]),
]


@pytest.mark.parametrize("argv", WRITING, ids=" ".join)
@pytest.mark.parametrize("address", ["s3://bucket/out", "S3://bucket", "file:///tmp/out", "https://host/x"])
def test_an_address_is_no_path_to_write_to(capsys, tmp_path, argv, address):
    """A folder called `s3:` was made."""
    code, out, err = said(capsys, *argv, address)
    assert (code, out) == (2, "")
    assert err.startswith(f"error[usage] {address.replace(':///', '://')} is an address, not a path\n  expected a file")
    assert list(tmp_path.iterdir()) == []


def test_every_verb_that_writes_a_file_was_tried():
    paths = set()
    for target, _ in (*cli.COMMANDS.values(), *(verb for _, verbs in cli.GROUPS.values() for verb in verbs.values())):
        module, _, name = target.partition(":")
        verb = getattr(import_module(module), name)
        hints = get_type_hints(verb, include_extras=True)
        paths |= {(name, key) for key, hint in hints.items() if Path in (get_args(hint) or (hint,))[:1]}
        paths |= {(name, key) for key, hint in hints.items() if "pathlib" in repr(hint) and "validator" in repr(hint)}
    read = {("quality_score", "model"), ("perplexity_score", "model"), ("perplexity_convert", "arpa")}
    assert len(paths - read) == len(WRITING)


@pytest.mark.parametrize(
    ("argv", "code", "expected"),
    [
        (["funnell", "x"], 2, 'unknown command "funnell"; did you mean "funnel"?'),
        (
            ["build"],
            2,
            "`mill build` needs RECIPE: A TOML file, or the name of one in recipes/\n  See `mill build --help`.",
        ),
        (["recipe", "check"], 2, "`mill recipe check` needs FILE: A TOML file"),
        (["export", "x"], 2, "`mill export` needs -o: Folder to write to"),
        (["build", "crawl", "too", "much"], 2, "too much is given: too much\n"),
        (["lsh", "--svg", "."], 2, ". cannot be written"),
        (["lsh", "--svg", "no/such/folder.svg"], 2, "no/such/folder.svg cannot be written"),
        (["plan", "demo"], 3, "`mill demo` makes it"),
        (["quality", "score", ".", "x"], 3, ".: a folder\n  expected a model's file"),
        (["status", "--home", "/dev/null"], 2, "/dev/null is a file\n  expected a folder"),
        (["build", "crawl", "--workers", "two"], 2, "--workers"),
        (["build", "crawl", "--workers", "0"], 2, "--workers 0"),
        (["build", "crawl", "--sett", "a=b"], 2, "--set"),
        (["build", "nope"], 3, "no recipe 'nope'"),
        (["build", "crawl", "--store", "elsewhere"], 3, "There is no store at"),
        (["build", "crawl", "--store", "ftp://x/y"], 2, "not a store URI"),
        (["funnel", "x"], 3, "There is no store at"),
        (["recipe", "check", "crawl", "--set", "extract.mode=fastest"], 2, "extract.mode"),
        (["train", "x", "--config", "train-demo"], 3, "There is no store at"),
    ],
)
def test_what_was_typed_wrong_gives_one_message_and_its_code(capsys, tmp_path, argv, code, expected):
    got, out, err = said(capsys, *argv)
    assert (got, out) == (code, "")
    assert err.startswith("error[")
    assert expected in err
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_all_faults_of_a_recipe_come_at_once(capsys, tmp_path):
    (tmp_path / "r.toml").write_text(
        'name = "Big"\nsead = 1\n[source.crawl]\nkind = "files"\nroot = 3\n[pack]\nseq_len = 2\n'
    )
    code, _, err = said(capsys, "recipe", "check", "r.toml")
    assert code == 2
    for key in ("name", "sead", "source.crawl.root", "pack.seq_len"):
        assert key in err
    (tmp_path / "r.toml").write_text("name = \n")
    assert said(capsys, "recipe", "check", "r.toml")[0] == 2


def test_with_json_the_error_is_a_document_on_stderr(capsys):
    code, out, err = said(capsys, "funnel", "x", "--json")
    fault = json.loads(err)
    assert (code, out) == (3, "")
    assert fault["error"] == "not-found"
    assert fault["exit_code"] == 3
    assert set(fault) == {"error", "exit_code", "what", "why", "do"}


def test_recipe_schema_is_a_json_document(capsys):
    code, out, _ = said(capsys, "recipe", "schema")
    assert code == 0
    assert "source" in json.loads(out)["properties"]


def test_doctor_probes_a_store_and_leaves_nothing(capsys, tmp_path):
    from corpusmill.store import open_store

    store = open_store(tmp_path / "store", create=True)
    before = store.list("")
    code, out, _ = said(capsys, "doctor", "store", "--store", "store", "--json")
    document = json.loads(out)
    assert code == 0
    assert document["ok"]
    assert {"create_race", "list_pages", "clock"} <= {check["name"] for check in document["checks"]}
    assert store.list("") == before


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Make `mill recipe schema` fail in this way."""
    from corpusmill import config

    def fail() -> None:
        raise error

    monkeypatch.setattr(config, "recipe_schema", fail)


def test_our_own_fault_is_saved_to_a_file(capsys, monkeypatch):
    failing(monkeypatch, KeyError("oops"))
    code, _, err = said(capsys, "recipe", "schema")
    assert code == 1
    assert "Traceback" not in err
    path = Path(err.split("The traceback is in ")[1].split(";")[0])
    text = path.read_text()
    path.unlink()
    assert "KeyError: 'oops'" in text
    assert "in fail" in text
    code, _, err = said(capsys, "recipe", "schema", "-v")
    assert "Traceback" in err
    Path(err.split("The traceback is in ")[1].split(";")[0]).unlink()


@pytest.mark.parametrize(
    ("error", "code", "expected"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "st/ob"), 7, "no space left on the disk: st/ob"),
        (OSError("Error writing bytes to file. Detail: [errno 28] No space left on device"), 7, "no space left"),
        (OSError(errno.EROFS, "Read-only file system", "x"), 7, "no permission: x"),
        (ConnectionResetError(104, "Connection reset by peer"), 7, "a connection was lost"),
        (MillError("ours", "why", "do"), 1, "error[internal] ours\n  why\n  do"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_the_world_around_failing_has_its_own_codes(capsys, monkeypatch, error, code, expected):
    failing(monkeypatch, error)
    got, out, err = said(capsys, "recipe", "schema")
    assert (got, out) == (code, "")
    assert expected in err
    assert "Traceback" not in err


def test_sigterm_ends_with_143_and_cleans_up(tmp_path):
    code = (
        "import signal, sys, time\nfrom corpusmill import config\nfrom mill import cli\n"
        "def wait():\n    try:\n        print('ready', file=sys.stderr, flush=True)\n"
        "        time.sleep(60)\n    finally: print('cleaned', file=sys.stderr, flush=True)\n"
        "config.recipe_schema = wait\ncli.main(['recipe', 'schema'])"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert process.stderr.readline() == "ready\n"
    os.kill(process.pid, signal.SIGTERM)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 143
    assert err.startswith("cleaned\n")


def test_a_reader_that_goes_away_is_no_fault():
    process = subprocess.run(
        f"'{MILL}' recipe schema | head -c 1 >/dev/null; echo ${{PIPESTATUS[0]}}",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stdout.strip() in ("0", "141")  # 0 where the pipe took the whole document first
    assert process.stderr == ""
