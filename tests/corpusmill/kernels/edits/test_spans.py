"""Edits against plain Python: cutting, masking and uniting spans of texts."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusmill import schema
from corpusmill.kernels.edits import spans

Span = tuple[int, int, str]


def listed(rows: list[list[Span]]) -> pa.ListArray:
    return pa.array([[{"start": a, "end": b, "kind": k} for a, b, k in row] for row in rows], schema.SPANS)


def plain(found: pa.ListArray) -> list[list[Span]]:
    return [[(s["start"], s["end"], s["kind"]) for s in row] for row in found.to_pylist()]


def cut(text: str, row: list[Span], masks: dict[str, str]) -> str:
    raw = text.encode()
    made, at = b"", 0
    for start, end, kind in row:
        made += raw[at:start] + masks.get(kind, "").encode()
        at = end
    return (made + raw[at:]).decode()


@st.composite
def texts_with_spans(draw: st.DrawFn) -> tuple[list[str], list[list[Span]], list[list[Span]]]:
    texts = draw(st.lists(st.text(st.characters(codec="utf-8"), max_size=12), max_size=5))

    def layer(kinds: list[str]) -> list[list[Span]]:
        rows = []
        for text in texts:
            places = [len(text[:i].encode()) for i in range(len(text) + 1)]
            chosen = sorted(draw(st.lists(st.sampled_from(places), max_size=6)))
            pairs = zip(chosen[::2], chosen[1::2], strict=False)
            rows.append([(a, b, draw(st.sampled_from(kinds))) for a, b in pairs if a < b])
        return rows

    return texts, layer(["rule", "other"]), layer(["email", "phone"])


@given(texts_with_spans())
def test_a_view_is_the_text_without_its_spans_and_with_its_masks(
    case: tuple[list[str], list[list[Span]], list[list[Span]]],
) -> None:
    texts, cuts, masked = case
    masks = {"email": "<e>", "phone": "ÿ"}
    column = pa.array(texts, pa.large_string())
    assert spans.apply(column, listed(cuts), masks).to_pylist() == [
        cut(text, row, masks) for text, row in zip(texts, cuts, strict=True)
    ]
    layers = [layer for layer in (listed(cuts), listed(masked)) if len(layer.values)]
    if not layers:
        return
    both = spans.united(layers)
    for text, row, first, second in zip(texts, plain(both), cuts, masked, strict=True):
        gone: set[int] = set()
        for a, b, _ in first + second:
            gone.update(range(a, b))
        assert {i for a, b, _ in row for i in range(a, b)} == gone, text
        assert all(a[1] <= b[0] for a, b in pairwise(row)), "sorted, not overlapping"
        for a, b, kind in row:
            inside = [k for s, e, k in first if s < b and e > a]
            assert (kind in ("rule", "other")) == bool(inside), "a cut weighs more than a mask"
    assert spans.apply(column, both, masks).to_pylist() == [
        cut(text, row, masks) for text, row in zip(texts, plain(both), strict=True)
    ]


def test_slices_of_texts_and_spans_fit_each_other() -> None:
    text = pa.array(["abc", "defg", "h"], pa.large_string())
    found = listed([[(0, 1, "x")], [(1, 3, "x")], []])
    assert spans.apply(text.slice(1), found.slice(1)).to_pylist() == ["dg", "h"]
    assert spans.apply(text.take(pa.array([1])), found.take(pa.array([1]))).to_pylist() == ["dg"]
    assert spans.apply(text, spans.no_spans(3)) is text


@pytest.mark.parametrize("wrong", [[(0, 9, "x")], [(2, 1, "x")], [(0, 2, "x"), (1, 3, "x")], [(-1, 1, "x")]])
def test_spans_that_do_not_fit_are_an_error(wrong: list[Span]) -> None:
    with pytest.raises(ValueError, match="text 0: a span leaves"):
        spans.apply(pa.array(["abc"], pa.large_string()), listed([wrong]))


def test_spans_of_other_texts_are_an_error() -> None:
    with pytest.raises(ValueError, match="1 texts and spans of 2"):
        spans.apply(pa.array(["abc"], pa.large_string()), spans.no_spans(2))
