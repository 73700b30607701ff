"""bench/extraction: scores by definition, published figures of a measure, the JSON form on a set of our own."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from bench.extraction import __main__ as extraction
from bench.extraction import published, sets
from bench.extraction.picture import draw
from bench.extraction.sets import (
    benchmark_measure,
    common_length,
    gold_text,
    load,
    ordered_f1,
    page_key,
    plain_form,
    score,
    sets_in,
    tokens,
)
from bench.extraction.structure import structures
from corpusmill.errors import NotFound, UsageError
from corpusmill.models import model_path


def model_fetched() -> bool:
    """Whether the model of languages is on this machine."""
    try:
        return model_path("lid.176.ftz").is_file()
    except NotFound:
        return False


PROSE = [f"Sentence {i} goes on for a while, as sentences do, about the harbour." for i in range(20)]


def write_set(folder: Path, **record: object) -> Path:
    (folder / "html").mkdir(parents=True)
    body = "".join(f"<p>{sentence}</p>" for sentence in PROSE)
    page = f"<html><body><nav><a href=/>Home</a></nav><main><h1>Harbours</h1>{body}</main></body></html>"
    (folder / "html" / "a.html.gz").write_bytes(gzip.compress(page.encode()))
    truth = {"id": "a", "html": "html/a.html.gz", **record}
    (folder / "truth.jsonl.gz").write_bytes(gzip.compress((json.dumps(truth) + "\n").encode()))
    return folder


def test_tokens_are_words_and_single_ideographs() -> None:
    assert tokens("Two words, naïve_1 中文 カナ 한글!") == [
        "two",
        "words",
        "naïve_1",
        "中",
        "文",
        "カ",
        "ナ",
        "한",
        "글",
    ]


def test_scores_compare_multisets() -> None:
    found = score("a a b", "a b b c")
    assert (found.precision, found.recall) == (pytest.approx(2 / 3), 0.5)
    assert found.f1 == pytest.approx(4 / 7)
    assert score("", "").f1 == 1.0
    assert score("", "a").f1 == score("a", "").f1 == 0.0


def test_rouge_l_keeps_the_order() -> None:
    assert common_length(["a", "b", "c", "d", "e"], ["a", "c", "b", "d", "x"]) == 3
    assert ordered_f1(["a", "b", "c"], ["a", "b", "c"]) == 1.0
    assert ordered_f1([], ["a"]) == 0.0


def test_truth_of_published_forms() -> None:
    assert gold_text("URL: http://x\n\n<h>Title\n<p>One\n<l>Two <b").split() == ["Title", "One", "Two", "<b"]
    assert gold_text("article\n!@#$%^&*()\ncomments").strip() == "article"
    html = "<div><p>One <span>two</span></p><p>three</p><a>f</a></div>"
    assert gold_text(html).split() == ["One", "two", "three", "f"]


def test_the_measure_of_the_article_benchmark() -> None:
    """Precision and recall are means over pages with output, and with truth."""
    f1, precision, recall = benchmark_measure([("a b c d e", "a b c d e"), ("x y z q", "a b c d"), ("", "a b c d")])
    assert precision == 0.5
    assert recall == pytest.approx(1 / 3)
    assert f1 == pytest.approx(0.4)


def test_segments_are_whole_words() -> None:
    assert plain_form("the  end.") in plain_form("This is (the end)")
    assert plain_form("the end") not in plain_form("the ending")


def test_structures_of_markdown() -> None:
    found = structures("# A *title*\n\n- one\n2. two\n\n| a | b |\n| --- | --- |\n| [x](y) | 2 |\n\n```\nx = 1\n```")
    assert found == {
        "headings": ["a title"],
        "list_items": ["one", "two"],
        "table_cells": ["a", "b", "x", "2"],
        "code_lines": ["x = 1"],
    }


def test_quick_run_gives_the_json_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_set(tmp_path / "mine", text="Harbours\n" + "\n".join(PROSE))
    picture = tmp_path / "front.svg"
    arguments = [str(folder), "--quick", "--json", "--modes", "fast,resiliparse", "--picture", str(picture)]
    assert extraction.main(arguments) == 0
    document = json.loads(capsys.readouterr().out)
    for figures in (document["sets"]["mine"]["fast"], document["macro"]["fast"]):
        assert set(figures) >= {"f1", "precision", "recall", "empties", "ms"}
        assert figures["f1"] == 1.0
        assert figures["empties"] == 0
    assert picture.read_text().startswith("<svg")


def test_sets_of_segments_are_scored_as_such(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_set(tmp_path / "s", **{"with": [PROSE[3], "not on the page"], "without": ["Home"]})
    extraction.main([str(folder), "--quick", "--json", "--modes", "fast"])
    figures = json.loads(capsys.readouterr().out)["sets"]["s"]["fast"]
    assert (figures["measure"], figures["precision"], figures["recall"]) == ("segments", 1.0, 0.5)


def test_errors_of_the_user(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        extraction.main([str(tmp_path), "--quick"])
    with pytest.raises(UsageError):
        extraction.main([str(tmp_path), "--modes", "best"])
    with pytest.raises(NotFound):
        load(tmp_path)


def test_the_picture_joins_what_nothing_beats() -> None:
    front = draw({"slow": {"f1": 0.9, "ms": 20.0}, "fast": {"f1": 0.91, "ms": 2.0}, "plain": {"f1": 0.7, "ms": 1.0}})
    assert front.count("<circle") == 3
    assert len(front.partition('points="')[2].partition('"')[0].split()) == 2


def test_a_page_without_text_in_a_set_of_texts_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_set(tmp_path / "mixed", text="Harbours\n" + "\n".join(PROSE))
    known = gzip.decompress((folder / "truth.jsonl.gz").read_bytes()).decode()
    unknown = json.dumps({"id": "b", "html": "html/a.html.gz", "text": None, "with": [PROSE[1]], "without": []})
    (folder / "truth.jsonl.gz").write_bytes(gzip.compress(f"{known}{unknown}\n".encode()))
    extraction.main([str(folder), "--json", "--modes", "fast", "--repeats", "1", "--structure"])
    figures = json.loads(capsys.readouterr().out)["sets"]["mixed"]["fast"]
    assert (figures["f1"], figures["pages"], figures["measure"]) == (1.0, 2, "words")


def test_scores_by_type_and_language(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_set(tmp_path / "mine", text="Harbours\n" + "\n".join(PROSE), page_type={"primary": "article"})
    extraction.main([str(folder), "--quick", "--modes", "fast,plain"])
    assert "by_type" in (said := capsys.readouterr().out)
    if model_fetched():
        assert "by_language" in said
        extraction.main([str(folder), "--quick", "--json", "--modes", "fast"])
        figures = json.loads(capsys.readouterr().out)["sets"]["mine"]["fast"]
        assert (figures["by_language"], figures["pages_by_language"]) == ({"en": 1.0}, {"en": 1})


def test_languages_are_left_out_without_the_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORPUSMILL_MODELS", str(tmp_path / "none"))
    folder = write_set(tmp_path / "mine", text="Harbours\n" + "\n".join(PROSE))
    assert extraction.main([str(folder), "--quick", "--json", "--modes", "fast"]) == 0
    said = capsys.readouterr()
    assert "by_language" not in json.loads(said.out)["sets"]["mine"]["fast"]
    assert "mill models fetch" in said.err


def test_sets_are_marked_by_their_pages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_set(tmp_path / "renamed", text="Harbours\n" + "\n".join(PROSE))
    for keys, mark in (("0" * 16, "renamed "), (page_key(load(folder)[0].raw), "renamed*")):
        (tmp_path / "seen.txt").write_text(f"{keys}\n")
        monkeypatch.setattr(sets, "SEEN_PAGES", tmp_path / "seen.txt")
        extraction.main([str(folder), "--quick", "--modes", "fast"])
        assert mark in capsys.readouterr().out


def test_sets_of_one_name_are_told_apart(tmp_path: Path) -> None:
    a, b = write_set(tmp_path / "a" / "s", text="x"), write_set(tmp_path / "b" / "s", text="x")
    assert sets_in([a, tmp_path / "b"]) == {"a/s": a, "b/s": b}
    assert sets_in([a, a, tmp_path / "a"]) == {"s": a}


def test_the_published_row_is_compared_on_all_pages_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_set(tmp_path / "article-extraction-benchmark", text="\n".join(PROSE))
    arguments = [str(folder), "--quick", "--published", "--modes", "fast"]
    extraction.main([*arguments, "--json"])
    row = json.loads(capsys.readouterr().out)["published"]["justext"]
    assert (row["pages"], row["same"], row["published"]["pages"]) == (1, None, 181)
    said = "This is what they said of it when all of that was over, and it is not what I would have said to them. " * 8
    assert published.justext_text(f"<html><body><p>{said}</p><p>Home</p></body></html>") == said.strip()
    monkeypatch.setattr(published, "ALL_PAGES", 1)
    extraction.main(arguments)
    assert "NOT reproduced" in capsys.readouterr().out
    assert published.justext_text("") == ""
