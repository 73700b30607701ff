"""The benchmark screen: exact on what it finds, blind to layout, silent on look-alikes."""

from __future__ import annotations

import dataclasses
import gzip
import json
import re
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from corpusmill.kernels.screen import contexts, screen
from corpusmill.kernels.screen.planted import DISGUISES, planted
from corpusmill.kernels.words.table import IS_WORD, word_table

ITEM = 'A lighthouse keeper has 47 lamps, lends 19 of them to the harbour office and buys "23": how many don\'t stay?'


def texts(*values: str) -> pa.Array:
    return pa.array(values, pa.large_string())


def index_of(items: list[tuple[str, str, str]], n: int = 13, floor: int = 0, min_share: float = 0.0) -> screen.Index:
    names = list(dict.fromkeys(benchmark for benchmark, _, _ in items))
    members = {name: [(item, text) for benchmark, item, text in items if benchmark == name] for name in names}
    return screen.build_index([screen.Source(name, members[name], n, floor, min_share) for name in names])


def hits(index: screen.Index, *documents: str) -> list[dict]:
    return screen.screen(texts(*documents), index).to_pylist()


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
def benchmark_index(benchmark_items) -> screen.Index:
    return index_of(benchmark_items)


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
    index = index_of([("bench", str(i), item) for i, item in enumerate(items)], n=n)
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
    index = index_of([("bench", "q1", ITEM)])
    (hit,) = hits(index, "Nothing here.", "Some words before it. " + disguise(ITEM) + " And after.")
    assert (hit["row"], hit["benchmark"], hit["item"]) == (1, "bench", "q1")
    assert hit["ngram"] == "a lighthouse keeper has 47 lamps lends 19 of them to the harbour"
    assert hit["offset"] == len("Some words before it. ")


def test_span_is_in_bytes_of_the_text():
    index = index_of([("bench", "q1", ITEM)])
    document = "Ünïcode … 文字 — " + ITEM
    (hit,) = hits(index, document)
    assert document.encode()[hit["offset"] : hit["stop"]].decode() == ITEM[: ITEM.index(" office")]


def test_one_word_changed_in_thirteen_hides_an_item():
    index = index_of([("bench", "q1", ITEM)])
    words = ITEM.split(" ")
    words[12] = words[20] = "changed"
    assert not hits(index, " ".join(words))


def test_words_of_two_documents_make_no_ngram():
    index = index_of([("bench", "q1", "one two three four")], n=4)
    assert not hits(index, "one two", "three four")
    assert hits(index, "one two", "three four", "one two three four")[0]["row"] == 2


def test_ngram_of_many_items_names_each_of_them():
    index = index_of([("a", "1", "one two three"), ("b", "1", "zero one two three"), ("b", "2", "x y z")], n=3)
    found = [(h["benchmark"], h["item"]) for h in hits(index, "so one two three")]
    assert found == [("a", "1"), ("b", "1")]


def test_a_hash_alone_is_no_hit():
    """An entry whose words differ from the document's (a collision) is turned down on the text."""
    index = index_of([("a", "1", "one two three"), ("a", "2", "four five six")], n=3)
    (part,) = index.parts
    swapped = dataclasses.replace(part, entry_item=part.entry_item[::-1], entry_word=part.entry_word[::-1], _entries={})
    assert len(hits(index, "one two three")) == 1
    assert not hits(dataclasses.replace(index, parts=(swapped,)), "one two three")


def test_index_without_items_finds_nothing():
    index = index_of([("a", "1", "short")])
    assert (index.ngrams, index.parts) == (0, ())
    assert hits(index, ITEM) == []
    assert planted(index, seed=1) == []


def test_every_benchmark_has_its_own_length():
    index = screen.build_index(
        [
            screen.Source("short", [("s", "one two three four five six")], n=3),
            screen.Source("long", [("l", "one two three four five six")], n=5),
        ]
    )
    assert [(part.n, part.items[0].benchmark) for part in index.parts] == [(3, "short"), (5, "long")]
    assert [(h["benchmark"], h["words"]) for h in hits(index, "so one two three four stop")] == [("short", 3)]
    found = [(h["benchmark"], h["words"], h["ngram"]) for h in hits(index, "so one two three four five stop")]
    assert found == [("short", 3, "one two three"), ("long", 5, "one two three four five")]


def test_items_too_short_for_an_ngram_are_looked_for_whole_down_to_the_floor():
    items = [("b", "four", "red blue green gold"), ("b", "three", "red blue green"), ("b", "two", "red blue")]
    index = index_of(items, n=5, floor=3)
    assert [item.id for item in index.too_short] == ["two"]
    (hit,) = hits(index, "so red blue green grey", "red blue", "red, blue!\nGreen")[:1]
    assert (hit["row"], hit["item"], hit["whole"], hit["words"], hit["share"]) == (0, "three", True, 3, 1.0)
    found = [
        (h["row"], h["item"], h["words"]) for h in hits(index, "red blue", "Red, blue!\nGreen - gold", "blue green")
    ]
    assert found == [(1, "four", 4), (1, "three", 3)]


