"""The benchmark screen: exact on what it finds, blind to layout, silent on look-alikes."""

from __future__ import annotations

import dataclasses
import gzip
import json
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from corpusmill.kernels import ngrams
from corpusmill.kernels.words import IS_WORD, word_table

ITEM = 'A lighthouse keeper has 47 lamps, lends 19 of them to the harbour office and buys "23": how many don\'t stay?'


def texts(*values: str) -> pa.Array:
    return pa.array(values, pa.large_string())


def hits(index: ngrams.Index, *documents: str) -> list[dict]:
    return ngrams.screen(texts(*documents), index).to_pylist()


def read_lines(path: Path) -> list[dict]:
    data = path.read_bytes()
    lines = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


@pytest.fixture(scope="module")
def benchmark_items(data_dir) -> list[tuple[str, str, str]]:
    files = sorted((data_dir / "benchmarks").glob("*.jsonl.gz"))
    rows = [row for file in files for row in read_lines(file)]
    return [(r["benchmark"], r["id"], r["question"]) for r in rows if r["benchmark"] != "gsm8k-train"]


@pytest.fixture(scope="module")
def benchmark_index(benchmark_items) -> ngrams.Index:
    return ngrams.build_index(benchmark_items)


def plain_screen(documents: list[str], items: list[str], n: int) -> list[tuple[int, int, int, int]]:
    """(row, item, offset, stop) of the first shared n-gram, on texts of plain lower-case words."""
    found = []
    for row, document in enumerate(documents):
        words = [(m.group(), m.start(), m.end()) for m in re.finditer("[a-z]+", document)]
        for i, item in enumerate(items):
            wanted = re.findall("[a-z]+", item)
            known = {tuple(wanted[k : k + n]) for k in range(len(wanted) - n + 1)}
            for k in range(len(words) - n + 1):
                if tuple(w for w, _, _ in words[k : k + n]) in known:
                    found.append((row, words[k][1], i, words[k + n - 1][2]))
                    break
    return [(row, i, offset, stop) for row, offset, i, stop in sorted(found)]


SENTENCE = st.lists(st.sampled_from("abc"), max_size=14).map(" ".join)


@settings(max_examples=150, deadline=None)
@given(st.lists(SENTENCE, max_size=5), st.lists(SENTENCE, max_size=5), st.integers(1, 5))
def test_screen_equals_a_plain_search(documents, items, n):
    index = ngrams.build_index([("bench", str(i), item) for i, item in enumerate(items)], n=n)
    found = [(h["row"], int(h["item"]), h["offset"], h["stop"]) for h in hits(index, *documents)]
    assert found == plain_screen(documents, items, n)
    short = [str(i) for i, item in enumerate(items) if len(item.split()) < n]
    assert [item.id for item in index.too_short] == short


@pytest.mark.parametrize(
    "disguise",
    [
        str.upper,
        lambda t: t.replace(" ", "\n"),
        lambda t: t.replace(" ", " \r\n\t> "),
        lambda t: t.replace(" ", "\u00a0"),
        lambda t: t.replace("'", "\u2019").replace('"', "\u201c"),
        lambda t: t.replace("'", ""),
        lambda t: re.sub("([a-z]{3})([a-z])", "\\1\u00ad\\2", t),
        lambda t: re.sub("([a-z]{3})([a-z])", "\\1\u200d\\2", t),
        lambda t: re.sub(r"[,:?.\"]", "", t),
        lambda t: "*".join(t.split(" ")),
    ],
)
def test_item_is_found_however_it_is_laid_out(disguise):
    index = ngrams.build_index([("bench", "q1", ITEM)])
    (hit,) = hits(index, "Nothing here.", "Some words before it. " + disguise(ITEM) + " And after.")
    assert (hit["row"], hit["benchmark"], hit["item"]) == (1, "bench", "q1")
    assert hit["ngram"] == "a lighthouse keeper has 47 lamps lends 19 of them to the harbour"
    assert hit["offset"] == len("Some words before it. ")


def test_span_is_in_bytes_of_the_text():
    index = ngrams.build_index([("bench", "q1", ITEM)])
    document = "Ünïcode … 文字 — " + ITEM
    (hit,) = hits(index, document)
    assert document.encode()[hit["offset"] : hit["stop"]].decode() == ITEM[: ITEM.index(" office")]


def test_one_word_changed_in_thirteen_hides_an_item():
    index = ngrams.build_index([("bench", "q1", ITEM)])
    words = ITEM.split(" ")
    words[12] = words[20] = "changed"
    assert not hits(index, " ".join(words))


def test_words_of_two_documents_make_no_ngram():
    index = ngrams.build_index([("bench", "q1", "one two three four")], n=4)
    assert not hits(index, "one two", "three four")
    assert hits(index, "one two", "three four", "one two three four")[0]["row"] == 2


