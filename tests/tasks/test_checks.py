"""What a recipe names is looked at before a page is read, and no fault hides another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpusmill import models
from corpusmill.config import parse_recipe
from corpusmill.errors import NotFound, UsageError
from corpusmill.store import open_store
from mill.cli import run as mill
from tasks import checks
from tasks.chain import build
from tasks.ingest import ingest

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


FETCHED = "lid.176.ftz"


def test_a_model_that_is_only_to_be_fetched_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    """And hides no fault of other judges."""
    monkeypatch.setenv("CORPUSMILL_MODELS", str(tmp_path / "none"))
    file = tmp_path / "r.toml"
    file.write_text('name = "r"\n[source.a]\nkind = "text"\nroot = "."\n', encoding="utf-8")
    for more in ([], ["--set", 'extract.languages=["en"]'], ["--set", 'language.keep=["de"]']):
        assert mill(["recipe", "check", str(file), *more]) == 0
        said = capsys.readouterr().out
        assert "no faults" in said
        assert f"note: model {FETCHED} is not fetched yet" in said
        assert "Run `mill models fetch`." in said
    assert mill(["recipe", "check", str(file), "--json"]) == 0
    assert FETCHED in capsys.readouterr().out
    assert mill(["recipe", "check", str(file), "--set", 'judge.quality.q.model="none.bin"']) == 2
    said = capsys.readouterr().err
    assert "judge.quality.q: no model 'none.bin'" in said
    assert "fetched" not in said
    with pytest.raises(NotFound, match="not fetched yet"):
        checks.check(recipe())


def cut(file: Path, of: Path) -> str:
    file.write_bytes(of.read_bytes()[:-1000])
    return str(file)


def test_model_files_that_are_none_are_refused_before_a_page_is_read(tmp_path: Path):
    lid = models.model_path(FETCHED)
    (tmp_path / "text.bin").write_text("no model")
    for setting in (str(tmp_path / "text.bin"), cut(tmp_path / "cut.ftz", lid)):
        for key, section in {
            "language.model": {"language": {"model": setting}},
            "judge.quality.q": {"judge": {"quality": {"q": {"model": setting}}}},
            "judge.perplexity": {"judge": {"perplexity": {"model": setting}}},
        }.items():
            with pytest.raises(UsageError, match="cannot be read as a model"):
                checks.check(recipe(**section))
            assert [fault.place for fault in checks.faults(recipe(**section))] == [key]


def test_own_functions_and_modules_that_fail_are_refused_before_a_page_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "own_faulty.py").write_text(
        "VERSION = 1\ndef fails(texts): raise KeyError('x')\n"
        "def short(texts): return []\ndef sizes(texts): return [1.0]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for name, says in {"fails": "failed on a batch", "short": "returned 0 numbers", "gone": "no function"}.items():
        with pytest.raises((UsageError, NotFound), match=says):
            checks.check(recipe(judge={"own": {"mine": {"function": f"own_faulty:{name}"}}}))
    checks.check(recipe(judge={"own": {"mine": {"function": "own_faulty:sizes"}}}))
    with pytest.raises(UsageError, match="no function `read`"):
        checks.check(recipe(source={"a": {"kind": "own", "module": "own_faulty", "root": "."}}))


def refused(*_: object) -> list:
    pytest.fail("a page was read before what is wrong was said")


def test_an_ingestion_says_what_is_wrong_before_it_reads(tmp_path: Path):
    (tmp_path / "a.txt").write_text("The mill stands by the river.")
    store = open_store(tmp_path / "store", create=True)
    source = {"a": {"kind": "text", "root": str(tmp_path), "pattern": "*.txt"}}
    own = tmp_path / "own.ftz"
    own.write_bytes(models.model_path(FETCHED).read_bytes())
    for error, says, sections in (
        (UsageError, '"english"', {"extract": {"languages": ["english"]}, "language": {"model": str(own)}}),
        (UsageError, '"xx"', {"extract": {"languages": ["en", "xx"]}}),
        (UsageError, "model", {"extract": {"languages": ["en"]}, "language": {"model": cut(tmp_path / "c", own)}}),
        (NotFound, "no URL rules", {"extract": {"urls": "none"}}),
    ):
        with pytest.raises(error, match=says):
            ingest(recipe(source=source, **sections), store, refused)
    # What only a build needs is no matter of an ingestion.
    faulty = recipe(source=source, filter={"rules": "none"}, language={"model": str(tmp_path / "c")}, train="none")
    done = ingest(faulty, store, lambda stage, unit, jobs: [unit(job) for job in jobs])
    assert [manifest.documents for _, manifest in done.published] == [1]


def test_a_build_says_what_is_wrong_before_it_reads(tmp_path: Path):
    (tmp_path / "a.txt").write_text("The mill stands by the river.")
    store = open_store(tmp_path / "store", create=True)
    source = {"a": {"kind": "text", "root": str(tmp_path), "pattern": "*.txt"}}
    for says, sections in (
        ("no dataset 'none'", {"deduplicate": {"against": "none"}}),
        ("no training config 'none'", {"train": "none"}),
        ("no tokenizer none.json", {"pack": {"tokenizer": "none.json"}}),
    ):
        with pytest.raises(NotFound, match=says):
            build(recipe(source=source, decontaminate={"benchmark": []}, **sections), store, refused)


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
