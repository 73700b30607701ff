"""Words in lines that shout or are one word, and in web addresses: RefinedWeb's rule on lines, as a share of the page.

RefinedWeb (Penedo et al. 2023, arXiv:2306.01116, G.2) discards lines that are mainly capitals, only digits, a counter
or one word, and the page where that takes more than 5 % of its words. Here nothing is cut. As rules/dclm.toml counts
what it removes: a line of one word has no blank in it, words are those of the word table (an address is several), and
addresses are counted in other lines too. A line of digits is one word. Counters ("3 likes"), three phrases of menus and
addresses without a scheme are left out: no page of the mini-crawl falls by them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from corpusmill.compiled import kernel
from corpusmill.kernels.bytes.bytehash import U, address_of, load8
from corpusmill.kernels.bytes.bytemasks import bit_count, block, in_span
from corpusmill.kernels.bytes.bytescan import find_byte
from corpusmill.kernels.bytes.unicode_table import UPPER, load_table
from corpusmill.kernels.bytes.utf8 import decode
from corpusmill.kernels.words.table import IS_WORD, text_buffers

if TYPE_CHECKING:
    from corpusmill.kernels.measures.slices import Slice

MEASURES = {
    "refinedweb_noisy_word_ratio": {
        "family": "refinedweb",
        "definition": "refinedweb",
        "of": "noisy_words / line_words",
        "says": "words of lines that are one word or mainly capitals, and of addresses with a scheme",
    },
}

COUNTS = ("noisy_words", "line_words")
"""Columns of `count`."""

_UPPER, _WORD, _FEED = U(UPPER), U(IS_WORD), U(0x0A)
_SLASH, _COLON = U(ord("/")), U(ord(":"))


def count(piece: Slice) -> NDArray[np.int64]:
    """Counts of each document, int64[D, len(COUNTS)]."""
    data, bounds = text_buffers(piece.text)
    counts = np.zeros((len(piece.text), len(COUNTS)), np.int64)
    table = piece.table
    _count(
        address_of(data), bounds, address_of(load_table()), table.offsets, table.start, table.stop, table.flags, counts
    )
    return counts


@kernel
def _mainly_capitals(line: U, stop: U, table: U) -> Any:
    """Whether more than half of the characters of a line are capitals. ASCII by blocks; character by character only
    where others, of two bytes or more each, could make it so."""
    upper, high, at = U(0), U(0), line
    while at < stop:
        place, shift, keep = block(at, stop)
        upper += bit_count((in_span(place, U(0), U(0x41), U(26)) >> shift) & keep)
        high += bit_count((in_span(place, U(0), U(0x80), U(0x80)) >> shift) & keep)
        at += U(64)
    chars = stop - line
    if high == U(0) or U(4) * upper + U(3) * high <= U(2) * chars:
        return U(2) * upper > chars
    chars, upper, at = U(0), U(0), line
    while at < stop:
        _, entry, width = decode(at, stop, table)
        upper += U(entry & _UPPER != U(0))
        chars += U(1)
        at += width
    return U(2) * upper > chars


@kernel
def _count(
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
        t, last, line, noisy, total = U(offsets[d]), U(offsets[d + 1]), text, U(0), U(0)
        while t < last:
            line_end = find_byte(line, end, _FEED)
            size, words, pieces, before = line_end - text, U(0), U(0), U(0xFFFFFFFF)
            within, addresses, address = (
                U(0),
                U(0),
                U(0),
            )  # words since the last blank; in addresses; all bits: it is one
            while t < last and U(start[t]) < size:
                gap = U(U(start[t]) != before)
                addresses += within & address & (U(0) - gap)
                within, address = within & (gap - U(1)), address & (gap - U(1))
                pieces += gap  # words between blanks
                before = U(stop[t])
                word = U(flags[t] & _WORD != U(0))
                within += word
                words += word
                at = text + U(start[t])
                if word == U(0) and gap == U(0) and load8(at) == _SLASH and before - U(start[t]) == U(2):
                    address |= U(0) - U(within > U(0) and load8(at - U(1)) == _COLON)
                t += U(1)
            addresses += within & address
            if pieces == U(1) or (words > U(0) and _mainly_capitals(line, line_end, table)):
                noisy += words
            else:
                noisy += addresses
            total += words
            line = line_end + U(1)
        counts[d, 0], counts[d, 1] = noisy, total
