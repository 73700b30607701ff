"""The benchmark of training on a large text: the text is the same each time and goes on to have new words."""

from __future__ import annotations

import numpy as np

from bench.perplexity import __main__ as perplexity
from tests.tasks.models.test_perplexity import TOY


def walk() -> perplexity.Walk:
    rng = np.random.default_rng(3)
    source = np.minimum(rng.zipf(1.3, 5000), 900)
    source[::12] = perplexity.LINE_END
    return perplexity.Walk(source, 901)


def test_the_walk_is_the_same_each_time() -> None:
    assert np.array_equal(walk().words(3000), walk().words(3000))


def test_new_words_and_new_ngrams_keep_coming() -> None:
    words = walk().words(40_000)
    halves = [set(zip(*(part[i:] for i in range(3)), strict=False)) for part in (words[:20_000], words[20_000:])]
    assert len(set(words[20_000:]) - set(words[:20_000])) > 50
    assert len(halves[1] - halves[0]) > len(halves[1]) / 4


def test_made_words_differ_and_have_letters_alone() -> None:
    made = [perplexity.spelled(number) for number in range(900, 5000)]
    assert len(set(made)) == len(made)
    assert all(word.isalpha() for word in made)


def test_memory_and_cpu_of_a_training_are_measured(tmp_path) -> None:
    (tmp_path / "text.txt").write_text(TOY)
    found = perplexity.train(tmp_path / "text.txt", tmp_path / "model")
    assert found["card"]["data"]["words"] == 30
    assert found["peak"] > 10_000_000
    assert found["cpu_s"] >= 0
