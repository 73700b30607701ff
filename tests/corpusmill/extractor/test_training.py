"""What the extractor learns from: labels by alignment, folds by domain, pages without names, samples. No LightGBM."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bench.extraction.sets import Page
from corpusmill.extractor.model.features import NAMES
from corpusmill.extractor.scan.scan import Box, Line
from extractor_training.align import matched
from extractor_training.data import example, fold_of
from extractor_training.lines import UNNAMED_WEIGHT, drawn, sample, weights
from extractor_training.unnamed import unnamed

HTML = (
    "<body><div class='navbar'><a href=/>Home</a></div><div class='article-body'><h1>A title</h1>"
    "<p>One two three four five six.</p><p>Seven eight nine ten eleven.</p></div><footer>All rights</footer></body>"
)
PAGE = Page(
    "a", HTML.encode(), "A title\nOne two three four five six.\nSeven eight nine ten eleven.", url="https://x.example/"
)


def common(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """Greatest score of a common subsequence: 2 for a match, 3 for one that follows a match in both."""

    @cache
    def best(i: int, j: int, run: bool) -> int:
        if i == len(a) or j == len(b):
            return 0
        found = max(best(i + 1, j, False), best(i, j + 1, False))
        if a[i] == b[j]:
            found = max(found, (3 if run else 2) + best(i + 1, j + 1, True))
        return found

    return best(0, 0, False)


words = st.lists(st.integers(0, 3), max_size=9)


@given(words, words)
def test_the_alignment_is_a_best_one(a: list[int], b: list[int]) -> None:
    taken = matched(np.array(a, np.int32), np.array(b, np.int32))
    chosen = [word for word, hit in zip(a, taken, strict=True) if hit]
    rest = iter(b)
    assert all(word in rest for word in chosen)  # a subsequence of the truth
    runs = sum(bool(x and y) for x, y in pairwise(taken))
    assert 2 * len(chosen) + runs >= common(tuple(a), tuple(b))


def test_labels_are_shares_of_words() -> None:
    found = example("wcxb-dev", PAGE)
    assert found.label.tolist() == [0.0, 1.0, 1.0, 1.0, 0.0]
    assert found.f1(found.label > 0.5) == 1.0
    assert found.f1(np.zeros(5, bool)) == 0.0


def test_pages_of_one_domain_share_a_fold() -> None:
    def fold(url: str) -> int:
        return fold_of(Page("id", b"", None, url=url))

    assert fold("https://www.a.example/1") == fold("http://b.A.example/2") == fold("https://a.example")
    assert len({fold(f"https://{i}.example{i}") for i in range(50)}) == 5


def test_pages_without_names_keep_their_tags() -> None:
    page = example("wcxb-dev", PAGE)
    bare = unnamed(page)
    named = [NAMES.index(name) for name in ("near_article", "near_content", "near_nav")]
    assert page.x[2:4, named].any()
    assert not bare.x[2:4, named].any()
    footer = NAMES.index("near_footer")
    assert bare.x[4, footer] == page.x[4, footer] > 0
    assert not bare.scan.lines[:, Line.ROLES].any()
    assert bare.label is page.label
    assert page.scan.boxes[:, Box.OWN_ROLES].any()


def test_samples_weigh_as_much_as_all_lines() -> None:
    page = example("wcxb-dev", PAGE)
    x, label, weight = sample([page], [unnamed(page)])
    assert len(x) == len(label) == len(weight) <= 2 * len(page.label)
    expected = weights(page)
    assert drawn([page], 10**6)[2].tolist() == expected.tolist()
    many = [page] * 400
    assert abs(drawn(many, 2)[2].sum() / (400 * expected.sum()) - 1) < 0.1
    assert UNNAMED_WEIGHT < 1
