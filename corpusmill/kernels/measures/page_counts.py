"""Counts over whole texts: sentences, curly brackets, "lorem ipsum" (C4).

A sentence, on the tokens of the word table: it ends at a full stop, or at a run of another end mark (unicode_table),
where white space follows, after closing marks too; marks beyond ASCII ("。") need no white space. The next word begins
another. A line break (`str.splitlines`) ends a sentence. "..." and "…" end none. So "e.g. this" is two, "U.S. law" two
as well, "3.5" and "example.org" none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from corpusmill.compiled import inner, kernel
from corpusmill.kernels.bytes.blanks import line_break, starts_with_lower
from corpusmill.kernels.bytes.bytehash import U, address_of, load8, load32
from corpusmill.kernels.bytes.bytemasks import bit_count, block, in_span, lowest_bit
from corpusmill.kernels.bytes.unicode_table import END_MARK, load_table
from corpusmill.kernels.bytes.utf8 import decode
from corpusmill.kernels.words.table import IS_WORD, text_buffers

if TYPE_CHECKING:
    from corpusmill.kernels.measures.slices import Slice

MEASURES = {
    "sentence_count": {"family": "page", "definition": "datatrove", "of": "sentences", "says": "sentences"},
    "curly_bracket_count": {"family": "page", "definition": "datatrove", "of": "curly_brackets", "says": "`{`"},
    "lorem_ipsum_count": {
        "family": "page",
        "definition": "datatrove",
        "of": "lorem_ipsums",
        "says": '"lorem ipsum" in either case, not overlapping',
    },
}

COUNTS = (
    "sentences",
    "curly_brackets",  # "{"
    "lorem_ipsums",  # in either case, not overlapping
)
"""Columns of `count_page`."""

_LOREM = np.frombuffer(b"lorem ipsum", np.uint8)
_WORD = U(IS_WORD)
_END = U(END_MARK)
_STOP, _CURLY, _L, _O, _R = (U(ord(c)) for c in ".{lor")
_SPACE = U(0x20)
_SMALL = U(0x20)
_LAST, _LAST_TWO = U(1 << 63), U(3 << 62)  # what follows the last bytes of a block is not known yet


def count(piece: Slice) -> NDArray[np.int64]:
    """Counts of each document, int64[D, len(COUNTS)]."""
    table = piece.table
    data, bounds = text_buffers(piece.text)
    counts = np.zeros((len(table), len(COUNTS)), np.int64)
    unicode = load_table()
    _count_sentences(
        address_of(data), bounds, address_of(unicode), table.offsets, table.start, table.stop, table.flags, counts
    )
    _count_page(address_of(data), bounds, address_of(_LOREM), U(len(_LOREM)), counts)
    return counts


@inner
def _breaks_line(at: U, to: U, end: U) -> bool:
    while at < to:
        byte = load8(at)
        if (byte < U(0x20) or byte >= U(0xC2)) and line_break(at, end) > U(0):
            return True
        at += U(1)
    return False


@kernel
def _count_sentences(
    data: U,
    bounds: NDArray[np.int64],
    table: U,
    offsets: NDArray[np.int64],
    start: NDArray[np.int32],
    stop: NDArray[np.int32],
    flags: NDArray[np.uint8],
    counts: NDArray[np.int64],
) -> None:
    for d in range(len(bounds) - 1):
        text, end = data + U(bounds[d]), data + U(bounds[d + 1])
        sentences, marked, gap_needed, last = U(0), U(0), U(0), U(0)
        begun = U(0)  # the line has a token already
        t, after = U(offsets[d]), U(offsets[d + 1])
        while t < after:  # almost without branches: what a token is cannot be foretold
            at, to = U(start[t]), U(stop[t])
            gap = U(at > last)
            plain = U(at == last + U(1)) & U(load8(text + last) == _SPACE)  # most gaps are one space
            if begun & gap & ~plain != U(0) and _breaks_line(text + last, text + at, end):
                begun = U(0)
            word = U(flags[t] & _WORD != U(0))
            first = begun ^ U(1)
            sentences += first | (word & marked & (gap | (gap_needed ^ U(1))))
            marked &= begun & (word ^ U(1))
            begun = U(1)
            code, width = load8(text + at), U(1)
            entry = load32(table + U(4) * code)
            if code >= U(0x80) and word == U(0):
                code, entry, width = decode(text + at, end, table)
            ends = U(entry & _END != U(0)) & (word ^ U(1)) & (U(code != _STOP) | U(to - at <= width))
            gap_needed = (ends & U(code < U(0x80))) | (gap_needed & (ends ^ U(1)) & (gap ^ U(1)))
            marked |= ends
            last = to
            t += U(1)
        counts[d, 0] = sentences


@kernel
def _count_page(data: U, bounds: NDArray[np.int64], lorem: U, size: U, counts: NDArray[np.int64]) -> None:
    for d in range(len(bounds) - 1):
        at, end = data + U(bounds[d]), data + U(bounds[d + 1])
        curly, ipsums, done = U(0), 0, at
        while at < end:
            place, shift, keep = block(at, end)
            curly += bit_count((in_span(place, U(0), _CURLY, U(1)) >> shift) & keep)
            found = in_span(place, _SMALL, _L, U(1)) & (in_span(place, _SMALL, _O, U(1)) >> U(1) | _LAST)
            found &= in_span(place, _SMALL, _R, U(1)) >> U(2) | _LAST_TWO
            found = (found >> shift) & keep
            while found != U(0):
                i = at + lowest_bit(found)
                found &= found - U(1)
                if i >= done and starts_with_lower(i, end, lorem, size):
                    ipsums += 1
                    done = i + size
            at += U(64)
        counts[d, 1], counts[d, 2] = curly, ipsums
