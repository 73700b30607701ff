"""Pages that are broken in ways that pages are broken in, for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

PIECES = (
    "<table>", "<tr>", "<td>", "<pre>", "</pre>", "<svg>", "</svg>", "</div>", "<div class='sideBar item'>", "<!--",
    "-->", "<title>", "</title>", "<ul>", "<li>", "<ol>", "<math>", "</math>", "<h2>", "<dt>", "<dd>", "<x-y>", "<br>",
    "<annotation encoding='application/x-tex'>x^2", "<script type='math/tex'>a<b</script>", "<script>", "</script>",
    "<span class='katex katex-html'>", "</span>", "<b>", "</b>", "<a href=x>", "</a>", "<p hidden>",
    "<p style='DISPLAY: none'>", "</", "<", ">", "'", '"', " = ", "=\"", "&nbsp;", "&#x4e00;", "&eacute;", "&amp",
    "&#8226;", "漢字", "ก็ดีมาก", "Ümläut", "۔؟،", "•", "\u00a0", "\t", "\r\n", "   ", "Word. ", "title words, and 12! ",
    "\x00", "\x0b", "\u2028", "\U0001f600",
)  # fmt: skip
"""Pieces that mean something to a scanner."""

pages = st.lists(st.sampled_from(PIECES), max_size=60).map("".join)
"""Pages of nothing but such pieces."""


@st.composite
def mutated(draw: st.DrawFn, page: bytes) -> bytes:
    """A page with some bytes changed, dropped or doubled, and pieces put in."""
    for _ in range(draw(st.integers(0, 8))):
        at, length = draw(st.integers(0, len(page))), draw(st.integers(1, 80))
        kind = draw(st.sampled_from(("byte", "drop", "double", "piece")))
        if kind == "byte":
            page = page[:at] + bytes([draw(st.integers(0, 255))]) + page[at + 1 :]
        elif kind == "drop":
            page = page[:at] + page[at + length :]
        elif kind == "double":
            page = page[: at + length] + page[at:]
        else:
            page = page[:at] + draw(st.sampled_from(PIECES)).encode() + page[at:]
    return page
