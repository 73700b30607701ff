"""What-if, comparing rule sets, labels, floors and measures of one's own, on the golden crawl."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from corpusmill.config import Recipe, load_recipe, parse_recipe
from corpusmill.dataset import labels
from corpusmill.dataset.buckets import parts_of
from corpusmill.errors import NotFound, UsageError
from corpusmill.kernels.quality.calibration import wilson
from corpusmill.rulebook import check, rules_of
from corpusmill.store import Output, Store, open_store
from corpusmill.typed_json import written
from mill import cli
from tasks.chain import Built, build
from tasks.queries.compare import compare
from tasks.queries.whatif import moved, quantiles, whatif
from tasks.stages import REASONS
from tests import golden

RULES = """
version = 1
definition = "datatrove"

[[rule]]
name = "too_few_words"
measure = "word_count"
min = {words}
source = "test"
says = "Fewer words than the test wants."

[[rule]]
name = "long_words"
measure = "mean_word_chars"
max = 9.0
source = "test"
says = "Long words."
"""


def serial(stage: str, fn: Any, units: Any) -> list[Any]:
    return [fn(unit) for unit in units]


def rule_file(folder: Path, words: int) -> str:
    path = folder / f"words{words}.toml"
    path.write_text(RULES.format(words=words), encoding="utf-8")
    return str(path)


def recipe_with(root: Path, rules: str, **sections: Any) -> Recipe:
    what = json.loads(golden.recipe(root).model_dump_json())
    return parse_recipe({**what, **sections, "filter": {"rules": rules}}, "test")


class Made:
    """One build of the golden crawl with bounds that a test moves."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = golden.write_crawl(folder / "crawl")
        self.store: Store = open_store(folder / "store", create=True)
        self.recipe = recipe_with(self.root, rule_file(folder, 60))
        self.built: Built = build(self.recipe, self.store, serial)

    def ask(self, *moves: str, samples: int = 5) -> dict[str, Any]:
        return whatif(self.store, self.built.digest, self.built.manifest, moves, samples)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("judging"))


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORPUSMILL_CACHE", str(tmp_path_factory.mktemp("cache")))


def test_whatif_says_what_a_build_with_the_moved_bound_does_and_that_build_judges_nothing_again(made: Made) -> None:
    found = made.ask("too_few_words.min=115")
    before = made.built.manifest.row("filter")
    assert found["funnel"][1]["before"] == {"docs_in": before.docs_in} | {
        name: getattr(before, name) for name in ("docs_out", "bytes_out", "words_out")
    }
    again = build(recipe_with(made.root, rule_file(made.folder, 115)), made.store, serial)
    after = again.manifest.row("filter")
    assert after.docs_out != before.docs_out, "the move must change something"
    assert found["funnel"][1]["after"] == {"docs_in": after.docs_in} | {
        name: getattr(after, name) for name in ("docs_out", "bytes_out", "words_out")
    }
    assert found["reasons"]["after"]["too_few_words"] == written(after.reasons["too_few_words"])
    assert found["lost"]["docs"] == before.docs_out - after.docs_out
    assert found["gained"]["docs"] == 0
    assert set(again.units_run) & {"extract", "judge"} == set()
    assert again.units_run["filter"] == 2
    assert found["not_recomputed"] == ["decontaminate", "exact", "near", "pack"]


def test_whatif_knows_a_recipe_that_keeps_every_language(made: Made) -> None:
    every = build(recipe_with(made.root, rule_file(made.folder, 60), language={"keep": ["*"]}), made.store, serial)
    found = whatif(made.store, every.digest, every.manifest, ["too_few_words.min=115"], 0)
    assert "other_language" not in found["reasons"]["before"]
    language, filtered = (every.manifest.row(stage) for stage in ("language", "filter"))
    assert found["reasons"]["before"] == written({**language.reasons, **filtered.reasons})
    assert found["lost"]["docs"] > 0


