"""Repeated lines and runs of words: the same as counting them in plain Python."""

from __future__ import annotations

import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.kernels.duplicates import passages
from corpusmill.kernels.words.plain_form import plain_text

WORDS = st.sampled_from(["ant", "bee", "Cat", "dog", "é"])
TEXTS = st.lists(
    st.lists(st.one_of(WORDS, st.sampled_from(["\n", "\n\n", ". ", "—"])), max_size=14).map(" ".join), max_size=5
)


def column(texts: list[str]) -> pa.Array:
    return pa.array(texts, pa.large_string())


def words_of(text: str) -> list[tuple[str, int, int]]:
    """Words with their first byte and the byte after, of texts made from WORDS."""
    found, at = [], 0
    for token in text.replace(".", " ").replace("—", "   ").split():
        begin = text.index(token, at)
        at = begin + len(token)
        found.append((token, len(text[:begin].encode()), len(text[:at].encode())))
    return found


def covered(texts: list[str], cut: np.ndarray, items: passages.Items) -> list[set[int]]:
    out: list[set[int]] = [set() for _ in texts]
    for d in range(len(texts)):
        for i in range(items.offsets[d], items.offsets[d + 1]):
            if cut[i]:
                out[d] |= set(range(items.start[i], items.end[i]))
    return out


def marked(items: passages.Items, least: int, once: bool) -> passages.Repeated:
    documents = np.repeat(np.arange(len(items.offsets) - 1), np.diff(items.offsets)).astype(np.uint32)
    return passages.repeated(items.hashes, documents, items.start, least=least, once=once)


FORMS = ["NFC", "NFD", "NFKC"]
PASSAGES = [
    "Die Mühle ſteht am Fluß und mahlt das Korn",
    "방앗간은 강가에 서 있고 곡식을 빻는다 오늘도",
    "Ｔｈｅ ｍｉｌｌ ﬁnds a river and grinds corn",
    "le père d‘Élodie n‘a jamais vu l‘été ici",
]


@pytest.mark.parametrize("text", PASSAGES)
@pytest.mark.parametrize("form", FORMS)
def test_a_passage_is_one_however_it_is_encoded(text: str, form: str) -> None:
    """Its hashes and, in the text as it is stored, its places."""
    text = text.replace("ſ", "s")
    other = unicodedata.normalize(form, text.replace("‘", "'"))
    given = [f"Zuerst: ä\n{text}\nEnde é", f"a\u0308\u0323 b\n{other}\n"]
    array = column(given)
    items = passages.lines(array, 1)
    one, two = (items.offsets[d] + 1 for d in (0, 1))
    assert items.hashes[one] == items.hashes[two]
    for item, text_here, line in ((one, given[0], text), (two, given[1], other)):
        assert text_here.encode()[items.start[item] : items.end[item]].decode() == f"{line}\n"
    found = passages.windows(array, 5)
    last = [int(found.offsets[d + 1]) for d in (0, 1)]
    shared = np.intersect1d(found.hashes[: last[0]], found.hashes[last[0] :])
    assert len(shared) >= len(text.split()) - 4
    for item in np.flatnonzero(np.isin(found.hashes, shared)):
        here = given[int(item >= last[0])].encode()[found.start[item] : found.end[item]].decode()
        assert plain_text(here) == " ".join(plain_text(here).split())
        assert here in text or here in other


@settings(max_examples=150, deadline=None)
@given(TEXTS, st.integers(2, 4))
def test_words_in_repeated_runs_are_those_of_every_run_that_occurs_before(texts, size):
    """The naive count over all runs of `size` words or more, which is what a suffix array of the texts gives."""
    items = passages.windows(column(texts), size)
    found = covered(texts, marked(items, 2, True).cut, items)
    tokens = [words_of(text) for text in texts]
    seen: set[tuple[str, ...]] = set()
    expected: list[set[int]] = [set() for _ in texts]
    for d, words in enumerate(tokens):
        for i in range(len(words) - size + 1):
            run = tuple(word for word, _, _ in words[i : i + size])
            if run in seen:
                expected[d] |= set(range(words[i][1], words[i + size - 1][2]))
            seen.add(run)
    assert found == expected


@settings(max_examples=150, deadline=None)
@given(TEXTS, st.sampled_from([1, 2]), st.integers(2, 3))
def test_lines_in_enough_documents_go_from_all_but_the_first(texts, feeds, least):
    items = passages.lines(column(texts), feeds)
    found = covered(texts, marked(items, least, False).cut, items)
    lines: list[list[tuple[tuple[str, ...], int, int]]] = []
    for text in texts:
        at, here = 0, []
        while at < len(text):
            end = at
            while end < len(text):
                if text[end] != "\n":
                    end += 1
                    continue
                run = end
                while run < len(text) and text[run] == "\n":
                    run += 1
                enough, end = run - end >= feeds, run
                if enough:
                    break
            words = tuple(word.lower() for word, _, _ in words_of(text[at:end]))
            if words:
                here.append((words, len(text[:at].encode()), len(text[:end].encode())))
            at = end
        lines.append(here)
    expected: list[set[int]] = [set() for _ in texts]
    for d, here in enumerate(lines):
        for words, begin, end in here:
            holders = [e for e, others in enumerate(lines) if any(words == other for other, _, _ in others)]
            if len(holders) >= least and holders[0] != d:
                expected[d] |= set(range(begin, end))
    assert found == expected


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30), st.integers(1, 6)), max_size=20))
def test_spans_are_united(spans):
    row, start, size = (np.array([s[i] for s in spans], np.int64) for i in range(3))
    offsets, first, last = passages.unite(row, start, start + size, 4)
    expected: list[set[int]] = [set() for _ in range(4)]
    for r, begin, length in spans:
        expected[r] |= set(range(begin, begin + length))
    for r in range(4):
        here = slice(offsets[r], offsets[r + 1])
        assert {p for a, b in zip(first[here], last[here], strict=True) for p in range(a, b)} == expected[r]
        assert all(a > b for a, b in zip(first[here][1:], last[here][:-1], strict=True))


def test_a_passage_counts_whatever_its_punctuation_and_spaces():
    one, other = "The mill, by the river: stood.", "the mill by  the\nriver — stood"
    assert (
        passages.windows(column([one, other.replace("the mill", "The mill")]), 6).hashes.tolist()[0]
        == (passages.windows(column([other.replace("the mill", "The mill")]), 6).hashes.tolist()[0])
    )


@pytest.mark.parametrize("texts", [[], [""], ["one"]])
def test_texts_without_a_passage(texts):
    assert len(passages.windows(column(texts), 50).hashes) == 0
    assert len(passages.lines(column(texts), 1).hashes) == sum(map(bool, texts))
