"""The benchmark of languages: its figures come from the data, and hold their floors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.language import __main__ as language
from corpusmill.errors import NotFound


def test_sentences_are_joined_to_a_length_and_cut() -> None:
    assert language.joined(["abc", "de", "fghij", "k"], 5) == ["abc d", "fghij"]
    assert language.joined(["abc"], 5) == []


def test_the_quick_run_holds_its_floors(data_dir: Path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("CORPUSMILL_TEST_DATA", str(data_dir))
    monkeypatch.setattr(language, "QUICK_DOCUMENTS", 60)
    try:
        code = language.main(["--quick", "--json", "--repeats", "1"])
    except NotFound as err:
        pytest.skip(str(err))
    document = json.loads(capsys.readouterr().out)
    ratios = {ratio["name"]: ratio for ratio in document["ratios"]}
    assert ratios.keys() == {"accuracy_300", "twins", "one_by_one", "fasttext_alone"}
    assert ratios["accuracy_300"]["ok"]  # CPU of so few documents on a busy machine proves nothing
    assert ratios["twins"]["ok"]
    assert code in (0, 4)
    known = [score for score in document["accuracy"] if score["known"]]
    assert len(known) > 60
    assert all(0 <= score["right"]["300"] <= score["texts"]["300"] for score in known)
    assert document["mixed"]["5"][0] > document["mixed"]["1"][0]
    assert set(document["cpu_s"]) == {"identify", "fasttext alone", "one by one"}


def test_without_data_the_message_says_what_to_set(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("CORPUSMILL_TEST_DATA", str(tmp_path))
    with pytest.raises(NotFound, match="CORPUSMILL_TEST_DATA"):
        language.main(["--quick"])