def test_whatif_shows_documents_on_both_sides_and_what_else_they_break(made: Made) -> None:
    found = made.ask("too_few_words.min=115", "language.min_score=0.0", samples=3)
    assert 0 < len(found["samples"]["lost"]) <= 3
    assert all(sample["text"] and sample["url"].startswith("https://") for sample in found["samples"]["lost"])
    (few,) = [row for row in found["overlap"] if row["reason"] == "too_few_words"]
    assert few["breaks"] >= few["alone"] > 0
    assert {other["reason"] for other in few["with"]} <= {"other_language", "uncertain_language", "long_words"}
    back = made.ask("too_few_words.min=0")
    assert back["lost"]["docs"] == 0


def test_whatif_without_a_move_is_the_dataset(made: Made) -> None:
    found = made.ask()
    assert found["gained"]["docs"] == found["lost"]["docs"] == 0
    assert found["reasons"]["before"] == found["reasons"]["after"]
    assert all(row["before"] == row["after"] for row in found["funnel"])


@pytest.mark.parametrize(
    ("move", "says"),
    [
        ("too_few_words.max=3", "has no max; it has min 60"),
        ("too_few_words.min=many", "expected a number"),
        ("too_few_words.min=nan", "expected a number"),
        ("nothing.min=3", "too_few_words, long_words"),
        ("extract.mode=fast", "needs a build"),
        ("too_few_words", "expected rule.min"),
        ("language.min_score=7", "score from 0 to 1"),
        ("language.min_scores.de=-0.1", "score from 0 to 1"),
        ("language.min_scores.english=0.5", 'knows no language "english" .did you mean "en"'),
        ("language.min_scores.EN=0.5", 'knows no language "EN" .did you mean "en"'),
        ("judge.personal_data.drop_above=1", "no bound of this dataset"),
    ],
)
def test_a_move_that_is_none_is_refused_with_what_there_is(made: Made, move: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        made.ask(move)


def test_a_bound_that_the_recipe_could_set_can_be_tried(made: Made) -> None:
    personal = recipe_with(made.root, rule_file(made.folder, 60), judge={"personal_data": {"kinds": ["email"]}})
    before, after = (
        moved(personal.what(), check(personal, ()), moves) for moves in ((), ["judge.personal_data.drop_above=3"])
    )
    (bound,) = [new for old, new in zip(before, after, strict=True) if old != new]
    assert (bound.reason, bound.column, bound.high) == ("personal_data", "pii_total", 3)
    for wrong in ("1.5", "-1"):
        with pytest.raises(UsageError, match="whole number, 0 or more"):
            moved(personal.what(), check(personal, ()), [f"judge.personal_data.drop_above={wrong}"])


def test_a_bound_looser_than_a_floor_is_refused_by_check_and_by_whatif(made: Made) -> None:
    floored = recipe_with(made.root, rule_file(made.folder, 60), judge={"floors": {"word_count": {"min": 50}}})
    rules = check(floored, ())
    assert moved(floored.what(), rules, ["too_few_words.min=55"])
    with pytest.raises(UsageError, match="looser than the floor"):
        moved(floored.what(), rules, ["too_few_words.min=49"])
    tight = recipe_with(made.root, rule_file(made.folder, 60), judge={"floors": {"word_count": {"min": 70}}})
    with pytest.raises(UsageError, match="min 60 is looser than the floor, min 70, of word_count"):
        check(tight, ())
    with pytest.raises(UsageError, match="no measure of the raw text"):
        check(recipe_with(made.root, rule_file(made.folder, 60), judge={"floors": {"wordz": {"min": 70}}}), ())


def test_documents_below_a_floor_are_counted_as_that_and_add_up(made: Made) -> None:
    floored = recipe_with(made.root, rule_file(made.folder, 118), judge={"floors": {"word_count": {"min": 115}}})
    built = build(floored, made.store, serial)
    reasons = built.manifest.row("filter").reasons
    assert reasons["below_floor"].docs > 0
    found = whatif(made.store, built.digest, built.manifest, ["too_few_words.min=116"], 0)
    assert found["reasons"]["after"]["below_floor"] == written(reasons["below_floor"])


def test_recipes_are_compared_document_by_document(made: Made) -> None:
    other = recipe_with(made.root, rule_file(made.folder, 115))
    found = compare(made.recipe, other, made.store, made.built.manifest, 2, serial)
    kept = {side: found["kept"][side]["docs"] for side in found["kept"]}
    documents = made.built.manifest.row("extract").docs_out
    assert sum(kept.values()) == documents == sum(row["docs"] for row in found["reasons"])
    assert kept["only_b"] == 0 < kept["only_a"]
    assert kept["both"] + kept["only_a"] == made.built.manifest.row("filter").docs_out
    assert {"a": None, "b": "too_few_words", "docs": kept["only_a"]} in found["reasons"]
    assert {sample["reason"] for sample in found["samples"]["only_a"]} == {"too_few_words"}


def test_commands_answer_in_text_and_json(made: Made, capsys: pytest.CaptureFixture, monkeypatch: Any) -> None:
    monkeypatch.setenv("CORPUSMILL_STORE", str(made.store.uri))
    ref = f"golden@{made.built.digest}"
    assert cli.run(["whatif", ref, "--set", "too_few_words.min=115", "-n", "1"]) == 0
    out = capsys.readouterr().out
    assert "would be removed" in out
    assert "Not recomputed: decontaminate" in out
    assert cli.run(["whatif", ref, "--set", "too_few_words.min=115", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["manifest"] == made.built.digest
    assert cli.run(["whatif", ref, "--set", "wrong.min=1"]) == 2
    assert "Traceback" not in capsys.readouterr().err


MEASURES = """
VERSION = {version}


def shouting(text):
    return [sum(c.isupper() for c in t.as_py()) / max(len(t.as_py()), 1) for t in text]


def wrong(text):
    return [1.0]
"""


def own_module(folder: Path, name: str, version: int = 1) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.py").write_text(MEASURES.format(version=version), encoding="utf-8")


def test_a_measure_from_outside_the_repository_is_measured_and_ruled_by(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_module(tmp_path / "mine", "my_measures")
    monkeypatch.syspath_prepend(str(tmp_path / "mine"))
    rules = tmp_path / "shout.toml"
    rules.write_text(
        RULES.format(words=60).replace("mean_word_chars", "own_shouting").replace("9.0", "0.01025"), encoding="utf-8"
    )
    own = {"own": {"shouting": {"function": "my_measures:shouting"}}}
    built = build(recipe_with(made.root, str(rules), judge=own), made.store, serial)
    assert built.manifest.row("filter").docs_out > 0
    assert built.manifest.row("filter").reasons["long_words"].docs > 0
    assert built.units_run["judge"] == 2, "a file each, of the new group alone"
    lineage = made.store.table(built.manifest.table("lineage"))
    assert "own:shouting" in lineage.column("kind").to_pylist()
    bad = {"own": {"shouting": {"function": "my_measures:wrong"}}}
    with pytest.raises(UsageError, match="returned 1 numbers for"):
        build(recipe_with(made.root, str(rules), judge=bad), made.store, serial)
    with pytest.raises(NotFound, match="no function my_measures:nothing"):
        build(recipe_with(made.root, str(rules), judge={"own": {"shouting": {"function": "my_measures:nothing"}}}),
              made.store, serial)  # fmt: skip


def test_rules_about_measures_that_the_recipe_does_not_compute_are_a_fault(made: Made, tmp_path: Path) -> None:
    for measure, says in (
        ("own_x", "computes no own_x"),
        ("quality_edu", "computes no quality_edu"),
        ("pii_total", "computes no pii_total"),
    ):
        rules = tmp_path / f"{measure}.toml"
        rules.write_text(RULES.format(words=1).replace("mean_word_chars", measure), encoding="utf-8")
        with pytest.raises(UsageError, match=says):
            check(recipe_with(made.root, str(rules)), ())


@pytest.mark.parametrize(("old", "name"), [("too_few_words", "near_duplicate"), ("short_line", "redirect")])
def test_no_rule_and_no_edit_has_the_name_of_a_reason_of_every_build(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture, old: str, name: str
) -> None:
    rules = tmp_path / "mine.toml"
    text = RULES.format(words=1) + '\n[[edit]]\nname = "short_line"\ntest = "few_words"\nmin_words = 3\nsays = "x"\n'
    rules.write_text(text.replace(old, name), encoding="utf-8")
    says = f"{name}: the name is taken: it is that of a reason of every build"
    with pytest.raises(UsageError, match=says):
        build(recipe_with(made.root, str(rules)), made.store, serial)
    assert cli.run(["recipe", "check", "demo", "--set", f"filter.rules={rules}"]) == 2
    assert says in capsys.readouterr().err


def test_labels_are_asked_for_stored_and_summed_up(
    made: Made, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORPUSMILL_STORE", str(made.store.uri))
    ref = f"golden@{made.built.digest}"
    monkeypatch.setattr("sys.stdin", io.StringIO("what?\nk\nd\n"))
    assert cli.run(["rejects", ref, "--reason", "other_language", "-n", "5", "--label", "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["labelled"] == {"keep": 1, "drop": 0, "skipped": 0}
    assert "keep it, drop it" in captured.err
    (label,) = labels.labels(made.store, "golden")
    assert (label["reason"], label["verdict"], label["manifest"]) == ("other_language", "keep", made.built.digest)
    monkeypatch.setattr("sys.stdin", io.StringIO("k\n"))
    assert cli.run(["rejects", ref, "--reason", "other_language", "--label", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["labelled"]["keep"] == 0, "what is labelled is not asked again"
    assert cli.run(["rejects", ref, "--rates"]) == 0
    assert "other_language" in capsys.readouterr().out
    labels.put(made.store, "golden", made.built.digest, label, "drop")
    assert [row["keep"] for row in labels.rates(labels.labels(made.store, "golden"))] == [0], "the newest counts"


def test_wilsons_interval_is_the_published_one() -> None:
    # Newcombe 1998 (Stat. Med. 17, table I, method 3): 81 of 263, and 0 of 20.
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert wilson(0, 0) == (None, None)


def test_near_duplicates_are_also_summed_up_by_similarity() -> None:
    found = [
        {"reason": "near_duplicate", "verdict": verdict, "similarity": similarity}
        for verdict, similarity in (("keep", 0.81), ("drop", 0.84), ("drop", 0.97), ("drop", 1.0))
    ]
    assert [(row["similarity"], row["labelled"], row["keep"]) for row in labels.rates(found)] == [
        (None, 4, 1),
        ([0.8, 0.85], 2, 1),
        ([0.95, 1.0], 2, 0),
    ]


def test_the_shipped_recipe_and_its_rules_fit() -> None:
    recipe = load_recipe("crawl")
    assert check(recipe, REASONS) == rules_of("gopher")
    assert replace(rules_of("gopher"), name="x").digest == rules_of("gopher").digest


def models(folder: Path) -> tuple[str, str]:
    """A classifier that likes harbours, and a language model of the golden sentences."""
    texts = folder / "clean.txt"
    texts.write_text("\n".join(s.format(s=subject) for s in golden.SENTENCES for subject in golden.SUBJECTS) + "\n")
    good, bad = folder / "good.jsonl", folder / "bad.jsonl"
    for path, subject in ((good, "harbour"), (bad, "garden")):
        lines = [json.dumps({"text": s.format(s=subject) + f" {i}"}) for i, s in enumerate(golden.SENTENCES * 8)]
        path.write_text("\n".join(lines) + "\n")
    quality_train = ["quality", "train", "--positive", str(good), "--negative", str(bad)]
    assert cli.run([*quality_train, "--output", str(folder / "q.bin"), "--json"]) == 0
    assert (
        cli.run(["perplexity", "train", "--text", str(texts), "--output", str(folder / "lm"), "--order", "3", "--json"])
        == 0
    )
    (lm,) = [path for path in sorted(folder.iterdir()) if path.name.startswith("lm") and path.suffix != ".json"]
    return str(folder / "q.bin"), str(lm)


def test_classifier_and_perplexity_are_judged_bounded_spared_and_cut_into_parts(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    classifier, lm = models(tmp_path)
    capsys.readouterr()
    judge = {
        "quality": {"harbour": {"model": classifier, "buckets": [0.5]}},
        "perplexity": {"model": lm},
        "floors": {"word_count": {"min": 90}},
    }
    recipe = recipe_with(made.root, rule_file(made.folder, 95), judge=judge)
    built = build(recipe, made.store, serial)
    assert built.units_run["judge"] == 4, "two new groups of two files"
    assert set(built.manifest.models) >= {"language", "quality:harbour", "perplexity"}
    assert {name for name in built.manifest.partitions if name != "heldout"} <= {"made-harbour0", "made-harbour1"}
    assert "heldout" in built.manifest.partitions
    for name, part in built.manifest.partitions.items():
        ids = [one for shard in part.shards for one in made.store.table(shard.docs)["doc_id"].to_pylist()]
        places = {f"made{bucket}" for bucket in parts_of(made.store, built.manifest, ids)}
        assert places <= {"made-harbour0", "made-harbour1"} if name == "heldout" else places == {name}
    assert parts_of(made.store, built.manifest, [b"0" * 16]) == [""]
    assert parts_of(made.store, made.built.manifest, [b"0" * 16]) == [""], "a dataset without buckets"
    found = quantiles(made.store, built.digest, built.manifest, "perplexity_bits", 0.5)
    everything = found["rows"][0]
    assert everything["language"] is None
    assert everything["docs"] == built.manifest.row("filter").docs_out
    assert everything["unknown"] == 0
    assert everything["percents"]["1"] <= everything["percents"]["50"] <= everything["percents"]["99"]
    lineage = made.store.table(built.manifest.table("lineage")).to_pylist()
    spared = 0
    for row in lineage:
        if row["kind"] == "perplexity":
            spared += made.store.table(Output.from_json(row)).column(0).null_count
    assert spared == 1, "the page of 81 words, in another language"
    bound = quantiles(made.store, built.digest, built.manifest, "quality_harbour", 0.5)["rows"][0]["bound"]
    asked = whatif(made.store, built.digest, built.manifest, [f"judge.quality.harbour.min_score={bound}"], 1)
    strict = {**judge, "quality": {"harbour": {"model": classifier, "min_score": bound}}}
    cut = build(recipe_with(made.root, rule_file(made.folder, 95), judge=strict), made.store, serial)
    assert "judge" not in cut.units_run, "a bound on a score judges nothing again"
    left = cut.manifest.row("filter")
    assert 0 < left.docs_out < everything["docs"]
    assert left.reasons["low_quality"].docs == everything["docs"] - left.docs_out == asked["lost"]["docs"]
    assert [row["reason"] for row in asked["overlap"]] == ["low_quality"]
    monkeypatch.setenv("CORPUSMILL_STORE", str(made.store.uri))
    ref = f"golden@{built.digest}"
    assert cli.run(["quantiles", ref, "quality_harbour", "--fraction", "0.5"]) == 0
    assert "bound" in capsys.readouterr().out
    assert cli.run(["quantiles", ref, "nothing"]) == 3
    assert "perplexity_bits" in capsys.readouterr().err
    assert cli.run(["quantiles", ref, "quality_harbour", "--fraction", "2"]) == 2
