"""What leaves the store is final: rule edits cut, personal data masked; the funnel says how much text that took."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corpusmill.config import Recipe, parse_recipe
from corpusmill.dataset.funnel import FunnelRow
from corpusmill.store import Store, open_store
from corpusmill.tokens.tokenizer import Tokenizer
from tasks.chain import Built, build
from tasks.queries.export import export
from tests import golden

MAIL = "anna.kowalska@brightmail.org"
SHORT = "read on"
RULES = """
version = 1
definition = "datatrove"
view = "clean"

[[edit]]
name = "short_line"
test = "few_words"
min_words = 3
source = "test"
says = "Lines of fewer than 3 words."

[[rule]]
name = "too_few_words"
measure = "word_count"
min = 60
source = "test"
says = "Fewer than 60 words after the edits."

[[rule]]
name = "raw_too_long"
measure = "word_count"
view = "raw"
max = 1000
source = "test"
says = "More than 1,000 words before the edits."
"""


def serial(stage: str, fn: Any, units: Any) -> list[Any]:
    return [fn(unit) for unit in units]


class Made:
    def __init__(self, folder: Path) -> None:
        root = folder / "crawl"
        (root / "warc").mkdir(parents=True)
        ask = f"Ask {MAIL} for the list of visitors who came to see the {{s}} in that year.</p><p>{{line}}"
        pages = [
            golden.record(f"https://a.example/{s}", golden.page(s, i, extra=ask.format(s=s, line=SHORT)))
            for i, s in enumerate(golden.SUBJECTS)
        ]
        # Equal after the edits, and not before: a copy with another short line.
        copy = golden.page("river", 0, extra=ask.format(s="river", line="and so"))
        pages.append(golden.record("https://b.example/river", copy))
        talk = " ".join(
            f"Write to one{i}@brightmail.org and to two{i}@brightmail.org about the garden." for i in range(6)
        )
        pages.append(golden.record("https://c.example/many", golden.page("garden", 1, extra=talk)))
        (root / "warc" / "one.warc.gz").write_bytes(b"".join(pages))
        (folder / "rules.toml").write_text(RULES, encoding="utf-8")
        self.store: Store = open_store(folder / "store", create=True)
        self.recipe: Recipe = parse_recipe(
            {
                "name": "views",
                "source": {"made": {"kind": "files", "root": str(root), "pattern": "warc/*.warc.gz"}},
                "extract": {"mode": "plain"},
                "filter": {"rules": str(folder / "rules.toml")},
                "judge": {"personal_data": {"kinds": ["email"], "drop_above": 5}},
                "deduplicate": {"min_jaccard": 0.95},
                "pack": {"seq_len": 64, "vocab_size": 512, "heldout_one_in": 1000},
            },
            "test",
        )
        self.built: Built = build(self.recipe, self.store, serial)

    def row(self, stage: str) -> FunnelRow:
        return self.built.manifest.row(stage)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("views"))


def exported(made: Made, out: Path, *, raw: bool) -> list[dict[str, Any]]:
    done = export(made.store, made.built.digest, "jsonl", True, out, raw=raw)
    return [json.loads(line) for line in done.file.read_bytes().split(b"\n") if line]


def test_exports_are_final_and_raw_only_when_asked(made: Made, tmp_path: Path) -> None:
    final = exported(made, tmp_path / "final", raw=False)
    raw = exported(made, tmp_path / "raw", raw=True)
    assert len(final) == len(raw) == 10
    for one, other in zip(final, raw, strict=True):
        assert "brightmail" in other["text"]
        assert "brightmail" not in one["text"]
        assert "<EMAIL>" in one["text"]
    assert SHORT in raw[0]["text"].split("\n")
    assert SHORT not in final[0]["text"].split("\n")


def test_tokens_hold_no_personal_data_and_no_cut_line(made: Made) -> None:
    manifest = made.built.manifest
    vocabulary = Tokenizer(made.store.bytes(manifest.vocabulary.output))
    texts = ""
    for part in manifest.partitions.values():
        for shard in part.shards:
            table = made.store.table(shard.tokens)
            for row in table.column(0).to_pylist():
                ids = memoryview(row).cast({2: "H", 4: "I"}[part.token_bytes]).tolist()
                texts += vocabulary.decode(ids)
    assert "<EMAIL>" in texts
    assert "brightmail" not in texts
    assert SHORT not in texts


def test_rejects_are_masked_too(made: Made) -> None:
    rejects = made.store.table(made.built.manifest.table("rejects")).to_pylist()
    assert {row["reason"] for row in rejects} >= {"personal_data", "exact_duplicate"}
    for row in rejects:
        assert "brightmail" not in (row["text"] or "") + (row["keeper_text"] or "")
    (pair,) = [row for row in rejects if row["reason"] == "exact_duplicate"]
    assert pair["keeper_url"] == "https://a.example/river" or pair["url"] == "https://a.example/river"
    assert "<EMAIL>" in pair["keeper_text"]


def test_documents_that_are_equal_after_the_edits_are_duplicates(made: Made) -> None:
    assert made.row("exact").reasons["exact_duplicate"].docs == 1


def test_documents_with_more_than_the_bound_end_as_personal_data(made: Made) -> None:
    assert made.row("filter").reasons["personal_data"].docs == 1


def test_the_funnel_says_what_edits_and_masks_took(made: Made) -> None:
    row = made.row("pack")
    assert row.docs_in == row.docs_out
    edited = row.reasons["edited"]
    assert edited.docs == 0
    assert row.bytes_in == row.bytes_out + edited.bytes
    assert row.words_in == row.words_out + edited.words
    # Of each page: its title, the link Home and the short line, with their line breaks; a mask for an address.
    each = len("Home\n") + len(f"{SHORT}\n") + len(MAIL) - len("<EMAIL>")
    titles = sum(len(f"{subject}\n") for subject in golden.SUBJECTS)
    assert edited.bytes == each * row.docs_in + titles


def test_a_moved_rule_recomputes_no_edit_and_another_edit_recomputes_what_reads_them(
    made: Made, tmp_path: Path
) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text(RULES.replace("min = 60", "min = 61"), encoding="utf-8")
    moved = made.recipe.model_copy(update={"filter": made.recipe.filter.model_copy(update={"rules": str(rules)})})
    again = build(moved, made.store, serial)
    assert set(again.units_run) & {"extract", "judge"} == set()
    rules.write_text(RULES.replace("min_words = 3", "min_words = 2"), encoding="utf-8")
    (tmp_path / "other.toml").write_text(RULES.replace("min_words = 3", "min_words = 2"), encoding="utf-8")
    other = made.recipe.model_copy(
        update={"filter": made.recipe.filter.model_copy(update={"rules": str(tmp_path / "other.toml")})}
    )
    anew = build(other, made.store, serial)
    assert anew.units_run["judge"] == 3, "edits, clean measures, digests"
    assert "extract" not in anew.units_run
