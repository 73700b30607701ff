"""Repeated runs of words on real texts: those that a suffix array of all of them has, by a well-known library."""

from __future__ import annotations

import gzip
import json
import re

import numpy as np
import pyarrow as pa
import pytest
from pydivsufsort import divsufsort, kasai

from corpusmill.kernels.duplicates import passages

WORDS = 50
"""Lee et al. 2021: repeated runs of 50 tokens or more."""


@pytest.fixture(scope="module")
def texts(data_dir) -> list[str]:
    """Words alone, so that both sides cut alike: revisions of pages, which share most of their runs."""
    with gzip.open(data_dir / "neardup" / "doc-revisions" / "docs.jsonl.gz", "rt", encoding="utf-8") as lines:
        found = [json.loads(line)["text"] for line in lines]
    return [" ".join(re.findall(r"[a-z]+", text.lower())) for text in found]


def test_cut_words_are_those_of_runs_that_occur_before_by_a_suffix_array(texts):
    items = passages.windows(pa.array(texts, pa.large_string()), WORDS)
    documents = np.repeat(np.arange(len(texts)), np.diff(items.offsets)).astype(np.uint32)
    cut = passages.repeated(items.hashes, documents, items.start, least=2, once=True).cut
    ours = [np.zeros(len(text), bool) for text in texts]
    for d, first, end in zip(documents[cut], items.start[cut], items.end[cut], strict=True):
        ours[d][first:end] = True
    assert sum(mask.any() for mask in ours) > 100, "too few texts share a run: nothing is compared"
    for mask, expected in zip(ours, covered_by_suffix_array(texts), strict=True):
        assert (mask == expected).all()


def covered_by_suffix_array(texts: list[str]) -> list[np.ndarray]:
    """Characters within a run of WORDS words that stands earlier, in the same text or one before it."""
    ids: dict[str, int] = {}
    spans, numbers = [], []
    for d, text in enumerate(texts):
        for word in re.finditer(r"\S+", text):
            spans.append((d, *word.span()))
            numbers.append(ids.setdefault(word.group(), len(ids)))
        spans.append((d, 0, 0))
        numbers.append(-1 - d)  # an end of its own: no run goes on into the next text
    sequence = np.array(numbers, np.int64) + len(texts)
    order = divsufsort(sequence)
    shared = kasai(sequence, order)
    found = [np.zeros(len(text), bool) for text in texts]
    for group in np.split(order, np.flatnonzero(shared[:-1] < WORDS) + 1):
        for begin in np.sort(group)[1:]:  # those after the first that begin with the same run
            d, first, _ = spans[begin]
            found[d][first : spans[begin + WORDS - 1][2]] = True
    return found