@settings(max_examples=150, deadline=None)
@given(st.lists(SENTENCE, max_size=4), st.lists(SENTENCE, max_size=5), st.integers(4, 8), st.integers(1, 4))
def test_whole_items_and_shares_equal_a_plain_search(documents, items, n, floor):
    index = index_of([("bench", str(i), item) for i, item in enumerate(items)], n=n, floor=floor)
    expected = {}
    for row, document in enumerate(documents):
        words = document.split()
        for i, item in enumerate(items):
            wanted = item.split()
            size = n if len(wanted) >= n else len(wanted)
            if size < min(floor, n):
                continue
            grams = {tuple(wanted[k : k + size]) for k in range(len(wanted) - size + 1)}
            held = grams & {tuple(words[k : k + size]) for k in range(len(words) - size + 1)}
            if held:
                expected[row, str(i)] = (len(wanted) < n, len(held), len(held) / len(grams))
    found = {(h["row"], h["item"]): (h["whole"], h["shared"], h["share"]) for h in hits(index, *documents)}
    assert found == expected


def test_share_of_the_item_decides_where_a_share_is_asked_for():
    item = "one two three four five six"  # four 3-grams
    half = "x one two three four y"
    assert [h["share"] for h in hits(index_of([("b", "1", item)], n=3), half)] == [0.5]
    assert len(hits(index_of([("b", "1", item)], n=3, min_share=0.5), half)) == 1
    assert not hits(index_of([("b", "1", item)], n=3, min_share=0.51), half)


@pytest.mark.parametrize(
    ("document", "cut"),
    [
        ("before. One two three four five six seven eight! After", ["One two three four five six seven eight"]),
        ("before one two three four five changed seven eight after", ["one two three four five changed seven eight"]),
        ("before one two three four and other things after", ["one two three four"]),
        ("one two three four x y one two three four z", ["one two three four x y one two three four"]),
        ("one two three four u v w x one two three four z", ["one two three four", "one two three four"]),
        ("before one two so three four five six seven eight after", ["three four five six seven eight"]),
    ],
)
def test_places_are_widened_to_what_else_stands_there_of_the_item(document, cut):
    (hit,) = hits(index_of([("b", "1", "one two three four five six seven eight")], n=4), document)
    assert [document[span["start"] : span["end"]] for span in hit["spans"]] == cut


def test_hits_do_not_depend_on_order_or_slices_of_the_input(benchmark_index, benchmark_items):
    values = [f"page {i} says: {text} end" for i, (_, _, text) in enumerate(benchmark_items[::40])]
    whole = screen.screen(texts(*values), benchmark_index)
    again = screen.screen(texts(*reversed(values)), benchmark_index)
    parts = [screen.screen(texts(*values[i : i + 7]), benchmark_index) for i in range(0, len(values), 7)]

    def found(table, row):
        return {(row(hit.pop("row")), json.dumps(hit, sort_keys=True)) for hit in table.to_pylist()}

    expected = found(whole, int)
    assert len({row for row, _ in expected}) > 100
    assert found(again, lambda row: len(values) - 1 - row) == expected
    pieces = [found(part, lambda row, k=k: row + 7 * k) for k, part in enumerate(parts)]
    assert set().union(*pieces) == expected


# Contexts: by which common phrases differ from copied items.

PHRASE = "read the passage below and then choose the best answer to it"
QUIZ = [("b", str(i), f"{PHRASE} {word} is what kind of thing in this world") for i, word in enumerate(("tin", "oak"))]


def contexts_of(index: screen.Index, *documents: str) -> dict[str, int]:
    counted: dict[str, int] = defaultdict(int)
    for row in contexts.contexts(texts(*documents), index).to_pylist():
        counted[row["ngram"]] += 1
    return dict(counted)


def test_a_phrase_that_goes_on_differently_has_as_many_contexts_as_pages():
    index = index_of(QUIZ, n=5)
    pages = [f"{PHRASE} page {i} goes on by itself here" for i in range(9)]
    counted = contexts_of(index, *pages)
    assert set(counted.values()) == {9}
    assert "read the passage below and" in counted


def test_copies_of_items_have_one_context_however_many_they_are():
    index = index_of(QUIZ, n=5)
    mirrors = [f"page {i} begins. {text} And so it {i} ends." for i in range(9) for _, _, text in QUIZ]
    assert set(contexts_of(index, *mirrors).values()) == {1}