def test_ngram_of_many_items_names_each_of_them():
    index = ngrams.build_index(
        [("a", "1", "one two three"), ("b", "1", "zero one two three"), ("b", "2", "x y z")], n=3
    )
    found = [(h["benchmark"], h["item"]) for h in hits(index, "so one two three")]
    assert found == [("a", "1"), ("b", "1")]


def test_a_hash_alone_is_no_hit():
    """An entry whose words differ from the document's (a collision) is turned down on the text."""
    index = ngrams.build_index([("a", "1", "one two three"), ("a", "2", "four five six")], n=3)
    swapped = dataclasses.replace(index, entry_item=index.entry_item[::-1], entry_word=index.entry_word[::-1])
    assert len(hits(index, "one two three")) == 1
    assert not hits(swapped, "one two three")


def test_index_without_items_finds_nothing():
    index = ngrams.build_index([("a", "1", "short")])
    assert (index.ngrams, index.items) == (0, ())
    assert hits(index, ITEM) == []
    assert ngrams.planted(index, seed=1).recall == 1.0


@settings(max_examples=100, deadline=None)
@given(st.text(min_size=1, max_size=8), st.text(min_size=1, max_size=8))
def test_fold_agrees_with_the_hash_of_the_word_table(one, other):
    """Confirming on folded words never contradicts the hashes."""
    table = word_table(texts(one, other))
    spans = [(v.encode()[a:b].decode(), h) for d, v in enumerate((one, other)) for a, b, h in _words(table, d)]
    for word, hashed in spans:
        for another, hashed_other in spans:
            assert (ngrams.fold(word) == ngrams.fold(another)) == (hashed == hashed_other)


def _words(table, d):
    inside = slice(table.offsets[d], table.offsets[d + 1])
    columns = (table.start, table.stop, table.folded)
    words = table.flags[inside] & IS_WORD > 0
    return zip(*(column[inside][words].tolist() for column in columns), strict=True)


def test_planted_items_of_real_benchmarks_are_all_found(benchmark_index):
    result = ngrams.planted(benchmark_index, seed=17, items=400)
    assert (result.planted, result.found, result.missed) == (400, 400, ())
    assert (result.lookalikes, result.false_hits) == (400, 0)
    assert ngrams.planted(benchmark_index, seed=17, items=400) == result


def test_planted_items_tell_on_a_broken_index(benchmark_index):
    blind = dataclasses.replace(
        benchmark_index,
        table=dataclasses.replace(benchmark_index.table, blocks=np.zeros_like(benchmark_index.table.blocks)),
    )
    result = ngrams.planted(blind, seed=17)
    assert result.recall == 0.0
    assert len(result.missed) == 64


def test_training_items_of_a_benchmark_are_not_its_test_items(benchmark_index, data_dir):
    rows = read_lines(data_dir / "benchmarks" / "gsm8k-train-sample.jsonl.gz")
    assert len(rows) == 389
    assert hits(benchmark_index, *(r["question"] for r in rows)) == []


def test_hostile_corpus(data_dir):
    items = read_lines(data_dir / "hostile" / "B47-benchmark.jsonl")
    index = ngrams.build_index([("B47", r["id"], r["text"]) for r in items])
    assert [item.id for item in index.too_short] == ["q3"]
    documents = read_lines(data_dir / "hostile" / "B47-corpus.jsonl")
    found = {documents[h["row"]]["id"]: h for h in hits(index, *(d["text"] for d in documents))}
    assert found.pop("B47-hit-q2")["item"] == "q2"
    assert sorted(found) == sorted(f"B47-boiler-{i}" for i in range(40))  # they share one boilerplate n-gram with q1
    assert {h["ngram"] for h in found.values()} == {
        "construct a complete table of truth values for the following argument and say"
    }


def test_mini_crawl_contamination(benchmark_index, data_dir):
    """Every page with planted items is found but for reworded ones; no other page of the crawl is touched."""
    folder = data_dir / "mini-crawl"
    pages: dict[str, list[str]] = defaultdict(list)
    for file in sorted(folder.glob("crawl-data/*/segments/*/wet/*.gz")):
        with file.open("rb") as stream:
            for record in ArchiveIterator(stream):
                if record.rec_type == "conversion":
                    pages[record.rec_headers["WARC-Target-URI"]].append(record.content_stream().read().decode("utf-8"))
    urls = [url for url, versions in pages.items() for _ in versions]
    table = ngrams.screen(texts(*(v for versions in pages.values() for v in versions)), benchmark_index)
    found = {(urls[row], item) for row, item in zip(table["row"].to_pylist(), table["item"].to_pylist(), strict=True)}
    planted = read_lines(folder / "planted.jsonl")
    should = [p for p in planted if p["ngram_screen_should_find"] and p["how"] != "numbers-and-names-changed"]
    missed = [p for p in should if (p["url"], p["item"]) not in found]
    # a dump of many items in JSON: this one has no window of 13 words left there
    assert [(p["how"], p["item"]) for p in missed] == [("dump-of-12", "HumanEval/47")]
    assert len(should) == 240
    assert {url for url, _ in found} <= {p["url"] for p in planted}
