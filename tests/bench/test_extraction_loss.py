"""bench/extraction/loss.py: what counts as lost, its bounds, and that no language of the test crawl loses pages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.extraction import loss
from bench.extraction.loss import Kept, summary
from corpusmill.errors import NotFound, UsageError


def test_a_language_may_lose_a_page_or_one_in_a_hundred() -> None:
    good = [Kept("de", f"https://x.example/{i}", 100, 90) for i in range(300)]
    bad = [Kept("de", f"https://y.example/{i}", 100, 9) for i in range(4)]
    assert summary(good + bad[:3])["ok"]
    assert not summary(good + bad)["ok"]
    assert summary([*good[:1], Kept("fr", "https://z.example/", 100, 9)])["ok"]
    assert summary(good + bad)["languages"]["de"]["lost"] == 4


def test_empty_pages_are_bounded_over_all_languages() -> None:
    pages = [Kept(f"l{i}", "https://x.example/", 100, 0 if i < 2 else 90) for i in range(100)]
    assert not summary(pages)["ok"]
    assert summary(pages[1:])["ok"]
    assert summary([])["ok"]


def test_no_language_of_the_test_crawl_loses_pages(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert loss.main([str(data_dir / "mini-crawl"), "--quick", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["languages"]) >= 20
    assert document["pages"] > 100


def test_errors_of_the_user(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        loss.main([str(tmp_path)])
    with pytest.raises(UsageError):
        loss.main([str(tmp_path), "--mode", "best"])