def test_exempted_ngrams_are_no_hits_and_items_without_others_are_told():
    phrase = [" ".join(PHRASE.split()[k : k + 5]) for k in range(8)]
    sources = [screen.Source("b", [*((i, t) for _, i, t in QUIZ), ("all", PHRASE)], n=5)]
    full, index = screen.build_index(sources), screen.build_index(sources, exempt=phrase)
    assert {h["item"] for h in hits(full, PHRASE)} == {"0", "1", "all"}
    assert hits(index, PHRASE) == []
    assert [item.id for item in index.exempt] == ["all"]
    assert {(h["item"], h["share"] == 1.0) for h in hits(index, QUIZ[0][2])} == {("0", True), ("1", False)}
    assert [(r.planted, r.found, r.false_hits) for r in planted(index, seed=3)] == [(2, 2, 0)]


WORDS = st.lists(
    st.from_regex(r"[A-Za-z]{1,9}('[a-z]{1,2})?|[0-9]{1,4}|[a-z]{2}\u00e9[a-z]|na\u00efve|fine", fullmatch=True),
    min_size=13,
)


@settings(max_examples=60, deadline=None)
@given(WORDS.map(" ".join), st.text(max_size=20), st.text(max_size=20))
@pytest.mark.parametrize("disguise", range(len(DISGUISES)))
def test_an_item_survives_every_disguise_in_any_text(disguise, item, before, after):
    index = index_of([("bench", "q", item)])
    document = f"{before}\n{DISGUISES[disguise](item)}\n{after}"
    (hit,) = hits(index, document)
    assert hit["share"] == 1.0
    (span,) = hit["spans"]
    kept = document.encode()[span["start"] : span["end"]].decode()
    assert kept.strip() == kept
    assert kept in DISGUISES[disguise](item)
    assert hits(index, document.encode()[: span["start"]].decode() + document.encode()[span["end"] :].decode()) == []


@settings(max_examples=100, deadline=None)
@given(st.text(min_size=1, max_size=8), st.text(min_size=1, max_size=8))
def test_fold_agrees_with_the_hash_of_the_word_table(one, other):
    """Confirming on folded words never contradicts the hashes."""
    table = word_table(texts(one, other))
    spans = [(v.encode()[a:b].decode(), h) for d, v in enumerate((one, other)) for a, b, h in _words(table, d)]
    for word, hashed in spans:
        for another, hashed_other in spans:
            assert (screen.fold(word) == screen.fold(another)) == (hashed == hashed_other)


def _words(table, d):
    inside = slice(table.offsets[d], table.offsets[d + 1])
    columns = (table.start, table.stop, table.folded)
    words = table.flags[inside] & IS_WORD > 0
    return zip(*(column[inside][words].tolist() for column in columns), strict=True)


def test_planted_items_of_real_benchmarks_are_all_found(benchmark_items):
    """Under every disguise, in every length in use."""
    index = index_of(benchmark_items, floor=8)
    results = planted(index, seed=17, items=360)
    assert [(r.n, r.whole) for r in results] == [(13, False), (8, True)]
    for result in results:
        assert (result.planted, result.found, result.missed) == (360, 360, ())
        assert (result.lookalikes, result.false_hits) == (360, 0)
    assert planted(index, seed=17, items=360) == results


def test_planted_items_tell_on_a_broken_index(benchmark_index):
    (part,) = benchmark_index.parts
    blind = dataclasses.replace(part, table=dataclasses.replace(part.table, blocks=np.zeros_like(part.table.blocks)))
    (result,) = planted(dataclasses.replace(benchmark_index, parts=(blind,)), seed=17)
    assert (result.found, len(result.missed)) == (0, 64)


def test_lookalikes_tell_on_a_screen_that_does_not_confirm(benchmark_items):
    """Of whole items only the first words are looked up: without a look at the others look-alikes would be found."""
    index = index_of([row for row in benchmark_items if row[0] == "piqa"], floor=8)
    (part,) = [part for part in index.parts if part.whole]
    cut = {i: words[:8] for i in range(len(part.items)) if (words := part.item_words(i))}
    careless = dataclasses.replace(part, _words={}, _entries={})
    results = planted(dataclasses.replace(index, parts=(careless,)), seed=17)
    assert results[0].false_hits == 0
    long = [i for i, words in cut.items() if len(part.item_words(i)) > 8]
    assert len(long) > 64
    similar = " ".join([*part.item_words(long[0])[:-1], "xbadefu"])
    careless._words.update(cut)
    assert hits(dataclasses.replace(index, parts=(careless,)), similar)
    careless._words.clear()
    assert not hits(dataclasses.replace(index, parts=(careless,)), similar)


def test_training_items_of_a_benchmark_are_not_its_test_items(benchmark_index, data_dir):
    rows = read_lines(data_dir / "benchmarks" / "gsm8k-train-sample.jsonl.gz")
    assert len(rows) == 389
    assert hits(benchmark_index, *(r["question"] for r in rows)) == []


