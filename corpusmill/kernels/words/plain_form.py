"""Plain form of a text, in which duplicates are compared and benchmark items searched: one way to write what pages
write in several.

Normal form C first (composing.py). Then full-width forms, ligatures and mathematical letters become the letters they
stand for; accents and quotation marks that stand for an apostrophe become one. All other differences of layout (case,
blanks, quotes, soft hyphens) are no difference to the word table. Only characters whose normalisation Unicode has fixed
for good are touched (UAX #15, stability), so that words do not change with the Python version.

Few texts have such characters: a compiled pass over the bytes finds those texts, and only they are rewritten.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.compiled import inner, kernel
from corpusmill.kernels.words.composing import CLUSTER, composed, composed_text, replaced
from corpusmill.kernels.words.table import text_buffers

_APOSTROPHES = "`\uff40\uff07\u00b4\u2018\u201b\u02bc"
_REWRITTEN = re.compile(
    "[\uff10-\uff19\uff21-\uff3a\uff3f\uff41-\uff5a\ufb00-\ufb06\U0001d400-\U0001d7ff][\u0300-\u036f]*"
    f"|(?<=[^\\W_])[{_APOSTROPHES}](?=[^\\W_])"
    "|(?<=[0-9\uff10-\uff19])[\uff0c\uff0e](?=[0-9\uff10-\uff19])"
)
_BLOCK = 256
_BEFORE, _AFTER = 8, 12
"""Bytes around the beginning of a character within which its match lies, and what the match depends on."""


@dataclass(frozen=True)
class Rewritten:
    """Where the bytes of a plain form come from; R replaced places."""

    plain: NDArray[np.int64]
    """int64[R, 2]: first byte and byte after the last of what stands there now."""
    given: NDArray[np.int64]
    """int64[R, 2]: of what stood there."""
    before: Rewritten | None = None
    """Where the bytes of the given text come from, if it is itself a rewritten one."""

    def start(self, place: int) -> int:
        """Byte of the given text where what begins at a byte of the plain form begins."""
        return int(self.starts(np.array([place]))[0])

    def stop(self, place: int) -> int:
        """Byte of the given text after what ends before a byte of the plain form."""
        return int(self.stops(np.array([place]))[0])

    def starts(self, places: NDArray[Any]) -> NDArray[Any]:
        """`start` of each of some places."""
        i = np.searchsorted(self.plain[:, 0], places, side="right") - 1
        if not len(self.plain):
            return self.before.starts(places) if self.before else places
        (first, after), end = self.given[i].T, self.plain[i, 1]
        found = np.where(i < 0, places, np.where(places < end, first, after + places - end))
        return self.before.starts(found) if self.before else found

    def stops(self, places: NDArray[Any]) -> NDArray[Any]:
        """`stop` of each of some places."""
        i = np.searchsorted(self.plain[:, 0], places, side="left") - 1
        if not len(self.plain):
            return self.before.stops(places) if self.before else places
        found = np.where(i < 0, places, self.given[i, 1] + np.maximum(places - self.plain[i, 1], 0))
        return self.before.stops(found) if self.before else found


class Changed(Mapping[int, Rewritten]):
    """Where the bytes of the plain forms that differ come from, by row; of composed texts found out on demand."""

    def __init__(self, text: pa.LargeStringArray, rows: Iterable[int], later: Mapping[int, Rewritten]) -> None:
        """`rows` of the text were composed first; then, by `later`, some rows were rewritten."""
        self._text, self._composed, self._later = text, frozenset(rows), later

    def __getitem__(self, row: int) -> Rewritten:
        if row not in self._composed:
            return self._later[row]
        given = self._text[row].as_py()
        _, where = _replaced(given.encode(), [(0, given)], CLUSTER, _composed)
        return replace(self._later[row], before=where) if row in self._later else where

    def places(self, offsets: NDArray[np.int64], start: NDArray[Any], end: NDArray[Any]) -> None:
        """Turn bytes of the plain forms into those of the texts as they were given, in place.

        Args:
            offsets: int64[D + 1]; what is in text d has places offsets[d] to offsets[d + 1].
            start, end: first byte and byte after the last of each.
        """
        for row in self:
            here, where = slice(offsets[row], offsets[row + 1]), self[row]
            start[here], end[here] = where.starts(start[here]), where.stops(end[here])

    def __iter__(self) -> Iterator[int]:
        return iter(sorted({*self._composed, *self._later}))

    def __len__(self) -> int:
        return len({*self._composed, *self._later})


def plain_text(text: str) -> str:
    """Plain form of one text."""
    return _REWRITTEN.sub(lambda match: _instead(match.group()), composed_text(text))


def plain(text: pa.LargeStringArray) -> tuple[pa.LargeStringArray, Changed]:
    """Plain forms of texts, and for those that differ where their bytes come from.

    Args:
        text: large_string[D] without nulls.

    Returns:
        large_string[D]: the array itself where no text has a character that is rewritten.
    """
    made, rows = composed(text)
    data, bounds = text_buffers(made)
    forms: dict[int, bytes] = {}
    places: dict[int, Rewritten] = {}
    with_candidates, candidates = _candidates(data, bounds)
    for row, begin, end in runs_of(with_candidates):
        given = data[bounds[row] : bounds[row + 1]].tobytes()
        pieces = ((low, given[low:high].decode()) for low, high in _windows(given, candidates[begin:end].tolist()))
        form, where = _replaced(given, pieces, _REWRITTEN, _instead)
        if len(where.plain):
            forms[row], places[row] = form, where
    return replaced(made, forms), Changed(text, rows, places)


def runs_of(numbers: NDArray[np.int64]) -> list[tuple[int, int, int]]:
    """Each number of an ascending array, with the place of its first and after its last."""
    edges = np.flatnonzero(np.diff(numbers, prepend=-1, append=-1)) if len(numbers) else np.zeros(1, np.int64)
    return [(int(numbers[begin]), begin, end) for begin, end in pairwise(edges.tolist())]


def _instead(found: str) -> str:
    return "'" if found in _APOSTROPHES else unicodedata.normalize("NFKC", found)


def _composed(found: str) -> str:
    return unicodedata.normalize("NFC", found)


def _replaced(
    given: bytes, pieces: Iterable[tuple[int, str]], pattern: re.Pattern[str], instead: Callable[[str], str]
) -> tuple[bytes, Rewritten]:
    """A text with what matches in some pieces of it replaced; a piece is its first byte and what stands there."""
    parts, plain_places, given_places = [], [], []
    at = shift = 0  # bytes done; how many more they have become
    for low, piece in pieces:
        place, done = low, 0  # bytes and characters of the piece looked at
        for match in pattern.finditer(piece):
            begin = place + len(piece[done : match.start()].encode())
            end = begin + len(match.group().encode())
            place, done = end, match.end()
            found = match.group()
            new = instead(found)
            if new == found:
                continue
            if new[:1] == found[:1]:  # what stands before a character that alone becomes another, as a line feed
                begin, new = begin + len(new[0].encode()), new[1:]
            made = new.encode()
            parts += [given[at:begin], made]
            given_places.append((begin, end))
            plain_places.append((begin + shift, begin + shift + len(made)))
            at, shift = end, shift + len(made) - (end - begin)
    parts.append(given[at:])
    now, then = (np.array(found, np.int64).reshape(-1, 2) for found in (plain_places, given_places))
    return b"".join(parts), Rewritten(now, then)


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


@inner(forceinline=True)
def _wordlike(byte: Any) -> bool:
    return byte >= 0x80 or 0x30 <= byte <= 0x39 or 0x41 <= byte <= 0x5A or 0x61 <= byte <= 0x7A


@inner
def _suspect(first: NDArray[np.uint8], second: NDArray[np.uint8], third: NDArray[np.uint8]) -> bool:
    """Whether a character that is rewritten may begin at one of some bytes; without a branch, many at once."""
    found = np.uint8(0)
    for i in range(len(first)):
        a, b, c = first[i], second[i], third[i]
        marked = (
            (a == 0x60)
            | ((a == 0xC2) & (b == 0xB4))
            | ((a == 0xCA) & (b == 0xBC))
            | ((a == 0xE2) & (b == 0x80) & ((c == 0x98) | (c == 0x9B)))
            | ((a == 0xEF) & (b >= 0xAC) & (b <= 0xBD))
            | ((a == 0xF0) & (b == 0x9D))
        )
        found = np.uint8(found | np.uint8(marked))
    return found != 0


@inner
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
    if not (i > first and _wordlike(data[i - 1])):
        return False
    return (
        (byte == 0x60 and _wordlike(second))
        or (byte == 0xC2 and second == 0xB4)  # U+00B4
        or (byte == 0xCA and second == 0xBC)  # U+02BC
        or (byte == 0xE2 and second == 0x80 and (third == 0x98 or third == 0x9B))  # U+2018, U+201B
    )


@kernel
def _candidates(data: NDArray[np.uint8], bounds: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Text, and byte within it, of every character that may be rewritten, by its bytes in UTF-8."""
    rows, places, count = np.empty(64, np.int64), np.empty(64, np.int64), 0
    for d in range(len(bounds) - 1):
        first, end = bounds[d], bounds[d + 1]
        for begin in range(first, end, _BLOCK):
            after = min(begin + _BLOCK, end)
            if after + 2 <= len(data) and not _suspect(
                data[begin:after], data[begin + 1 : after + 1], data[begin + 2 : after + 2]
            ):
                continue
            for i in range(begin, after):
                if (data[i] >= 0xC2 or data[i] == 0x60) and _begins(data, first, i, end):
                    if count == len(rows):
                        rows, places = np.append(rows, rows), np.append(places, places)
                    rows[count], places[count] = d, i - first
                    count += 1
    return rows[:count].copy(), places[:count].copy()
