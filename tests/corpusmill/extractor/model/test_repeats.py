"""Lines that stand twice on a page are kept once, the likelier of them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from corpusmill.extractor.model.repeats import MAX_COPIES, MIN_WORDS, without_copies
from corpusmill.extractor.scan.scan import Line, scan

LONG = "word " * MIN_WORDS
pages = st.lists(st.tuples(st.sampled_from([LONG, LONG.upper(), LONG + "more", "short line", ""]), st.floats(0, 1)))


def test_the_likelier_copy_stays_and_the_first_of_equals() -> None:
    page = scan(f"<p>{LONG}</p><p>short line</p><p>{LONG}</p><p>short line</p><p>{LONG}</p>".encode())
    given_ = np.array([0.3, 0.9, 0.7, 0.9, 0.7])
    assert without_copies(page, given_).tolist() == [0.0, 0.9, 0.7, 0.9, 0.0]
    assert given_.tolist() == [0.3, 0.9, 0.7, 0.9, 0.7]


def test_lines_said_more_often_than_a_layout_repeats_them_stay_for_the_rules() -> None:
    page = scan(f"<p>{LONG}</p>".encode() * (MAX_COPIES + 1))
    given_ = np.full(MAX_COPIES + 1, 0.9)
    assert without_copies(page, given_).tolist() == given_.tolist()


@given(pages)
def test_equal_to_a_search(held: list[tuple[str, float]]) -> None:
    page = scan("".join(f"<p>{text}</p>" for text, _ in held).encode())
    probability = np.array([p for text, p in held if text], np.float64)
    expected = probability.copy()
    for i in range(len(probability)):
        words, said = page.lines[i, Line.WORDS], page.lines[i, Line.HASH]
        same = [j for j in range(len(probability)) if page.lines[j, Line.HASH] == said]
        if words >= MIN_WORDS and len(same) <= MAX_COPIES and max(same, key=lambda j: (probability[j], -j)) != i:
            expected[i] = 0.0
    assert without_copies(page, probability).tolist() == expected.tolist()
