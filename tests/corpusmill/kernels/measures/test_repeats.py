"""Repeated n-grams equal plain Python where texts are long or dense with repeats."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from corpusmill.kernels.measures.repeats import DUP_NGRAMS, TOP_NGRAMS, count_repeats
from corpusmill.kernels.words.table import word_table
from tests.corpusmill.kernels import reference


def _expected(text: str) -> list[int]:
    found = [token for token, _ in reference.tokens(text)]
    return [
        *(reference.top_ngram(found, n) for n in TOP_NGRAMS),
        *(reference.dup_ngrams(found, n) for n in DUP_NGRAMS),
    ]


@pytest.mark.parametrize(
    ("words", "different"), [(40_000, 9_000), (3_000, 2), (2_000, 1), (500, 12), (9, 3), (2, 1), (1, 1)]
)
def test_long_and_repetitive_texts_equal_plain_python(words: int, different: int) -> None:
    random = np.random.default_rng(words)
    drawn = random.integers(0, different, words).tolist()
    texts = [" ".join(f"w{one}" for one in drawn), "one two " * 3, "", " ".join(f"w{one}" for one in drawn[::-1])]
    counts = count_repeats(word_table(pa.array(texts, pa.large_string())))
    assert counts.tolist() == [_expected(text) for text in texts]


def test_passages_that_come_again_with_other_words_around_equal_plain_python() -> None:
    random = np.random.default_rng(7)
    passages = [" ".join(f"p{i}x{j}" for j in range(int(size))) for i, size in enumerate(random.integers(1, 14, 30))]
    texts = [" ".join(passages[int(i)] for i in random.integers(0, 30, 80)) for _ in range(40)]
    counts = count_repeats(word_table(pa.array(texts, pa.large_string())))
    assert counts.tolist() == [_expected(text) for text in texts]
    assert (counts[:, -1] > 0).any()
