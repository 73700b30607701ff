"""A build says where its text was not enough for its settings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corpusmill.config import parse_recipe
from corpusmill.dataset.manifest import Manifest, Partition, Vocabulary
from corpusmill.store import Output
from tasks.funnel.cautions import cautions
from tests.manifests import EMPTY

RECIPE = parse_recipe(
    {"name": "r", "source": {"a": {"kind": "text", "root": "."}}, "pack": {"vocab_size": 600, "heldout_one_in": 50}},
    "r",
)
PART = Partition(16, 2, 1, 1, 1, 1, 0, ())


def said(vocab_size: int, held: int | None, *, trained: bool = True) -> list[str]:
    vocabulary = Vocabulary(Output("o", "d", None, 1, None), vocab_size, "</s>", 0)
    manifest = Manifest.from_json({**EMPTY, "name": "r", "format": 2})
    parts = {"a": PART} | ({} if held is None else {"heldout": replace(PART, documents=held)})
    return list(cautions(RECIPE, replace(manifest, tokenizer=vocabulary, partitions=parts), trained=trained))


@pytest.mark.parametrize(
    ("held", "words"),
    [(None, "no document is"), (0, "no document is"), (1, "one document is"), (19, "19 documents are")],
)
def test_few_held_out_documents_are_no_held_out_set(held, words):
    (only,) = said(600, held)
    assert only.startswith(f"{words} held out; a loss on fewer than 20 says little")
    assert "pack.heldout_one_in (now 50)" in only


def test_a_vocabulary_that_is_not_reached_is_said_of_a_trained_tokenizer():
    (only,) = said(599, 20)
    assert only.startswith("the tokenizer has 599 tokens instead of 600 (pack.vocab_size)")
    assert said(600, 20) == said(300, 20, trained=False) == []


def test_nothing_is_said_of_nothing():
    assert list(cautions(RECIPE, Manifest.from_json({**EMPTY, "name": "r", "format": 2}), trained=True)) == []
