"""The language gate: what is surely unwanted is not extracted, and is counted and sampled; the rest is as without."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpusmill.config import load_recipe
from corpusmill.errors import NotFound
from corpusmill.extractor.gate import Gate, sentences
from corpusmill.extractor.sandbox.sandbox import shared_sandbox
from corpusmill.kernels.language.identify import LanguageModel
from corpusmill.models import model_path
from corpusmill.readers.outcomes import Outcome
from tasks.acquire import SourceUnit
from tasks.extract import Memory, gate_of, units_of
from tasks.stages import REASONS

ENGLISH = "<p>This sentence goes on for a while, as sentences do, about the harbour and its boats.</p>" * 9
GERMAN = "<p>Dieser Satz geht noch eine Weile weiter, wie Sätze es tun, über den Hafen und die Boote.</p>" * 9
MENU = f"<ul>{'<li><a href=/>Startseite und weitere Seiten über den Hafen und die Boote</a></li>' * 40}</ul>"


@pytest.fixture(scope="module")
def gate() -> Gate:
    return Gate(LanguageModel(model_path("lid.176.ftz")), frozenset({"en"}))


def test_only_what_is_surely_unwanted_is_refused(gate: Gate) -> None:
    pages = [ENGLISH, GERMAN, MENU + ENGLISH, ENGLISH * 3 + GERMAN * 9, "<p>Kurz und gut</p>", "", "<p>12 34</p>" * 50]
    assert gate.refused(pages) == [False, True, False, False, False, False, False]
    assert gate.refused([]) == []


def test_sentences_leave_menus_out_unless_there_is_nothing_else() -> None:
    assert "Startseite" not in sentences(MENU + ENGLISH)
    assert "Startseite" in sentences(MENU)


def test_refused_pages_are_counted_and_never_extracted(gate: Gate) -> None:
    class Counting:
        def __init__(self) -> None:
            self.pages: list[str] = []

        def extract(self, pages: list[str]) -> list:
            self.pages += pages
            return shared_sandbox("fast").extract(pages)

    sandbox = Counting()
    memory = Memory(sandbox, gate)  # type: ignore[arg-type]
    batch = [
        Outcome(i, 0, "response", None, None, payload_digest=page[:16].encode(), charset="utf-8", html=page)
        for i, page in enumerate([ENGLISH, GERMAN, GERMAN])
    ]
    for _ in range(2):
        found = memory.extract(batch)
        assert [one and one.reason for one in found] == [None, "unwanted_language", "unwanted_language"]
    assert sandbox.pages == [ENGLISH]
    assert REASONS["unwanted_language"].row == "extract"


def test_the_gate_is_off_by_default_and_part_of_the_identity(data_dir: Path) -> None:
    plain = load_recipe("crawl", [f"source.crawl.root={data_dir}"])
    gated = load_recipe("crawl", [f"source.crawl.root={data_dir}", 'extract.languages=["en"]'])
    assert gate_of(plain) is None
    assert gate_of(gated) is not None
    source = SourceUnit("crawl", "s", "a.warc.gz")
    assert units_of(source, "0" * 64, plain)[0].key != units_of(source, "0" * 64, gated)[0].key


def test_a_gate_without_its_model_says_what_to_do(data_dir: Path, tmp_path: Path) -> None:
    settings = [f"source.crawl.root={data_dir}", 'extract.languages=["en"]', f"language.model={tmp_path}/none.ftz"]
    with pytest.raises(NotFound, match=r"none\.ftz"):
        gate_of(load_recipe("crawl", settings))
