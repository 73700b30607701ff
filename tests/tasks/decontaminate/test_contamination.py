"""Decontamination in a build: drop, cut and flag; short items; exemption; the report both ways; registry files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpusmill import benchmarks
from corpusmill.config import Decontaminate, Recipe, parse_recipe
from corpusmill.dataset.contamination import report
from corpusmill.dataset.funnel import faults
from corpusmill.errors import CheckFailed, NotFound, Unavailable, UsageError
from corpusmill.kernels.screen import screen as kernel
from corpusmill.places import SHIPPED
from corpusmill.store import Output, Store, open_store
from mill import cli
from tasks.chain import Built, build
from tasks.decontaminate import screen
from tasks.queries.export import export
from tests import golden

LAMPS = golden.QUESTION
SHORT = "Which northern ferry carries nine orchard keepers home"  # eight words
PHRASE = "Read the passage below with care and then choose the best answer to the question that follows"
OAK = f"{PHRASE}: what is an oak made of?"
NAMES = ["drop", "cut", "flag", "exempt"]


def pages() -> list[tuple[str, str]]:
    filler = [(f"https://a.example/{s}", golden.page(s, i)) for i, s in enumerate(golden.SUBJECTS[:4])]
    extras = {
        "lamps": f"{LAMPS.title()}.",
        "edited": LAMPS.replace("keeper", "watchman") + ".",  # the 13-grams after it are left
        "short": f"{SHORT}?",
        "similar": SHORT.replace("home", "away") + "?",
        **{f"phrase{i}": f"{PHRASE} on page {i} of the {s}." for i, s in enumerate(golden.SUBJECTS[:5])},
        **{f"oak{i}": f"In {s} they ask: {OAK} Nobody there knows." for i, s in enumerate(golden.SUBJECTS[:3])},
    }
    made = [(f"https://b.example/{name}", golden.page(f"{name} market", 1, extra=e)) for name, e in extras.items()]
    return filler + made


def recipe(root: Path, name: str, shards: int, **settings: Any) -> Recipe:
    return parse_recipe(
        {
            "name": name,
            "source": {"made": {"kind": "files", "root": str(root), "pattern": f"{shards}/*.warc.gz"}},
            "extract": {"mode": "fast"},
            "decontaminate": {"root": str(root), "use": [str(root / "quiz.toml")], **settings},
            "deduplicate": {"min_jaccard": 1.0},
            "pack": {"seq_len": 64, "vocab_size": 512, "heldout_one_in": 4},
        },
        name,
    )


def write(root: Path) -> None:
    records = [golden.record(url, html) for url, html in pages()]
    for shards, members in ((1, [records]), (2, [records[::-2], records[-2::-2]])):
        (root / str(shards)).mkdir(parents=True)
        for number, part in enumerate(members):
            (root / str(shards) / f"{number}.warc.gz").write_bytes(b"".join(part))
    rows = {"name": ["lamps", "short", "tiny", "oak"], "question": [LAMPS, SHORT, "What is it?", OAK], "extra": [1] * 4}
    pq.write_table(pa.table(rows), root / "quiz.parquet")
    (root / "quiz.toml").write_text(
        'name = "quiz"\nfile = "quiz.parquet"\nfields = ["question"]\nid = "name"\nlicence = "CC0-1.0"\n'
    )


class Made:
    def __init__(self, folder: Path) -> None:
        self.root = folder / "crawl"
        write(self.root)
        self.store = open_store(folder / "store", create=True)
        self.built = {
            "drop": self.build("drop"),
            "split": self.build("split", shards=2),
            "cut": self.build("cut", action="cut"),
            "flag": self.build("flag", action="flag"),
            "exempt": self.build("exempt", exempt_contexts=4),
        }

    def build(self, name: str, shards: int = 1, **settings: Any) -> Built:
        made = recipe(self.root, name, shards, **settings)
        return build(made, self.store, lambda stage, fn, units: [fn(unit) for unit in units])

    def report(self, name: str, **asked: str) -> dict[str, Any]:
        return report(self.store, self.built[name].manifest, **asked)

    def found(self, name: str) -> dict[str, set[str]]:
        """Item -> last part of the URLs that hold it."""
        return {g["item"]: {d["url"].split("/")[-1] for d in g["documents"]} for g in self.report(name)["items"]}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("contamination"))


PHRASES = {f"phrase{i}" for i in range(5)}
OAKS = {f"oak{i}" for i in range(3)}


def reasons(built: Built) -> int:
    ended = built.manifest.row("decontaminate").reasons.get("contaminated")
    return ended.docs if ended else 0


def texts(store: Store, built: Built, folder: Path) -> dict[str, str]:
    export(store, built.digest, "jsonl", False, folder)
    lines = [line for file in sorted(folder.rglob("*.jsonl*")) for line in file.read_text("utf-8").split("\n") if line]
    return {row["url"].split("/")[-1]: row["text"] for row in map(json.loads, lines)}


def test_documents_that_hold_items_are_dropped_and_look_alikes_stay(made):
    assert made.found("drop") == {
        "lamps": {"lamps", "edited"},
        "short": {"short"},
        "oak": PHRASES | OAKS,
    }
    assert reasons(made.built["drop"]) == 11


def test_split_and_shuffled_shards_give_the_same_hits(made):
    def hits(name: str) -> list[str]:
        table = made.store.table(made.built[name].manifest.table("contamination"))
        told = [{k: v for k, v in row.items() if k not in ("doc_id", "locator")} for row in table.to_pylist()]
        return sorted(json.dumps(row, sort_keys=True) for row in told)

    assert hits("split") == hits("drop")
    assert len(hits("drop")) == 11


def test_cut_takes_the_item_out_and_leaves_the_rest(made, tmp_path):
    built = made.built["cut"]
    assert reasons(built) == 0
    assert not list(faults(built.manifest.funnel))
    pack = built.manifest.row("pack")
    assert pack.reasons["edited"].docs == 0
    assert pack.reasons["edited"].bytes > len(LAMPS) + len(SHORT) + 3 * len(OAK)
    kept = texts(made.store, built, tmp_path / "cut")
    whole = texts(made.store, made.built["flag"], tmp_path / "flag")
    assert kept.keys() == whole.keys()
    assert LAMPS.title() in whole["lamps"]
    assert kept["lamps"] == whole["lamps"].replace(LAMPS.title(), "")
    changed = LAMPS.replace("keeper", "watchman")
    assert kept["edited"] == whole["edited"].replace(changed, "")
    assert kept["short"] == whole["short"].replace(SHORT, "")
    assert kept["similar"] == whole["similar"]
    assert kept["oak0"] == whole["oak0"].replace(OAK[:-1], "")
    assert kept["phrase0"] == whole["phrase0"].replace(PHRASE, "")


def test_flag_keeps_the_document_and_names_the_item(made):
    built = made.built["flag"]
    assert reasons(built) == 0
    lineage = made.store.table(built.manifest.table("lineage")).to_pylist()
    (decided,) = (r for r in lineage if r["stage"] == "decide" and r["kind"] == "decisions")
    columns = {key: decided[key] for key in ("name", "digest", "content", "size", "rows")}
    rows = made.store.table(Output.from_json(columns)).to_pylist()
    named = [row for row in rows if row["benchmark"]]
    assert len(named) == 11
    assert {row["benchmark"] for row in named} == {"quiz/lamps", "quiz/short", "quiz/oak"}
    assert {row["stage"] for row in named} <= {None, "exact", "near"}


def test_common_phrases_are_exempted_and_copies_of_an_item_are_not(made):
    assert made.found("exempt") == {"lamps": {"lamps", "edited"}, "short": {"short"}, "oak": OAKS}
    listed = made.report("exempt")["exempted_ngrams"]
    words = PHRASE.lower().split()
    assert {row["ngram"] for row in listed} == {" ".join(words[k : k + 13]) for k in range(len(words) - 12)}
    assert {row["contexts"] for row in listed} == {6}  # five pages, and one for all copies of the item
    proof = made.report("exempt")["planted"]["exempted"]
    assert proof["found"] == proof["planted"] > 0
    assert made.report("drop")["exempted_ngrams"] == []


def test_the_report_leads_both_ways_and_names_what_it_cannot_see(made):
    found = made.report("drop", item="lamps")
    (item,) = found["items"]
    hit = next(d for d in item["documents"] if d["url"].endswith("/lamps"))
    (document,) = made.report("drop", document=hit["doc_id"][:10])["documents"]
    assert document["items"][0]["item"] == "lamps"
    assert (hit["share"], hit["whole"], hit["words"]) == (1.0, False, 13)
    (quiz,) = made.report("drop")["benchmarks"]
    assert quiz["screened"] == {"ngrams": 2, "whole": 1, "too_short": 1}
    assert (quiz["too_short"], quiz["items_found"], quiz["documents"]) == (["tiny"], 3, 11)
    assert quiz["licence"] == "CC0-1.0"
    assert any("paraphrases" in line for line in found["cannot_see"])
    for asked in ({"benchmark": "other"}, {"item": "none"}, {"document": "https://b.example/none"}):
        with pytest.raises(NotFound):
            made.report("drop", **asked)


def test_the_command_prints_it(made, capsys):
    assert cli.run(["contamination", "drop", "--store", made.store.uri, "--item", "short", "--benchmark", "quiz"]) == 0
    out = capsys.readouterr().out
    assert "https://b.example/short" in out
    assert "all 8 words: which northern ferry carries nine orchard keepers home" in out
    assert cli.run(["contamination", "drop", "--store", made.store.uri, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["documents"]) == 11
    assert cli.run(["contamination", "drop", "--store", made.store.uri, "--benchmark", "none"]) == 3


def test_every_length_in_use_is_tried_in_the_run(made):
    proof = made.built["drop"].manifest.proofs.decontaminate
    assert [(one["words"], one["whole"], one["planted"], one["found"]) for one in proof["by_length"]] == [
        (13, False, 2, 2),
        (8, True, 1, 1),
    ]


def test_a_run_whose_planted_items_are_not_found_ends(made, tmp_path, monkeypatch):
    """Through the same code that screens: where it goes blind, the gate stops the run."""
    monkeypatch.setattr(kernel, "_confirmed", lambda *given: [])
    with pytest.raises(CheckFailed, match="0 of 3 planted items"):
        screen.self_test(recipe(made.root, "blind", 1, min_share=0.1), open_store(tmp_path / "store", create=True))


# Benchmarks: registry files, formats, faults.


def test_registry_files_are_sound_and_name_licence_and_source():
    files = sorted((SHIPPED / "recipes" / "benchmarks").glob("*.toml"))
    assert len(files) >= 6
    found = benchmarks.benchmarks_of(Decontaminate(use=tuple(file.stem for file in files), ngram=11))
    assert [wanted.name for wanted in found] == [file.stem for file in files]
    for wanted in found:
        assert wanted.benchmark.licence
        assert wanted.benchmark.source
        assert (wanted.ngram, wanted.exact_words) == (11, 8)


def quiz(root: Path, **settings: Any) -> Decontaminate:
    entry = {"name": "quiz", "file": "quiz.jsonl", "fields": ("q",), **settings}
    return Decontaminate.model_validate({"root": str(root), "benchmark": [entry]})


def test_formats_give_the_same_items(tmp_path):
    rows = [{"id": "a", "q": "one\u2028two", "c": ["x", "y"]}, {"id": None, "q": "three", "c": None}]
    (tmp_path / "quiz.jsonl").write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows), "utf-8")
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "quiz.parquet")
    for file in ("quiz.jsonl", "quiz.parquet"):
        config = quiz(tmp_path, file=file, fields=("q", "c"))
        (wanted,) = benchmarks.benchmarks_of(config)
        assert benchmarks.items(wanted, config) == [("a", "one\u2028two\nx\ny"), ("2", "three\n")]


@pytest.mark.parametrize(
    ("lines", "settings", "error", "says"),
    [
        ('{"id": 1, "q": "x"}\n[]\n', {}, UsageError, "line 2: not an item"),
        ('{"id": 1, "text": "x"}\n', {}, UsageError, "line 1: not an item"),
        ('{"id": 1, "q": "x"}\n{"id": 1, "q": "y"}\n', {}, UsageError, "two items .* have the id '1'"),
        ("", {"file": "away.jsonl"}, Unavailable, "away.jsonl cannot be read"),
        ("no table", {"format": "parquet"}, Unavailable, "cannot be read"),
    ],
)
def test_faults_of_a_benchmark_file_are_told(tmp_path, lines, settings, error, says):
    (tmp_path / "quiz.jsonl").write_text(lines, "utf-8")
    config = quiz(tmp_path, **settings)
    with pytest.raises(error, match=says):
        benchmarks.items(benchmarks.benchmarks_of(config)[0], config)


def test_benchmarks_that_are_not_there_or_named_twice_are_told(tmp_path):
    with pytest.raises(NotFound, match="no benchmark 'gsm9k'"):
        benchmarks.benchmarks_of(Decontaminate(use=("gsm9k",)))
    twice = Decontaminate.model_validate(
        {"use": ["recipes/benchmarks/piqa.toml"], "benchmark": [{"name": "piqa", "file": "x", "fields": ["q"]}]}
    )
    with pytest.raises(UsageError, match="named twice"):
        benchmarks.benchmarks_of(twice)
    with pytest.raises(ValueError, match="named twice"):
        Decontaminate(use=("piqa", "piqa"))


def test_the_folder_of_benchmarks_is_the_recipes_then_the_environments_and_none_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORPUSMILL_BENCHMARKS", str(tmp_path))
    assert benchmarks.folder(Decontaminate(root="here")) == Path("here")
    assert benchmarks.folder(Decontaminate()) == tmp_path
    monkeypatch.delenv("CORPUSMILL_BENCHMARKS")
    with pytest.raises(UsageError, match="gsm8k-test") as caught:
        benchmarks.identities(Decontaminate(use=("gsm8k-test",)))
    assert "decontaminate.root or CORPUSMILL_BENCHMARKS" in caught.value.do
