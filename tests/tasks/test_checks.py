"""What a recipe names is looked at before a page is read, and no fault hides another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpusmill.config import parse_recipe
from corpusmill.errors import NotFound, UsageError
from mill.cli import run as mill
from tasks import checks

NAMES = {
    "judge": {
        "quality": {"one": {"model": "none-1.bin"}, "two": {"model": "none-2.bin"}},
        "own": {"mine": {"function": "nowhere_at_all:f"}},
        "perplexity": {"model": "none-3.npz"},
    },
    "extract": {"urls": "no-lists"},
    "filter": {"rules": "no-rules"},
    "decontaminate": {"use": ["no-bench"]},
    "pack": {"tokenizer": "none-4.json"},
}
PLACES = [
    "filter.rules",
    "judge.quality.one",
    "judge.quality.two",
    "judge.perplexity",
    "judge.own.mine",
    "extract.urls",
    "decontaminate.use",
    "pack.tokenizer",
]


def recipe(**sections: object):
    return parse_recipe({"name": "r", "source": {"a": {"kind": "text", "root": "."}}, **sections}, "r")


def test_all_that_is_missing_is_found_at_once():
    assert [fault.place for fault in checks.faults(recipe(**NAMES))] == PLACES
    other = {**NAMES, "language": {"model": "none-5.ftz"}}
    assert {fault.place for fault in checks.faults(recipe(**other))} >= {"language.model", *PLACES[:2]}
    assert checks.faults(recipe()) == []


def test_one_fault_keeps_its_exit_code_and_several_are_one_error():
    checks.check(recipe(pack={"tokenizer": "none.json"}))  # the chain itself reads it
    with pytest.raises(NotFound, match="no rule file"):
        checks.check(recipe(filter={"rules": "no-rules"}))
    with pytest.raises(UsageError, match="2 faults in what it names") as told:
        checks.check(recipe(filter={"rules": "no-rules"}, extract={"urls": "no-lists"}))
    assert "extract.urls: no URL rules" in told.value.why


def test_faults_of_keys_and_of_what_they_name_come_together(tmp_path: Path, capsys):
    file = tmp_path / "r.toml"
    text = """\
seed = "x"
[source.a]
kind = "text"
[filter]
rules = "no-rules"
[pack]
tokenizer = "none.json"
seq_len = 8
"""
    file.write_text(text, encoding="utf-8")
    assert mill(["recipe", "check", str(file)]) == 2
    lines = [line.strip() for line in capsys.readouterr().err.splitlines()]
    places = [":".join(line.split(":")[:2]) for line in lines if line.startswith("line")]
    assert lines[0] == f"error[usage] {file}: 6 faults in the recipe"
    assert lines[1] == "name: missing"
    assert places == [
        "line 1: seed",
        "line 2: source.a.root",
        "line 5: filter.rules",
        "line 7: pack.tokenizer",
        "line 8: pack.seq_len",
    ]