def test_hostile_corpus(data_dir):
    items = read_lines(data_dir / "hostile" / "B47-benchmark.jsonl")
    index = index_of([("B47", r["id"], r["text"]) for r in items])
    assert [item.id for item in index.too_short] == ["q3"]
    documents = read_lines(data_dir / "hostile" / "B47-corpus.jsonl")
    found = {documents[h["row"]]["id"]: h for h in hits(index, *(d["text"] for d in documents))}
    assert found.pop("B47-hit-q2")["item"] == "q2"
    assert sorted(found) == sorted(f"B47-boiler-{i}" for i in range(40))  # they share one boilerplate n-gram with q1
    assert {h["ngram"] for h in found.values()} == {
        "construct a complete table of truth values for the following argument and say"
    }


def test_the_phrase_of_the_hostile_corpus_is_told_with_its_contexts_and_can_be_exempted(data_dir):
    sources = [
        screen.Source("B47", [(r["id"], r["text"]) for r in read_lines(data_dir / "hostile" / "B47-benchmark.jsonl")])
    ]
    documents = read_lines(data_dir / "hostile" / "B47-corpus.jsonl")
    bodies = [d["text"] for d in documents]
    common = {n: count for n, count in contexts_of(screen.build_index(sources), *bodies).items() if count >= 40}
    assert set(common.values()) == {40}
    found = hits(screen.build_index(sources, exempt=common), *bodies)
    assert [documents[h["row"]]["id"] for h in found] == ["B47-hit-q2"]


STYLES = {
    "verbatim-question-and-answer": (36, 36),
    "question-only": (36, 36),
    "retyped": (30, 30),
    "split-over-tags": (24, 24),
    "first-60-percent": (24, 24),
    "inside-code-or-pre": (18, 18),
    "dump-of-12": (71, 72),
    "numbers-and-names-changed": (11, 23),
}
"""Style -> items found, and items that `planted.jsonl` says an n-gram screen should find."""


@pytest.fixture(scope="module")
def wet(data_dir) -> list[tuple[str, str]]:
    """Address and text of every page of the mini-crawl, by address."""
    pages: list[tuple[str, str]] = []
    for file in sorted((data_dir / "mini-crawl").glob("crawl-data/*/segments/*/wet/*.gz")):
        with file.open("rb") as stream:
            for record in ArchiveIterator(stream):
                if record.rec_type == "conversion":
                    text = record.content_stream().read().decode("utf-8")
                    pages.append((record.rec_headers["WARC-Target-URI"], text))
    return pages


@pytest.mark.parametrize("floor", [0, 8])
def test_recall_of_the_mini_crawl_by_style(benchmark_items, wet, data_dir, floor):
    """Every page with planted items is found but for reworded ones; no other page of the crawl is touched."""
    table = screen.screen(texts(*(text for _, text in wet)), index_of(benchmark_items, floor=floor))
    rows, items = (table.column(name).to_pylist() for name in ("row", "item"))
    found = {(wet[row][0], item) for row, item in zip(rows, items, strict=True)}
    planted = read_lines(data_dir / "mini-crawl" / "planted.jsonl")
    should = [p for p in planted if p["ngram_screen_should_find"]]
    missed = [p for p in should if (p["url"], p["item"]) not in found]
    totals, lost = Counter(p["how"] for p in should), Counter(p["how"] for p in missed)
    assert {how: (totals[how] - lost[how], totals[how]) for how in totals} == STYLES
    # a dump of many items in JSON: this one has no window of 13 words left there
    assert [p["item"] for p in missed if p["how"] == "dump-of-12"] == ["HumanEval/47"]
    questions, pages = {item: text for _, item, text in benchmark_items}, dict(reversed(wet))
    for p in missed:  # none of them has 13 words in a row left on its page: those are what the screen cannot see
        wanted, held = (re.findall(r"[\w'’]+", t.lower()) for t in (questions[p["item"]], pages[p["url"]]))
        grams = {tuple(held[k : k + 13]) for k in range(len(held) - 12)}
        assert not [k for k in range(len(wanted) - 12) if tuple(wanted[k : k + 13]) in grams], p
    assert {url for url, _ in found} <= {p["url"] for p in planted}


def test_none_of_the_25_look_alikes_is_flagged(benchmark_items, wet, data_dir):
    truth = read_lines(data_dir / "mini-crawl" / "truth.jsonl.gz")
    urls = {row["url"] for row in truth if row.get("kind") == "lookalike"}
    pages = [text for url, text in wet if url in urls]
    assert len(urls) == len(pages) == 25
    assert hits(index_of(benchmark_items, floor=8), *pages) == []
