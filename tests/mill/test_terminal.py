"""What comes from outside never drives a terminal and never ends a command, whatever letters the output has."""

from __future__ import annotations

import ast
import io
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusmill.errors import Unavailable
from corpusmill.plain_text import json_text, one_line, table, visible
from corpusmill.redact import Redacted
from mill import cli
from mill.progress import Lines
from tests import datasets
from tests.tasks.acquire.server import serve

CODES = "\x1b]0;PWNED\x07\x1b[2J\x1b[31m\x9b2J\x08\x7f\r\u2028\u202e\x85"
LETTERS = "Fluß 川 река 🙂"
EVIL = f"{CODES}{LETTERS}"
OBEYED = {*map(chr, range(32)), *map(chr, range(0x7F, 0xA0))} - {"\n", "\t"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset whose file names, URLs and texts hold control characters and letters of many scripts."""
    folder = tmp_path_factory.mktemp("evil") / "store"
    with pytest.MonkeyPatch.context() as patch:
        names = {name: f"{name}{EVIL}\nstage faked" for name in datasets.FILES}
        files = {
            names[name]: [(f"{url}{EVIL}", *rest, text and f"{text} {EVIL}") for url, *rest, text in rows]
            for name, rows in datasets.FILES.items()
        }
        patch.setattr(datasets, "FILES", files)
        real = datasets.doc_id
        patch.setattr(datasets, "doc_id", lambda locator, i: real(locator[:9], i))
        datasets.publish(folder)
    return folder


COMMANDS = [
    ("funnel", "tiny"),
    ("rejects", "tiny"),
    ("lineage", "tiny"),
    ("verify", "tiny"),
    ("export", "tiny", "--all"),
    ("funnel", f"no{EVIL}"),
    ("plan", f"no{EVIL}.toml"),
    ("plan", "demo", "--set", f"source.demo.root='no{EVIL}'"),
    ("rejects", "tiny", "--reason", f"no{EVIL}"),
    (f"no{EVIL}",),
    ("recipe", "check", "demo", "--set", f"{EVIL}=1"),
]


def run(argv: tuple[str, ...], store: Path, tmp_path: Path, *more: str) -> int:
    out = ("-o", str(tmp_path / "out")) if argv[0] == "export" else ()
    where = ("--store", str(store)) if argv[0] in ("funnel", "rejects", "lineage", "verify", "export", "plan") else ()
    return cli.run((*argv, *out, *where, *more))


@pytest.mark.parametrize("argv", COMMANDS, ids=[command[0] if command[0].isascii() else "?" for command in COMMANDS])
@pytest.mark.parametrize("as_json", [(), ("--json",)], ids=["text", "json"])
def test_no_command_prints_what_a_terminal_obeys(store: Path, tmp_path: Path, capfd: Any, argv, as_json) -> None:
    code = run(argv, store, tmp_path, *as_json)
    out, err = capfd.readouterr()
    assert not set(out + err) & OBEYED
    assert "\u202e" not in out + err
    assert code in ((0,) if "tiny" in argv and "--reason" not in argv else (2, 3)), err
    if as_json:
        said = json.loads(out or err)
        assert out.count("\n") + err.count("\n") == 1
        if argv[0] in ("rejects", "lineage") and code == 0:
            assert CODES in str(said).encode().decode("unicode_escape") or "\\u001b" in out
            assert "\\u009b" in out
            assert LETTERS in out
    elif argv[0] == "lineage":
        assert "\\x1b]0;PWNED\\x07" in out
        assert not [line for line in out.splitlines() if line.startswith("stage faked")]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "shift_jis"])
@pytest.mark.parametrize("as_json", [(), ("--json",)], ids=["text", "json"])
def test_an_output_without_the_letters_gets_others_and_the_command_ends_well(
    store: Path, tmp_path: Path, monkeypatch, encoding: str, as_json
) -> None:
    for argv in (("rejects", "tiny"), ("lineage", "tiny"), ("funnel", f"no{EVIL}")):
        outputs = [io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="strict") for _ in range(2)]
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", outputs[0])
            patch.setattr(sys, "stderr", outputs[1])
            assert run(argv, store, tmp_path, *as_json) == (0 if argv[1] == "tiny" else 2)
            for output in outputs:
                output.flush()
        out, err = (output.buffer.getvalue().decode(encoding) for output in outputs)  # type: ignore[attr-defined]
        assert not set(out + err) & OBEYED
        if as_json:
            assert LETTERS in str(json.loads(out or err))


def test_errors_of_redirects_progress_and_log_records_are_not_obeyed(tmp_path: Path, capfd: Any, caplog: Any) -> None:
    file = tmp_path / "web.toml"
    with serve(tmp_path, lambda number, path: "redirect:file:///x\x1b]0;PWNED\x07\x1b[2J") as server:
        file.write_text(f'name = "w"\n[source.c]\nkind = "common-crawl"\nroot = "{server.url}"\ncrawls = ["newest"]\n')
        assert cli.run(("plan", str(file), "--store", str(tmp_path / "none"))) == 7
        text = capfd.readouterr().err
        assert cli.run(("plan", str(file), "--store", str(tmp_path / "none"), "--json")) == 7
    assert "redirects to file:///x\\x1b]0;PWNED\\x07\\x1b[2J" in text
    said = capfd.readouterr().err
    assert "\\u001b]0;PWNED\\u0007" in said
    assert not set(text + said) & OBEYED
    shown = io.StringIO()
    clock = iter(range(0, 1000, 40))
    Lines(_Engine(), shown, lambda: next(clock))(f"stage{CODES}", lambda unit: unit, [1])  # type: ignore[arg-type]
    assert shown.getvalue()
    assert not set(shown.getvalue()) & OBEYED
    record = Redacted("x", logging.INFO, "f", 1, "%s", (f"a{CODES}",), None)
    assert not set(record.getMessage()) & OBEYED


class _Engine:
    def map(self, fn: Any, units: list[Any], on_done: Any) -> list[Any]:
        for unit in units:
            on_done(unit)
        return units


@given(st.text())
def test_visible_text_has_nothing_to_obey_and_json_is_the_same_document(text: str) -> None:
    assert not set(visible(text)) & OBEYED
    assert visible(visible(text)) == visible(text)
    assert not set(one_line(text)) & {"\n", "\t"}
    for only_ascii in (True, False):
        said = json_text({"text": text}, only_ascii=only_ascii)
        assert json.loads(said) == {"text": text}
        assert not set(said) & OBEYED


def test_a_half_of_a_letter_can_be_said() -> None:
    """What is not UTF-8 in a file name comes as such halves."""
    assert visible("a\udc9bb") == "a\\udc9bb"
    assert json.loads(json_text({"a": "\udc9b"})) == {"a": "\udc9b"}
    json_text({"a": "\udc9b"}).encode()


def test_a_cell_stays_in_its_line() -> None:
    assert table(("a",), [("x\ny\x1b[2J",)]) == "a\nx\\ny\\x1b[2J"


def test_an_error_keeps_its_lines() -> None:
    assert str(Unavailable("a", "b\nc")) == "a\nb\nc"


def test_verbs_print_by_what_takes_codes_out() -> None:
    """`print` is for mill/common.py; warm.py draws its counter over itself, with numbers alone."""
    root = Path(__file__).parents[2] / "mill"
    found = {
        path.name
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print"
    }
    assert found == {"common.py", "warm.py"}


NO_UTF8 = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def test_a_process_without_utf8_finds_the_same_files_and_ends_well(store: Path, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "Fluß.jsonl").write_text('{"text": "x"}\n')
    (tmp_path / "r.toml").write_text('name = "r"\n[source.a]\nkind = "jsonl"\nroot = "src"\nsnapshot = "s"\n')
    for words in (["plan", "r.toml", "--store", "none", "--json"], ["lineage", "tiny", "--store", str(store)]):
        code = f"import sys; sys.argv[1:] = {words}; from mill.cli import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, **NO_UTF8}, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.isascii()
        assert not {chr(byte) for byte in done.stdout + done.stderr} & OBEYED
        if words[0] == "plan":
            assert json.loads(done.stdout)["sources"][0]["files"] == 1
