"""The benchmarks of deduplication on our side alone, small; both ways of grouping find the same."""

from __future__ import annotations

import json

from bench.dedup import __main__ as dedup
from bench.dedup import held_out, quality, signed


def test_grouping_through_the_store_finds_what_one_unit_finds(tmp_path):
    signed.shards(tmp_path, 5000)
    at_once, in_parts = signed.grouped(tmp_path, 5000, 2048), signed.grouped(tmp_path, 5000, 1)
    assert at_once.how == "in one unit"
    assert "9 ranges" in in_parts.how
    assert (in_parts.pairs, in_parts.removed) == (at_once.pairs, at_once.removed)
    assert 800 < at_once.removed < 1500  # 3 in 10 are copies, of some of which the original is a copy too unlike


def test_quick_measures_our_side(tmp_path, data_dir, monkeypatch, capsys):
    monkeypatch.setattr(dedup, "GROWTH", ((1000, 2048), (3000, 1)))
    monkeypatch.setattr(dedup, "GROUPED", {True: 3000})
    monkeypatch.setattr(dedup, "REPEAT_BYTES", 1)
    code = dedup.main(["--quick", "--json", "--no-peer", "--repeats", "1", str(data_dir / "mini-crawl")])
    answer = json.loads(capsys.readouterr().out)
    assert code in (0, 4)  # MB a second of one short run on a busy machine prove no floor
    assert answer["texts"] > 20
    assert answer["grouping"]["ours"][0]["documents"] > 400
    assert [one["docs"] for one in answer["growth"]] == [1000, 3000]
    assert "through the store" in answer["growth"][1]["how"]
    assert answer["growth"][1]["peak_bytes"] > 2**26
    assert answer["verification"]["sets_held"] > answer["verification"]["from_text"] > 0


def test_copies_of_held_out_documents_are_found_and_none_is_left(tmp_path):
    held_out.write(tmp_path, 4000)
    found = held_out.measured(tmp_path, 4000)
    assert found["heldout"]["copies"] >= 5
    assert found["leaks"]["heldout"] == found["heldout"]["drawn"] + found["heldout"]["copies"]
    assert found["leaks"]["peak_bytes"] > 2**26


def test_quality_is_exact_on_texts_with_all_their_pairs_known(data_dir, monkeypatch, capsys):
    monkeypatch.setattr(quality, "SETTINGS", (quality.FOR_RECALL,))
    assert quality.main(["--quick", "--json", str(data_dir / "neardup")]) == 0
    (found,) = json.loads(capsys.readouterr().out)["found"]
    assert found["pairs"] > 500
    assert found["precision"] == 1
    assert found["removal_recall"] >= 0.99
