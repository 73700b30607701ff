"""Plain form of a text for the benchmark screen: one way to write what pages write in several.

Full-width forms, ligatures and mathematical letters become the letters they stand for, letters with combining marks are
composed, accents and quotation marks that stand for an apostrophe become one. All other differences of layout (case,
blanks, quotes, soft hyphens) are no difference to the word table. Only characters whose normalisation Unicode has fixed
for good are touched (UAX #15, stability), so that words do not change with the Python version.

Few texts have such characters: a compiled pass over the bytes finds those texts, and only they are rewritten.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

import numba
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.kernels.words import text_buffers

_REWRITTEN = re.compile(
    "[\uff01-\uff3f\uff41-\uff5e\ufb00-\ufb06\U0001d400-\U0001d7ff][\u0300-\u036f]*"
    "|[^\\W\\d_][\u0300-\u036f]+"
    "|(?<=[^\\W_])[`\uff40\u00b4\u2018\u201b\u02bc](?=[^\\W_])"
)
_APOSTROPHES = frozenset("`\uff40\u00b4\u2018\u201b\u02bc")


@dataclass(frozen=True)
class Rewritten:
    """Where the bytes of a plain form come from; R replaced places."""

    plain: NDArray[np.int64]
    """int64[R, 2]: first byte and byte after the last of what stands there now."""
    given: NDArray[np.int64]
    """int64[R, 2]: of what stood there."""

    def start(self, place: int) -> int:
        """Byte of the given text where what begins at a byte of the plain form begins."""
        i = int(np.searchsorted(self.plain[:, 0], place, side="right")) - 1
        if i < 0:
            return place
        if place < self.plain[i, 1]:
            return int(self.given[i, 0])
        return int(self.given[i, 1] + place - self.plain[i, 1])

    def stop(self, place: int) -> int:
        """Byte of the given text after what ends before a byte of the plain form."""
        i = int(np.searchsorted(self.plain[:, 0], place, side="left")) - 1
        if i < 0:
            return place
        return int(self.given[i, 1] + max(place - self.plain[i, 1], 0))


def plain_text(text: str) -> str:
    """Plain form of one text."""
    return _REWRITTEN.sub(lambda match: _instead(match.group()), text)


def plain(text: pa.LargeStringArray) -> tuple[pa.LargeStringArray, dict[int, Rewritten]]:
    """Plain forms of texts, and for those that differ where their bytes come from.

    Args:
        text: large_string[D] without nulls.

    Returns:
        large_string[D]: the array itself where no text has a character that is rewritten.
    """
    data, bounds = text_buffers(text)
    rows = np.flatnonzero(_marked(data, bounds)).tolist()
    changed: dict[int, tuple[str, Rewritten]] = {}
    for row in rows:
        made, places = _rewrite(text[row].as_py())
        if len(places.plain):
            changed[row] = made, places
    if not changed:
        return text, {}
    pieces, begin = [], 0
    for row, (made, _) in changed.items():
        pieces += [text.slice(begin, row - begin), pa.array([made], pa.large_string())]
        begin = row + 1
    pieces.append(text.slice(begin))
    return pa.concat_arrays(pieces), {row: places for row, (_, places) in changed.items()}


def _instead(found: str) -> str:
    return "'" if found in _APOSTROPHES else unicodedata.normalize("NFKC", found)


def _rewrite(text: str) -> tuple[str, Rewritten]:
    pieces, plain_places, given_places = [], [], []
    begin = at = to = 0  # characters done; bytes done on either side
    for match in _REWRITTEN.finditer(text):
        instead = _instead(match.group())
        if instead == match.group():
            continue
        between = text[begin : match.start()]
        width = len(between.encode())
        at, to = at + width, to + width
        given, made = len(match.group().encode()), len(instead.encode())
        given_places.append((at, at + given))
        plain_places.append((to, to + made))
        pieces += [between, instead]
        begin, at, to = match.end(), at + given, to + made
    pieces.append(text[begin:])
    places = (np.array(found, np.int64).reshape(-1, 2) for found in (plain_places, given_places))
    return "".join(pieces), Rewritten(*places)


@numba.njit(cache=True, nogil=True, inline="always")
def _wordlike(byte: int) -> bool:
    return byte >= 0x80 or 0x30 <= byte <= 0x39 or 0x41 <= byte <= 0x5A or 0x61 <= byte <= 0x7A


@numba.njit(cache=True, nogil=True)
def _marked(data: NDArray[np.uint8], bounds: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Texts that may have a character that is rewritten, by their bytes in UTF-8."""
    found = np.zeros(len(bounds) - 1, np.bool_)
    for d in range(len(bounds) - 1):
        first, end = bounds[d], bounds[d + 1]
        for i in range(first, end):
            byte = data[i]
            if byte < 0xC2 and byte != 0x60:
                continue
            second = data[i + 1] if i + 1 < end else 0
            third = data[i + 2] if i + 2 < end else 0
            before = i > first and _wordlike(data[i - 1])
            if (
                (byte == 0x60 and before and _wordlike(second))
                or (byte == 0xC2 and second == 0xB4 and before)  # U+00B4
                or (byte == 0xCA and second == 0xBC and before)  # U+02BC
                or byte == 0xCC  # U+0300 to U+033F
                or (byte == 0xCD and second < 0xB0)  # to U+036F
                or (byte == 0xE2 and second == 0x80 and (third == 0x98 or third == 0x9B) and before)  # U+2018, U+201B
                or (byte == 0xEF and second == 0xAC and third <= 0x86)  # U+FB00 to U+FB06
                or (byte == 0xEF and second == 0xBC and (third == 0x87 or 0x90 <= third <= 0x99))  # apostrophe, 0 to 9
                or (byte == 0xEF and second == 0xBC and 0xA1 <= third <= 0xBF)  # A to Z, underscore, full width
                or (byte == 0xEF and second == 0xBD and 0x80 <= third <= 0x9A)  # grave accent, a to z
                or (byte == 0xF0 and second == 0x9D and 0x90 <= third <= 0x9F)  # U+1D400 to U+1D7FF
            ):
                found[d] = True
                break
    return found
