"""Texts for tests of the text kernels: made by hypothesis to meet every kind of character and boundary."""

from __future__ import annotations

import unicodedata

import pyarrow as pa
from hypothesis import strategies as st

from corpusmill.kernels.bytes.unicode_table import LIMIT, entry_from_unicodedata, entry_of

_PIECES = [
    *(
        "the",
        "Be",
        "and",
        "THAT",
        "with",
        "mill",
        "Straße",
        "ÉTÉ",
        "été",
        "don't",
        "Don’t",
        "l·l",
        "snake_case",
        "x",
        "I",
    ),
    *("3", "14", "1,000.5", "3.14", "٣٤", "½", "Ⅷ", "x2", "１２", "ΟΔΟΣ", "οδος", "İstanbul", "ǅ", "𝐀𝐛", "Ԉ", "ﬁ"),
    *("日", "本語", "かな", "か\u3099", "カー", "한국어", "각", "ภาษาไทย", "ខ្មែរ", "עברית", "צה״ל", "हिन्दी", "العربية"),
    *(
        " ",
        "  ",
        "\n",
        "\n\n",
        "\n\n\n",
        "\r\n",
        "\r",
        "\t",
        "\v",
        "\f",
        "\x1c",
        "\x85",
        "\u2028",
        "\u2029",
        "\u00a0",
        "\u3000",
    ),
    *(
        "\x00",
        "\x7f",
        "\u200b",
        "\u00ad",
        "\u200d",
        "\ufeff",
        "\ufe0f",
        "\u0301",
        "\u20e3",
        "\u2060",
        "\U000e0100",
        "\U000e0041",
    ),
    *(
        ".",
        "...",
        "…",
        "....",
        ",",
        ",,",
        "'",
        "’",
        "_",
        "·",
        "#",
        "##",
        "-",
        "--",
        "---",
        "•",
        "*",
        "!",
        "!?",
        '"',
        "“",
        "”",
    ),
    *("(", ")", "$", "€", "©", "🙂", "👩‍👩‍👧", "👍🏽", "🇪🇺", "❤️", "1️⃣", "\U000f0000", "\U0010ffff", "\u0378", "𠀀"),
]


def _same_in_table(character: str) -> bool:
    """Leaves out characters that this interpreter's Unicode version knows better than the table."""
    code = ord(character)
    if code < LIMIT:
        return entry_from_unicodedata(code) == entry_of(code)
    return code >= 0x40000 or unicodedata.category(character)[0] == "L"


def texts(max_pieces: int = 40) -> st.SearchStrategy[str]:
    """Text of words, blanks, marks and any characters, with many repetitions."""
    characters = st.characters(exclude_categories=("Cs",)).filter(_same_in_table)
    piece = st.one_of(st.sampled_from(_PIECES), characters, st.sampled_from(["mill ", "the ", "\n", "- a\n", "\n\n"]))
    repeated = st.tuples(st.lists(piece, min_size=1, max_size=8), st.integers(1, 6)).map(lambda p: "".join(p[0]) * p[1])
    return st.lists(st.one_of(piece, repeated), max_size=max_pieces).map("".join)


def batches() -> st.SearchStrategy[list[str]]:
    """Up to five texts, empty ones among them."""
    return st.lists(texts(), max_size=5)


def column(values: list[str], before: int = 0) -> pa.LargeStringArray:
    """The texts as a column; with `before`, as a slice that does not begin at the start of its buffers."""
    array = pa.array(["é# before\n"] * before + values + ["after"] * before, pa.large_string())
    return array.slice(before, len(values))
