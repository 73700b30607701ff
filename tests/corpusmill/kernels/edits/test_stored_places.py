"""Places of an edited text in the stored one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from corpusmill.kernels.edits.spans import stored


@given(st.text("abcdefgh", max_size=24), st.sets(st.integers(0, 24), max_size=8), st.data())
def test_a_piece_of_an_edited_text_is_found_in_the_stored_one(text, cuts, data):
    """It begins with the piece's first byte, ends with its last, and without what was cut it is the piece."""
    edges = sorted(place for place in cuts if place <= len(text))
    spans = list(zip(edges[::2], edges[1::2], strict=False))
    kept = [i for i in range(len(text)) if not any(a <= i < b for a, b in spans)]
    edited = "".join(text[i] for i in kept)
    if not edited:
        return
    start = data.draw(st.integers(0, len(edited) - 1))
    end = data.draw(st.integers(start + 1, len(edited)))
    assert stored(start, end, spans) == (kept[start], kept[end - 1] + 1)
