"""Benchmarks of rules: what they compare, the causes they name, the pages that break a rule on purpose."""

from __future__ import annotations

import json
import tomllib

import pytest

from bench.common import FLOORS
from bench.measures import __main__ as measures
from bench.peer import VENV
from bench.rules import breakers, parity
from corpusmill.errors import NotFound
from corpusmill.kernels.rules.rules import load_rules
from corpusmill.places import SHIPPED

PROSE = [
    "The mill stands by the river, and it has a wheel that turns with the water of the hills. " + tail
    for tail in ("People came to it with corn.", "In winter it was still.", "A map of it hangs in the hall.")
]


def test_every_floor_of_measures_and_parity_is_measured() -> None:
    known = tomllib.loads(FLOORS.read_text())
    assert set(known["parity"]) == set(parity.FILTERS)
    assert set(known["measures"]) == {"split", "shipped", "mb_per_s", "judge"}


def test_groups_hold_each_rule_of_fineweb_once() -> None:
    ours = {name: parity.ruled(PROSE, load_rules(SHIPPED / "rules" / f"{name}.toml")) for name in parity.RULE_FILES}
    groups = parity.groups(ours)
    assert set(groups) == set(parity.FILTERS)
    named = [rule for name in parity.FILTERS if name != "c4" for rule in groups[name]]
    assert named == list(ours["fineweb"].broken)


def test_a_difference_is_found_and_its_cause_is_named() -> None:
    text = "1 23 a b c 12 3 a b c " + "x y z w v u t s "
    ours = {name: parity.ruled([text], load_rules(SHIPPED / "rules" / f"{name}.toml")) for name in parity.RULE_FILES}
    row = dict.fromkeys(parity.FILTERS) | {"gopher_repetition": "duplicated_5_n_grams", "gopher_quality": "x"}
    row |= {"c4": "too_few_sentences", "c4_without_end_marks": "too_few_sentences"}
    del row["fineweb"]
    found = list(parity.differences([text], ours, [row]))
    assert [(d.filter, d.theirs) for d in found] == [] or found[0].filter == "gopher_repetition"
    assert "joins the words of a 5-gram" in parity.cause(text, [], "duplicated_5_n_grams")
    assert parity.cause("a b c", [], "gopher_short_doc") == "not explained"
    assert parity.cause("...", ["words_too_short"], None).startswith("no word at all")


@pytest.mark.parametrize("bench", [measures, parity])
def test_our_side_alone_needs_no_peer(bench, capsys, monkeypatch) -> None:
    monkeypatch.setattr(bench, "texts", lambda most=None: PROSE)
    monkeypatch.setattr("bench.common.FLOORS", FLOORS)
    code = bench.main(["--quick", "--json", "--no-peer", "--repeats", "1"])
    assert code in (0, 4)  # a machine may be slow; what counts is the form
    assert json.loads(capsys.readouterr().out)["subject"] in ("measures", "parity")


@pytest.mark.skipif(not (VENV / "bin" / "python").is_file(), reason="the peers are not installed: make bench-setup")
def test_decisions_equal_datatroves_with_our_words(capsys, monkeypatch) -> None:
    texts = [*PROSE, " ".join(PROSE), "- a\n" * 60, "#one #two\n\n" * 40, "Use cookies.\nOne two three {.\n" * 9]
    monkeypatch.setattr(parity, "texts", lambda most=None: texts)
    monkeypatch.setattr(parity, "in_english", lambda values: [True] * len(values))
    assert parity.main(["--quick", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["differences"] == []
    assert set(document["equal"].values()) == {1}


def test_each_rule_breaker_of_the_mini_crawl_is_dropped(data_dir) -> None:
    pages = breakers.judged_pages(data_dir / "mini-crawl")
    found = [page for page in pages if page.kind == "rule-breaker"]
    assert len(found) == 91
    assert [page.url for page in found if page.ended is None and page.broken["gopher"] is None] == []
    assert len(pages) - len(found) == 34


def test_a_crawl_without_truth_is_named(tmp_path) -> None:
    with pytest.raises(NotFound, match=r"no .*truth\.jsonl\.gz"):
        breakers.judged_pages(tmp_path)
