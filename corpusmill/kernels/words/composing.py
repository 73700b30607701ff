"""Normal form C: texts that differ only in how marks, Hangul and ideographs are encoded become one.

"Müller" is written with one character for the umlaut (NFC) or with a letter and a mark (NFD, as macOS does); Hangul,
voiced kana, vowels of Indic scripts, order of marks, compatibility ideographs likewise. Unicode keeps normal forms
stable (UAX #15), and only characters of Unicode 14.0 are touched, so a form does not change with the Python version.

Texts without such characters cost a pass over their bytes (1 GB a CPU second and more), those that are in normal form
another look (400 MB); only others are written anew: around their marks where these are few, else whole (some 10 MB).
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.compiled import inner, kernel
from corpusmill.kernels.words.table import text_buffers

_RANGES = """
300-34e 350-36f 374 37e 387 483-487 591-5bd 5bf 5c1-5c2 5c4-5c5 5c7 610-61a 64b-65f 670 6d6-6dc 6df-6e4 6e7-6e8
6ea-6ed 711 730-74a 7eb-7f3 7fd 816-819 81b-823 825-827 829-82d 859-85b 898-89f 8ca-8e1 8e3-8ff 93c 94d 951-954
958-95f 9bc 9be 9cd 9d7 9dc-9dd 9df 9fe a33 a36 a3c a4d a59-a5b a5e abc acd b3c b3e b4d b56-b57 b5c-b5d bbe bcd
bd7 c3c c4d c55-c56 cbc cc2 ccd cd5-cd6 d3b-d3c d3e d4d d57 dca dcf ddf e38-e3a e48-e4b eb8-eba ec8-ecb f18-f19
f35 f37 f39 f43 f4d f52 f57 f5c f69 f71-f76 f78 f7a-f7d f80-f84 f86-f87 f93 f9d fa2 fa7 fac fb5 fb7 fb9 fc6 102e
1037 1039-103a 108d 1161-1175 11a8-11c2 135d-135f 1714-1715 1734 17d2 17dd 18a9 1939-193b 1a17-1a18 1a60
1a75-1a7c 1a7f 1ab0-1abd 1abf-1ace 1b34-1b35 1b44 1b6b-1b73 1baa-1bab 1be6 1bf2-1bf3 1c37 1cd0-1cd2 1cd4-1ce0
1ce2-1ce8 1ced 1cf4 1cf8-1cf9 1dc0-1dff 1f71 1f73 1f75 1f77 1f79 1f7b 1f7d 1fbb 1fbe 1fc9 1fcb 1fd3 1fdb 1fe3
1feb 1fee-1fef 1ff9 1ffb 1ffd 2000-2001 20d0-20dc 20e1 20e5-20f0 2126 212a-212b 2329-232a 2adc 2cef-2cf1 2d7f
2de0-2dff 302a-302f 3099-309a a66f a674-a67d a69e-a69f a6f0-a6f1 a806 a82c a8c4 a8e0-a8f1 a92b-a92d a953 a9b3
a9c0 aab0 aab2-aab4 aab7-aab8 aabe-aabf aac1 aaf6 abed f900-fa0d fa10 fa12 fa15-fa1e fa20 fa22 fa25-fa26
fa2a-fa6d fa70-fad9 fb1d-fb1f fb2a-fb36 fb38-fb3c fb3e fb40-fb41 fb43-fb44 fb46-fb4e fe20-fe2f 101fd 102e0
10376-1037a 10a0d 10a0f 10a38-10a3a 10a3f 10ae5-10ae6 10d24-10d27 10eab-10eac 10f46-10f50 10f82-10f85 11046
11070 1107f 110b9-110ba 11100-11102 11127 11133-11134 11173 111c0 111ca 11235-11236 112e9-112ea 1133b-1133c
1133e 1134d 11357 11366-1136c 11370-11374 11442 11446 1145e 114b0 114ba 114bd 114c2-114c3 115af 115bf-115c0
1163f 116b6-116b7 1172b 11839-1183a 11930 1193d-1193e 11943 119e0 11a34 11a47 11a99 11c3f 11d42 11d44-11d45
11d97 16af0-16af4 16b30-16b36 16ff0-16ff1 1bc9e 1d15e-1d169 1d16d-1d172 1d17b-1d182 1d185-1d18b 1d1aa-1d1ad
1d1bb-1d1c0 1d242-1d244 1e000-1e006 1e008-1e018 1e01b-1e021 1e023-1e024 1e026-1e02a 1e130-1e136 1e2ae
1e2ec-1e2ef 1e8d0-1e8d6 1e944-1e94a 2f800-2fa1d
"""
"""Characters that normal form C may change, or change the order of, by what stands before them: marks, vowels and final
consonants of Hangul, compatibility ideographs. Of Unicode 14.0; a test makes them anew."""

_LATER = re.compile("[\u0ece\U00010efd-\U00010eff\U00011f00-\U00011f5f\U0001e08f\U0001e4d0-\U0001e4ff]")
"""Such characters of Unicode 15.0 and 15.1, which only some Python versions know: texts with one are composed run by
run, so that these stay as they are."""
SPARSE = 32
"""Characters for each composing one from which on only what stands around these is written anew."""
_BLOCK = 256


def ranges() -> list[tuple[int, int]]:
    """First and last code point of each range of composing characters, ascending."""
    parts = (part.partition("-") for part in _RANGES.split())
    return [(int(first, 16), int(last or first, 16)) for first, _, last in parts]


_CLASS = "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges())
RUN = re.compile(f"(?:[^{_CLASS}]?[{_CLASS}]++)++")
"""What is composed for itself: what stands before and after it is not affected."""
CLUSTER = re.compile(f"[^{_CLASS}]?[{_CLASS}]++")
"""A part of a run that is composed for itself: one character with what may join it."""


@cache
def flags() -> NDArray[np.bool_]:
    """bool[0x30000], read-only: whether a code point is a composing character; none beyond is."""
    made = np.zeros(0x30000, np.bool_)
    for first, last in ranges():
        made[first : last + 1] = True
    made.flags.writeable = False
    return made


def composed_text(text: str) -> str:
    """Normal form C of one text: where composing characters are few, only what is around them is looked at."""
    codes = np.frombuffer(text.encode("utf-32-le"), "<u4")
    places = np.flatnonzero(flags()[np.minimum(codes, len(flags()) - 1)])
    if len(places) * SPARSE > len(text):
        if unicodedata.is_normalized("NFC", text):
            return text
        if _LATER.search(text):
            return RUN.sub(lambda match: unicodedata.normalize("NFC", match.group()), text)
        return unicodedata.normalize("NFC", text)
    parts, at = [], 0
    starts = places[np.diff(places, prepend=-2) > 1]
    ends = places[np.diff(places, append=len(text) + 1) > 1] + 1
    for first, end in zip(starts.tolist(), ends.tolist(), strict=True):
        begin = max(first - 1, at)  # with the character before them
        parts += [text[at:begin], unicodedata.normalize("NFC", text[begin:end])]
        at = end
    return "".join([*parts, text[at:]])


def composed(text: pa.LargeStringArray) -> tuple[pa.LargeStringArray, list[int]]:
    """Normal form C of texts, and which of them had another.

    Args:
        text: large_string[D] without nulls.

    Returns:
        large_string[D]: the array itself where all texts are in normal form.
    """
    data, bounds = text_buffers(text)
    changed: dict[int, bytes] = {}
    for row in np.flatnonzero(_with_composing(data, bounds, flags())).tolist():
        given = data[bounds[row] : bounds[row + 1]].tobytes().decode("utf-8")
        if (made := composed_text(given)) != given:
            changed[row] = made.encode()
    return replaced(text, changed), list(changed)


def replaced(text: pa.LargeStringArray, by: dict[int, bytes]) -> pa.LargeStringArray:
    """The texts with others, in UTF-8, in some rows (ascending)."""
    if not by:
        return text
    pieces, begin = [], 0
    for row, made in by.items():
        pieces += [text.slice(begin, row - begin), pa.array([made], pa.large_binary()).cast(pa.large_string())]
        begin = row + 1
    pieces.append(text.slice(begin))
    return pa.concat_arrays(pieces)


@inner
def _may_compose(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> bool:
    """Whether a composing character may begin at one of some bytes; without a branch, many at once."""
    found = np.uint8(0)
    for i in range(len(first)):
        a, b = first[i], second[i]
        marked = (
            (a == 0xCC)
            | (a == 0xCD)
            | ((a == 0xCE) & (b == 0x87))
            | ((a == 0xD2) & (b <= 0x87))
            | ((a >= 0xD6) & (a <= 0xE1))
            | ((a == 0xE2) & ((b >= 0x83) | (b == 0x80)))
            | ((a == 0xE3) & (b <= 0x82))
            | ((a == 0xEA) & (b <= 0xAF))
            | ((a == 0xEF) & (b >= 0xA4) & (b <= 0xB8))
            | (a == 0xF0)
        )
        found = np.uint8(found | np.uint8(marked))
    return found != 0


@inner(forceinline=True)
def _character(data: NDArray[np.uint8], i: int, end: int) -> Any:
    """Code point of the character of two bytes or more that begins at byte i; 0 if it is cut."""
    byte = np.int64(data[i])
    width = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
    if i + width > end:
        return np.int64(0)
    code = byte & (0x7F >> width)
    for k in range(1, width):
        code = code << 6 | np.int64(data[i + k] & 0x3F)
    return code


@kernel
def _with_composing(data: NDArray[np.uint8], bounds: NDArray[np.int64], flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether each text has a composing character."""
    found = np.zeros(len(bounds) - 1, np.bool_)
    for d in range(len(found)):
        first, end = bounds[d], bounds[d + 1]
        for begin in range(first, end, _BLOCK):
            after = min(begin + _BLOCK, end)
            if after + 1 <= len(data) and not _may_compose(data[begin:after], data[begin + 1 : after + 1]):
                continue
            for i in range(begin, after):
                if data[i] >= 0xC2:
                    code = _character(data, i, end)
                    if code < len(flags) and flags[code]:
                        found[d] = True
                        break
            if found[d]:
                break
    return found
