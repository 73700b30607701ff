"""Repeated lines and passages become edits; the most frequent are reported before they are cut."""

from __future__ import annotations

import numpy as np
import pytest

from tasks import dedup
from tests.tasks.dedup.corpus import Doc, recipe, sentence, shards, store_at
from tests.tasks.dedup.test_near import inline, whole


def cut(parts, made, store):
    """Texts by name as view `final` has them, and what was reported."""
    held = shards(parts, made, store)
    exact = dedup.exact(held, made, store).receipt
    near = dedup.near_over(inline, whole, held, exact, made, store, None)[-1].receipt
    found = dedup.repeats(inline, held, exact, near, made, store)
    texts = {}
    for shard, docs in zip(found.shards, parts, strict=True):
        final = shard.texts(np.arange(len(docs)), store, "final").to_pylist()
        texts |= dict(zip((doc.name for doc in docs), final, strict=True))
    return texts, found


def pages(count: int) -> list[Doc]:
    footer = "Copyright, all rights are reserved by the makers of this page."
    return [
        Doc(f"page {i}", f"{' '.join(sentence(f'p{i}', 60))}\n{footer}\nlast {i}", date=f"2026-01-{i + 1:02d}")
        for i in range(count)
    ]


def test_a_line_of_many_documents_stays_in_one(tmp_path):
    store, made = store_at(tmp_path / "s"), recipe(lines="line", lines_min_documents=5)
    docs = pages(9)
    texts, found = cut([docs[:4], docs[4:]], made, store)
    holding = [name for name, text in texts.items() if "Copyright" in text]
    assert len(holding) == 1
    for doc in docs:
        first, footer, last = doc.text.split("\n")
        assert texts[doc.name] == (doc.text if doc.name in holding else f"{first}\n{last}")
    assert found.summaries["lines"]["most_frequent"] == [{"documents": 9, "text": footer}]
    assert sum(receipt.counters["spans"] for _, receipt in found.receipts) == 8
    spans = store.table(found.shards[0].cuts[0]).column("spans").to_pylist()
    assert {span["kind"] for row in spans for span in row} == {"repeated_line"}


def test_a_line_of_too_few_documents_stays_everywhere(tmp_path):
    docs = pages(4)
    texts, found = cut([docs], recipe(lines="line", lines_min_documents=5), store_at(tmp_path / "s"))
    assert texts == {doc.name: doc.text for doc in docs}
    assert found.summaries["lines"]["most_frequent"] == []


def test_a_long_passage_stays_where_the_preferred_document_has_it(tmp_path):
    """In another document, and a second time within its own."""
    passage = " ".join(sentence("shared", 70))
    long = Doc("long", f"{' '.join(sentence('a', 300))} {passage}, {' '.join(sentence('b', 30))} {passage}.")
    short = Doc("short", f"{' '.join(sentence('c', 120))}\n\n{passage}\n\n{' '.join(sentence('d', 20))}")
    brief = Doc("brief", f"{' '.join(passage.split()[:49])} {' '.join(sentence('e', 90))}")
    texts, found = cut([[short, brief], [long]], recipe(substring_words=50), store_at(tmp_path / "s"))
    assert texts["brief"] == brief.text
    assert texts["short"] == short.text.replace(passage, "")
    assert texts["long"] == long.text[: long.text.rindex(passage)] + "."
    assert found.summaries["substrings"]["most_frequent"][0]["documents"] == 2


@pytest.mark.parametrize("factor", [1, 300])
def test_the_same_spans_from_any_partition(tmp_path, factor, monkeypatch):
    monkeypatch.setattr("tasks.dedup.passages.ITEM_BYTES", 80 * factor)
    passage = " ".join(sentence("shared", 60))
    docs = [
        Doc(f"d{i}", f"{' '.join(sentence(f's{i}', 90))} {passage if i % 3 == 0 else ''}\nfoot line") for i in range(30)
    ]
    made = recipe(substring_words=50, lines="line", lines_min_documents=3, memory_mb=2)
    one, _ = cut([docs], made, store_at(tmp_path / "one"))
    other, found = cut([docs[20:], docs[:7], docs[7:20]], made, store_at(tmp_path / "other"))
    assert one == other
    assert sum("foot line" in text for text in one.values()) == 1
    assert sum(passage in text for text in one.values()) == 1
    assert {receipt.stage for _, receipt in found.receipts} == {"lines", "substrings"}
