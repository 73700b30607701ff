"""A dataset of rows: own columns in exports and rejects, others by name, the older of equal texts."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from corpusmill.config import Recipe, parse_recipe
from corpusmill.dataset.columns import columns, notes
from corpusmill.dataset.counts import counts
from corpusmill.dataset.counts import notes as notes_of_counts
from corpusmill.dataset.rejects import sample, written_out
from corpusmill.store import Receipt, Store, open_store
from flows.run.artifacts import printable, rejects_sample
from mill import cli
from tasks.chain import Built, build
from tasks.funnel.counts import counts_of
from tasks.queries.export import rows
from tests.tasks.acquire.test_mediawiki import HEAD, page

RULES = """version = 1
definition = "datatrove"
[[rule]]
name = "too_few_words"
measure = "word_count"
min = 3
says = "It has fewer than 3 words."
source = "test"
"""


def recipe(folder: Path, sources: dict[str, dict[str, Any]], **more: Any) -> Recipe:
    (folder / "any.toml").write_text(RULES)
    return parse_recipe(
        {
            "name": "rows",
            "source": sources,
            "language": {"keep": ["*"], "min_score": 0.0},
            "filter": {"rules": str(folder / "any.toml")},
            "decontaminate": {"benchmark": []},
            "pack": {"seq_len": 64, "vocab_size": 512},
            **more,
        },
        "test",
    )


def prose(seed: int, words: int = 60) -> str:
    draw = random.Random(seed)
    return " ".join("".join(draw.choices("aeioulmnrst", k=draw.randint(3, 8))) for _ in range(words)).capitalize() + "."


PAIRS = [
    ("12/31/2019", "01/15/2020"),
    ("Tue, 05 Feb 2019 10:00:00 GMT", "Fri, 01 Mar 2019 10:00:00 GMT"),
    ("2020-01-01T08:00:00+09:00", "2020-01-01T00:00:00Z"),
    (999_999_999, 1_000_000_001),
    ("31.12.2019 23:59", "2020-01-01"),
    ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00.5Z"),
    ("5 March 2001", "no date at all"),
    (1_577_836_800_000, None),
    ("Sep 9, 1999", "10/1/1999"),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Built, Store]:
    folder = tmp_path_factory.mktemp("rows")
    pairs = [
        {"id": f"{i}-{age}", "text": prose(i), "date": date}
        for i, pair in enumerate(PAIRS)
        for age, date in zip(("older", "newer"), pair, strict=True)
    ]
    own = [
        {
            "id": f"own-{i}",
            "text": prose(100 + i),
            "title": f"Title {i}",
            "author": "Ann",
            "license": "cc-by",
            "n": i,
            "left": 1,
        }
        for i in range(4)
    ]
    own.append({"id": "short", "text": "Two words.", "title": "\x1b[31mred", "license": "cc0", "n": 9, "date": "never"})
    for name, lines in (("pairs", pairs), ("own", own)):
        (folder / name).mkdir()
        (folder / name / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    sources = {name: {"kind": "jsonl", "root": str(folder / name)} for name in ("pairs", "own")}
    sources["own"]["columns"] = ["n"]  # type: ignore[assignment]
    (folder / "wiki").mkdir()
    wiki = [page(1, f"{prose(200)} {{{{stub}}}} {{{{Stub}}}}"), page(2, f"{prose(201)} {{{{stub}}}} {{{{\x7fx|5}}}}")]
    (folder / "wiki" / "a.xml").write_text(HEAD + "".join(wiki) + "</mediawiki>")
    sources["wiki"] = {"kind": "mediawiki", "root": str(folder / "wiki")}
    store = open_store(folder / "store", create=True)
    wanted = recipe(folder, sources, deduplicate={"prefer": ["oldest"]})
    return build(wanted, store, lambda stage, fn, units: [fn(unit) for unit in units]), store


def test_the_older_of_equal_texts_is_kept_however_its_date_is_written(made) -> None:
    built, store = made
    kept = {row["id"] for row in rows(store, built.manifest) if row["stage"] is None and row["file"] == "a.jsonl"}
    assert kept == {f"{i}-older" for i in range(len(PAIRS))} | {f"own-{i}" for i in range(4)}


def test_own_columns_stand_in_the_export(made) -> None:
    built, store = made
    (row,) = (row for row in rows(store, built.manifest) if row["id"] == "own-3")
    assert (row["title"], row["author"], row["licence"], row["columns"]) == ("Title 3", "Ann", "cc-by", {"n": 3})
    (short,) = (row for row in rows(store, built.manifest) if row["id"] == "short")
    assert (short["reason"], short["licence"], short["columns"], short["date"]) == (
        "too_few_words",
        "cc0",
        {"n": 9},
        None,
    )


def test_an_export_says_which_documents_are_held_out(tmp_path: Path, capsys) -> None:
    """Drawn ones in both files, copies of them in that of all records."""
    folder = tmp_path / "s"
    for snapshot in ("one", "two"):
        (folder / snapshot).mkdir(parents=True)
        lines = [json.dumps({"id": f"{snapshot}-{i}", "text": prose(i)}) for i in range(30)]
        (folder / snapshot / "a.jsonl").write_text("\n".join([*lines, '{"id": "short", "text": "Two words."}']))
    store = open_store(tmp_path / "store", create=True)
    sources = {n: {"kind": "jsonl", "root": str(folder / n), "snapshot": n} for n in ("one", "two")}
    wanted = recipe(
        tmp_path,
        sources,
        deduplicate={"policy": "within"},
        pack={"seq_len": 64, "vocab_size": 512, "heldout_one_in": 4},
    )
    built = build(wanted, store, lambda stage, fn, units: [fn(unit) for unit in units])
    packed: dict[str, set[str]] = {}
    for name, part in built.manifest.partitions.items():
        for shard in part.shards:
            packed.setdefault(name, set()).update(x.hex() for x in store.table(shard.docs).column("doc_id").to_pylist())
    found = list(rows(store, built.manifest))
    for name in ("one", "two", "heldout"):
        assert {row["doc_id"] for row in found if row["partition"] == name} == packed[name] != set()
    held = [row for row in found if row["partition"] == "heldout"]
    assert {row["reason"] for row in held} == {None, "heldout_copy"}
    assert all(row["partition"] is None for row in found if row["reason"] not in (None, "heldout_copy"))
    assert cli.run(["export", "rows", "-o", str(tmp_path / "out"), "--store", store.uri, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    drawn = sum(row["reason"] is None for row in held)
    assert answer["partitions"] == {"heldout": drawn, "one": len(packed["one"]), "two": len(packed["two"])}
    assert answer["lines"] == sum(answer["partitions"].values())


def test_own_columns_stand_in_rejects_and_artifacts_without_control_characters(made) -> None:
    built, store = made
    found = sample(store, built.manifest, "too_few_words", 1)
    assert [(row["source_id"], row["licence"], json.loads(row["columns"])) for row in found] == [
        ("short", "cc0", {"n": 9})
    ]
    for shown in (written_out(found), rejects_sample(found)):
        assert "short" in shown
        assert "cc0" in shown
        assert "\x1b" not in shown


def test_columns_left_out_and_values_without_a_form_are_named(made) -> None:
    built, store = made
    found = {(row["source"], row["column"]): row for row in columns(store, built.manifest)}
    assert (found["own", "left"]["becomes"], found["own", "left"]["values"]) == (None, 4)
    assert (found["pairs", "date"]["unreadable"], found["pairs", "date"]["example"]) == (1, "no date at all")
    said = list(notes(list(found.values())))
    assert "source own: columns left out: left (4 values)" in said
    assert any("1 of 1 values of date cannot be read" in note for note in said)
    assert len(printable(columns(store, built.manifest))) == len(found)


def test_templates_that_were_dropped_are_counted_in_the_funnel_by_name(made, capsys) -> None:
    built, store = made
    found = counts(store, built.manifest)
    assert [(row["source"], row["count"], row["name"], row["times"]) for row in found] == [
        ("wiki", "template", "stub", 3),
        ("wiki", "template", "\x7fx", 1),
    ]
    assert cli.run(["funnel", "rows", "--store", store.uri]) == 0
    said = "source wiki: 4 templates that were dropped with what they say: stub (3),  x (1)"
    assert said in capsys.readouterr().out
    assert cli.run(["funnel", "rows", "--store", store.uri, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"] == found
    assert "\x7f" not in str(printable(found))


def test_rare_names_of_a_count_are_counted_together() -> None:
    def receipt(counted: dict[str, int]) -> Receipt:
        facts = {"file": {"counts": counted, "not_content": {"request": 2}}}
        return Receipt("extract", "k", {}, {}, {}, {}, facts)

    files = [receipt({f"template:{i:04}": 1 + i // 1000 for i in range(1200)}), receipt({"template:": 7, "damaged": 1})]
    rows = counts_of([("a", file) for file in files]).to_pylist()
    templates = {row["name"]: row["times"] for row in rows if row["count"] == "template"}
    assert (len(templates), templates[""], templates["1199"]) == (1001, 7 + 200, 2)
    assert {(row["count"], row["name"], row["times"]) for row in rows[:2]} == {
        ("damaged", "", 1),
        ("not_content", "request", 4),
    }
    (said,) = notes_of_counts(rows)
    assert said.startswith("source a: 1,407 templates")
    assert said.endswith("1009 (2), others (1,387)")
    assert counts_of([("a", file) for file in reversed(files)]).to_pylist() == rows


def test_b101_the_older_stays_of_each_pair(data_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "a.jsonl").write_bytes((data_dir / "hostile" / "B101-date-forms.jsonl").read_bytes())
    store = open_store(tmp_path / "store", create=True)
    sources = {"s": {"kind": "jsonl", "root": str(tmp_path / "s"), "date": "date", "id": "id"}}
    wanted = recipe(tmp_path, sources, deduplicate={"prefer": ["oldest"]})
    built = build(wanted, store, lambda stage, fn, units: [fn(unit) for unit in units])
    kept = {row["id"] for row in rows(store, built.manifest) if row["stage"] is None}
    assert kept == {f"B101-{i}-older" for i in range(6)}
