"""Counts over the characters of texts that NeMo Curator's filters and DCLM's symbol ratio look at."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.compiled import inner, kernel
from corpusmill.kernels.bytes.blanks import lower, starts_with, starts_with_lower
from corpusmill.kernels.bytes.bytehash import U, address_of, load8
from corpusmill.kernels.bytes.unicode_table import DIGIT, load_table
from corpusmill.kernels.bytes.utf8 import decode
from corpusmill.kernels.words.table import text_buffers

CHAR_COUNTS = (
    "nemo_alnum",  # a-z A-Z 0-9, line feed, ? ! , .
    "digits",  # decimal digits of any script
    "url_chars",  # of http:// and https:// with what may follow
    "spaces",  # blank, tab, line feed, carriage return, backspace
    "brackets",  # ( ) [ ] { } ⟨ ⟩
    "spaced_dots",  # ". . ."
    "lorem_ipsum",  # in either case
    "boilerplate",  # paragraphs (cut at two line feeds) with a phrase about policies or cookies
)
"""Columns of `count_chars`."""

POLICIES = (
    "terms of use",
    "privacy policy",
    "cookie policy",
    "uses cookies",
    "privacy overview",
    "use of cookies",
    "use cookies",
    "privacy & cookies policy",
    "privacy and cookies policy",
)
"""NeMo's phrases but for five whole sentences of one cookie banner."""

_STRINGS = (*POLICIES, "lorem ipsum", ". . .", "http://", "https://")
_LOREM, _DOTS, _HTTP, _HTTPS = range(len(POLICIES), len(_STRINGS))
_POLICIES = len(POLICIES)
_DIGIT, _FEED, _BLANK = U(DIGIT), U(0x0A), U(0x20)
_BEGINS = frozenset(string[0] for string in _STRINGS)
_OPEN, _CLOSE = U(0x27E8), U(0x27E9)


def count_chars(text: pa.LargeStringArray) -> NDArray[np.int64]:
    """Counts of each document, int64[D, len(CHAR_COUNTS)]."""
    data, bounds = text_buffers(text)
    counts = np.zeros((len(text), len(CHAR_COUNTS)), np.int64)
    table, (items, blob, begins) = load_table(), _strings()
    _count(address_of(data), bounds, address_of(table), items, address_of(blob), address_of(begins), counts)
    return counts


@cache
def _strings() -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.uint8]]:
    """Place and size of each string, the strings, and which bytes may begin one (uint8[256])."""
    encoded = [string.encode() for string in _STRINGS]
    sizes = np.array([len(string) for string in encoded], np.int64)
    begins = np.array([chr(byte).lower() in _BEGINS if byte < 128 else False for byte in range(256)], np.uint8)
    return np.stack([np.cumsum(sizes) - sizes, sizes], axis=1), np.frombuffer(b"".join(encoded), np.uint8), begins


@inner
def _in_url(byte: U) -> Any:
    """What NeMo's expression lets into an address: "$" to "_", "!", small letters."""
    return U(0x24) <= byte <= U(0x5F) or byte == U(0x21) or U(0x61) <= byte <= U(0x7A)


@inner
def _plain(byte: U) -> Any:
    letter = U(0x61) <= lower(byte) <= U(0x7A)
    return letter or U(0x30) <= byte <= U(0x39) or byte in (_FEED, U(0x3F), U(0x21), U(0x2C), U(0x2E))


@inner
def _bracket(code: U) -> Any:
    ascii_bracket = code in (U(0x28), U(0x29), U(0x5B), U(0x5D), U(0x7B), U(0x7D))
    return ascii_bracket or code in (_OPEN, _CLOSE)


@kernel
def _count(
    data: U,
    bounds: NDArray[np.int64],
    table: U,
    items: NDArray[np.int64],
    blob: U,
    begins: U,
    counts: NDArray[np.int64],
) -> None:
    for d in range(len(bounds) - 1):
        at, end = data + U(bounds[d]), data + U(bounds[d + 1])
        row = counts[d]
        url_end, dots_end = at, at
        found = False  # a phrase in this paragraph
        while at < end:
            byte = load8(at)
            if load8(begins + byte) != U(0):
                k = 0
                while not found and k < _POLICIES:
                    found = starts_with_lower(at, end, blob + U(items[k, 0]), U(items[k, 1]))
                    row[7] += found
                    k += 1
                row[6] += starts_with_lower(at, end, blob + U(items[_LOREM, 0]), U(items[_LOREM, 1]))
                if at >= dots_end and starts_with(at, end, blob + U(items[_DOTS, 0]), U(items[_DOTS, 1])):
                    row[5] += 1
                    dots_end = at + U(items[_DOTS, 1])
                for k in range(_HTTP, _HTTPS + 1):
                    size = U(items[k, 1])
                    if at >= url_end and starts_with(at, end, blob + U(items[k, 0]), size):
                        after = at + size
                        while after < end and _in_url(load8(after)):
                            after += U(1)
                        if after > at + size:
                            row[2] += int(after - at)
                            url_end = after
            if byte == _FEED and at + U(1) < end and load8(at + U(1)) == _FEED:
                found = False
                row[0] += 1
                row[3] += 1
                at += U(1)  # the second one too
            code, entry, width = decode(at, end, table)
            row[0] += code < U(0x80) and _plain(code)
            row[1] += entry & _DIGIT != U(0)
            row[3] += code == _BLANK or U(0x08) <= code <= U(0x0A) or code == U(0x0D)
            row[4] += _bracket(code)
            at += width
