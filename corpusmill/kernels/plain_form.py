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
from typing import Any

import numba
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.kernels.words import text_buffers

_APOSTROPHES = "`\uff40\uff07\u00b4\u2018\u201b\u02bc"
_REWRITTEN = re.compile(
    "[\uff10-\uff19\uff21-\uff3a\uff3f\uff41-\uff5a\ufb00-\ufb06\U0001d400-\U0001d7ff][\u0300-\u036f]*"
    "|[^\\W\\d_][\u0300-\u036f]+"
    f"|(?<=[^\\W_])[{_APOSTROPHES}](?=[^\\W_])"
    "|(?<=[0-9\uff10-\uff19])[\uff0c\uff0e](?=[0-9\uff10-\uff19])"
)
_BEFORE, _AFTER = 8, 12
"""Bytes around the beginning of a character within which its match lies, and what the match depends on."""


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
    changed: dict[int, tuple[bytes, Rewritten]] = {}
    for number in np.flatnonzero(_marked(data, bounds)).tolist():
        first, end = int(bounds[number]), int(bounds[number + 1])
        made, places = _rewrite(data[first:end].tobytes(), _candidates(data, first, end).tolist())
        if len(places.plain):
            changed[number] = made, places
    if not changed:
        return text, {}
    pieces, begin = [], 0
    for number, (made, _) in changed.items():
        pieces += [text.slice(begin, number - begin), pa.array([made], pa.large_binary()).cast(pa.large_string())]
        begin = number + 1
    pieces.append(text.slice(begin))
    return pa.concat_arrays(pieces), {number: places for number, (_, places) in changed.items()}


def _instead(found: str) -> str:
    return "'" if found in _APOSTROPHES else unicodedata.normalize("NFKC", found)


def _rewrite(given: bytes, candidates: list[int]) -> tuple[bytes, Rewritten]:
    """The plain form of a text in which characters that are rewritten may only begin at some bytes."""
    pieces, plain_places, given_places = [], [], []
    at = shift = 0  # bytes done; how many more they have become
    for low, high in _windows(given, candidates):
        piece = given[low:high].decode("utf-8")
        for match in _REWRITTEN.finditer(piece):
            instead = _instead(match.group()).encode()
            begin = low + len(piece[: match.start()].encode())
            end = begin + len(match.group().encode())
            if instead == given[begin:end]:
                continue
            pieces += [given[at:begin], instead]
            given_places.append((begin, end))
            plain_places.append((begin + shift, begin + shift + len(instead)))
            at, shift = end, shift + len(instead) - (end - begin)
    pieces.append(given[at:])
    places = (np.array(found, np.int64).reshape(-1, 2) for found in (plain_places, given_places))
    return b"".join(pieces), Rewritten(*places)


def _windows(given: bytes, candidates: list[int]) -> list[tuple[int, int]]:
    """Bytes around the candidates, whole characters, what overlaps or touches united."""
    windows: list[tuple[int, int]] = []
    for place in candidates:
        low, high = max(place - _BEFORE, 0), min(place + _AFTER, len(given))
        while low > 0 and given[low] & 0xC0 == 0x80:
            low -= 1
        while high < len(given) and given[high] & 0xC0 == 0x80:
            high += 1
        if windows and low <= windows[-1][1]:
            windows[-1] = windows[-1][0], high
        else:
            windows.append((low, high))
    return windows


@numba.njit(cache=True, nogil=True, inline="always")
def _wordlike(byte: Any) -> bool:
    return byte >= 0x80 or 0x30 <= byte <= 0x39 or 0x41 <= byte <= 0x5A or 0x61 <= byte <= 0x7A


@numba.njit(cache=True, nogil=True)
def _suspect(block: NDArray[np.uint8]) -> bool:
    """Whether a character that is rewritten may begin at one of some bytes; without a branch, many at once."""
    found = np.uint8(0)
    for i in range(len(block)):
        found |= np.uint8(block[i] >= np.uint8(0xC2)) | np.uint8(block[i] == np.uint8(0x60))
    return found != 0


@numba.njit(cache=True, nogil=True)
def _begins(data: NDArray[np.uint8], first: int, i: int, end: int) -> Any:
    """Whether a character that is rewritten may begin at byte i of the text from `first` to `end`."""
    byte = data[i]
    second = data[i + 1] if i + 1 < end else np.uint8(0)
    third = data[i + 2] if i + 2 < end else np.uint8(0)
    if byte == 0xEF:
        return (
            (second == 0xAC and third <= 0x86)  # U+FB00 to U+FB06
            or (second == 0xBC and (0x90 <= third <= 0x99 or 0xA1 <= third <= 0xBA or third == 0xBF))  # 0-9 A-Z _
            or (second == 0xBC and (third == 0x87 or third == 0x8C or third == 0x8E) and i > first)  # apostrophe , .
            or (second == 0xBD and 0x80 <= third <= 0x9A)  # grave accent, a to z, full width
        )
    if byte == 0xF0:
        return second == 0x9D and 0x90 <= third <= 0x9F  # U+1D400 to U+1D7FF
    if byte == 0xCC or byte == 0xCD:
        return byte == 0xCC or second < 0xB0  # U+0300 to U+036F
    if not (i > first and _wordlike(data[i - 1])):
        return False
    return (
        (byte == 0x60 and _wordlike(second))
        or (byte == 0xC2 and second == 0xB4)  # U+00B4
        or (byte == 0xCA and second == 0xBC)  # U+02BC
        or (byte == 0xE2 and second == 0x80 and (third == 0x98 or third == 0x9B))  # U+2018, U+201B
    )


@numba.njit(cache=True, nogil=True)
def _marked(data: NDArray[np.uint8], bounds: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Texts with a character that may be rewritten, by its bytes in UTF-8."""
    found = np.zeros(len(bounds) - 1, np.bool_)
    for d in range(len(bounds) - 1):
        first, end = bounds[d], bounds[d + 1]
        for begin in range(first, end, 64):
            after = min(begin + 64, end)
            if not _suspect(data[begin:after]):
                continue
            for i in range(begin, after):
                if (data[i] >= 0xC2 or data[i] == 0x60) and _begins(data, first, i, end):
                    found[d] = True
                    break
            if found[d]:
                break
    return found


@numba.njit(cache=True, nogil=True)
def _candidates(data: NDArray[np.uint8], first: int, end: int) -> NDArray[np.int64]:
    """Bytes of one text at which a character begins that may be rewritten."""
    found, count = np.empty(end - first, np.int64), 0
    for i in range(first, end):
        if (data[i] >= 0xC2 or data[i] == 0x60) and _begins(data, first, i, end):
            found[count] = i - first
            count += 1
    return found[:count].copy()
