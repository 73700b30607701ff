"""Line and character counts of code: The Stack, RedPajama 1 and StarCoder 2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from corpusmill.compiled import inner, kernel
from corpusmill.kernels.bytes.blanks import line_break, starts_with
from corpusmill.kernels.bytes.bytehash import U, address_of, load8
from corpusmill.kernels.bytes.unicode_table import ALPHA, KIND_SHIFT, Kind, load_table
from corpusmill.kernels.bytes.utf8 import decode
from corpusmill.kernels.words.table import text_buffers

if TYPE_CHECKING:
    from corpusmill.kernels.measures.slices import Slice

MEASURES = {
    "code_mean_line_chars": {
        "family": "code",
        "definition": "code",
        "of": "code_line_chars / code_lines",
        "says": "mean characters of a line",
    },
    "code_max_line_chars": {
        "family": "code",
        "definition": "code",
        "of": "code_longest_line",
        "says": "characters of the longest line",
    },
    "code_alnum_ratio": {
        "family": "code",
        "definition": "code",
        "of": "code_alnum / code_chars",
        "says": "letters and numbers, of all characters",
    },
    "code_letters_per_token": {
        "family": "code",
        "definition": "code",
        "of": "code_letters / tokens",
        "says": "letters per token",
    },
    "code_encoded_ratio": {
        "family": "code",
        "definition": "code",
        "of": "code_encoded / code_chars",
        "says": "characters in runs of 64 and more letters of base64",
    },
    "code_xml": {
        "family": "code",
        "definition": "code",
        "of": "code_xml",
        "says": "1: the text begins as XML",
    },
}

COUNTS = (
    "code_chars",
    "code_lines",  # str.splitlines
    "code_line_chars",  # of all lines, breaks left out
    "code_longest_line",  # its characters
    "code_alnum",  # letters and numbers
    "code_letters",
    "code_encoded",  # characters in runs of at least ENCODED_RUN of base64's letters
    "code_xml",  # "<?xml version=" within the first 100 characters
)
"""Columns of `count`."""

ENCODED_RUN = 64
"""StarCoder 2 looks for runs of base64 and hexadecimal digits from this length on."""

_XML = np.frombuffer(b"<?xml version=", np.uint8)
_XML_WITHIN = U(100)
_ALPHA, _SHIFT = U(ALPHA), U(KIND_SHIFT)
_KIND_WORD, _KIND_SINGLE = U(Kind.WORD), U(Kind.SINGLE)
_LESS = U(ord("<"))
_RUN = U(ENCODED_RUN)


def count(piece: Slice) -> NDArray[np.int64]:
    """Counts of each document, int64[D, len(COUNTS)]."""
    data, bounds = text_buffers(piece.text)
    counts = np.zeros((len(piece.text), len(COUNTS)), np.int64)
    unicode = load_table()
    _count_code(address_of(data), bounds, address_of(unicode), address_of(_XML), U(len(_XML)), counts)
    return counts


@inner
def _encoded(code: U) -> Any:
    """Letters and digits of ASCII, "+", "/", "="."""
    letter = U(0x61) <= (code | U(0x20)) <= U(0x7A) and code < U(0x80)
    return letter or U(0x30) <= code <= U(0x39) or code in (U(0x2B), U(0x2F), U(0x3D))


@kernel
def _count_code(data: U, bounds: NDArray[np.int64], table: U, xml: U, size: U, counts: NDArray[np.int64]) -> None:
    for d in range(len(bounds) - 1):
        at, end = data + U(bounds[d]), data + U(bounds[d + 1])
        chars, lines, line_chars, longest, alnum, letters = U(0), U(0), U(0), U(0), U(0), U(0)
        encoded, run, line, found = U(0), U(0), U(0), 0
        open_line = False
        while at < end:
            width = U(0)
            byte = load8(at)
            if byte < U(0x20) or byte >= U(0xC2):
                width = line_break(at, end)
            if width > U(0):
                lines += U(1)
                longest = max(longest, line)
                line, open_line = U(0), False
                encoded += run if run >= _RUN else U(0)
                run = U(0)
                i = U(0)
                while i < width:  # CR LF is two characters, other breaks are one
                    chars += U(load8(at + i) & U(0xC0) != U(0x80))
                    i += U(1)
                at += width
                continue
            if byte == _LESS and chars <= _XML_WITHIN - size and starts_with(at, end, xml, size):
                found = 1
            code, entry, width = decode(at, end, table)
            kind = (entry >> _SHIFT) & U(7)
            letter = U(entry & _ALPHA != U(0))
            letters += letter
            alnum += letter | U(kind == _KIND_WORD) | U(kind == _KIND_SINGLE)
            if _encoded(code):
                run += U(1)
            else:
                encoded += run if run >= _RUN else U(0)
                run = U(0)
            chars += U(1)
            line_chars += U(1)
            line += U(1)
            open_line = True
            at += width
        encoded += run if run >= _RUN else U(0)
        longest = max(longest, line)
        counts[d, 0], counts[d, 1], counts[d, 2], counts[d, 3] = chars, lines + U(open_line), line_chars, longest
        counts[d, 4], counts[d, 5], counts[d, 6], counts[d, 7] = alnum, letters, encoded, found
