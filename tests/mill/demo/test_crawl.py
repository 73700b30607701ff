"""The demo crawl: the same bytes every time, every planted thing where the truth says, nothing of this machine."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator
from warcio.exceptions import ArchiveLoadFailed

from corpusmill.config import load_recipe
from corpusmill.errors import Refused
from mill.demo import pages
from mill.demo.crawl import BENCHMARK, CRAWLS, FILES, make


@pytest.fixture(scope="module")
def crawl(demo_crawl: Path) -> Path:
    return demo_crawl


@pytest.fixture(scope="module")
def truth(crawl: Path) -> list[dict]:
    return [json.loads(line) for line in (crawl / "truth.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def records(crawl: Path) -> dict[tuple[str, int], tuple[str, str, bytes]]:
    """(file, offset) -> record type, address, payload, of all files that the path lists name."""
    found = {}
    for name in CRAWLS:
        for kind in ("warc", "wet"):
            listed = gzip.decompress((crawl / "crawl-data" / name / f"{kind}.paths.gz").read_bytes()).decode().split()
            assert len(listed) == FILES
            for path in listed:
                with (crawl / path).open("rb") as file:
                    archive = ArchiveIterator(file)
                    try:
                        for record in archive:
                            payload = record.content_stream().read()
                            place = (path, archive.get_record_offset())
                            found[place] = (record.rec_type, record.rec_headers["WARC-Target-URI"], payload)
                    except ArchiveLoadFailed:
                        continue
    return found


def test_same_packages_give_the_same_bytes(crawl, tmp_path):
    again = tmp_path / "again"
    code = f"from pathlib import Path; from mill.demo.crawl import make; make(Path({str(again)!r}))"
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": "7"}, check=True)
    files = sorted(path.relative_to(crawl) for path in crawl.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(again) for path in again.rglob("*") if path.is_file())
    assert all((crawl / file).read_bytes() == (again / file).read_bytes() for file in files)


def test_truth_tells_where_every_response_and_revisit_is(truth, records):
    content = {place: r for place, r in records.items() if r[0] in ("response", "revisit")}
    told = {(t["file"], t["offset"]): t for t in truth}
    cut = [place for place, t in told.items() if t["kind"] == "cut"]
    assert len(told) == len(truth)
    assert set(content) | set(cut) == set(told)
    assert all(content[place][1] == t["url"] for place, t in told.items() if place in content)


def test_what_a_crawl_brings_is_planted(truth):
    kinds = Counter(t["kind"] for t in truth)
    assert kinds["real"] >= 250
    for kind in ("mirror", "near-duplicate", "same page again", "revisit", "foreign", "spam", "planted", "redirect"):
        assert kinds[kind] >= 10, kind
    for kind in ("missing", "noindex", "not html", "empty", "zipped", "chunked", "cut"):
        assert kinds[kind] >= 1, kind
    assert len({t["language"] for t in truth if t["kind"] == "foreign"}) == 12
    assert len({t["charset"] for t in truth if t["kind"] == "foreign"}) >= 7


def test_planted_items_stand_word_for_word_on_their_pages(crawl, truth, records):
    items = {i["id"]: i for i in map(json.loads, (crawl / BENCHMARK).read_text().splitlines())}
    planted = [t for t in truth if t["kind"] == "planted"]
    for t in planted:
        page = records[t["file"], t["offset"]][2].decode()
        assert t["items"]
        assert all(items[item]["question"] in page for item in t["items"])
    questions = [item["question"] for item in items.values()]
    clean = [records[t["file"], t["offset"]][2] for t in truth if t["kind"] in ("real", "mirror")]
    assert not any(question.encode() in page for page in clean for question in questions)
    assert all(len(question.split()) >= 13 for question in questions)


def test_nothing_of_this_machine_stands_in_a_page(records):
    here = (str(Path.home()).encode(), str(Path(__file__).parents[3]).encode())
    assert not any(word in payload for _, _, payload in records.values() for word in here if len(word) > 5)


def test_one_archive_ends_inside_its_last_record(crawl):
    listed = gzip.decompress((crawl / "crawl-data" / CRAWLS[-1] / "warc.paths.gz").read_bytes()).decode().split()
    whole = (crawl / listed[-1]).read_bytes()
    with pytest.raises(EOFError):
        gzip.decompress(whole)


def test_a_crawl_that_is_there_is_kept_and_other_folders_are_left_alone(crawl, tmp_path):
    before = {path: path.stat().st_mtime_ns for path in crawl.rglob("*")}
    assert make(crawl) == crawl
    assert before == {path: path.stat().st_mtime_ns for path in crawl.rglob("*")}
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(Refused, match="something else"):
        make(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_the_demo_recipe_reads_this_crawl_and_its_benchmark(crawl):
    recipe = load_recipe("demo", [f"source.crawl.root={crawl}", f"decontaminate.root={crawl / 'benchmarks'}"])
    assert tuple(recipe.source["crawl"].crawls) == CRAWLS
    benchmark = recipe.decontaminate.benchmark[0]
    first = json.loads((Path(recipe.decontaminate.root) / benchmark.file).read_text().splitlines()[0])
    assert set(benchmark.fields) <= set(first)


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("Title\n=====\n\nA `link <x>`_ here.", [("h2", "Title"), ("p", "A link here.")]),
        ("====\nTop\n====\nBody text", [("h2", "Top"), ("p", "Body text")]),
        ("* one\n* two\n  goes on", [("li", "one"), ("li", "two goes on")]),
        ("    >>> 1 + 1\n    2", [("pre", "    >>> 1 + 1\n    2")]),
        (".. image:: x\n\n:param a: b", []),
    ],
)
def test_plain_text_becomes_blocks(text, blocks):
    assert list(pages._plain_blocks(text)) == blocks


def test_an_edit_changes_a_share_of_the_words():
    article = pages.Article("a", "A", (("p", " ".join(f"word{chr(97 + i % 26)}" for i in range(2000))),))
    changed = pages.edited(article, 0.1, "seed")
    words, others = article.blocks[0][1].split(), changed.blocks[0][1].split()
    share = sum(a != b for a, b in zip(words, others, strict=True)) / len(words)
    assert share == pytest.approx(0.1, abs=0.03)
