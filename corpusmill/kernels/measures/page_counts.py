"""Counts over whole texts: sentences, curly brackets, "lorem ipsum" (C4), line and character counts of code.

A sentence, on the tokens of the word table: it ends at a full stop, or at a run of another end mark (unicode_table),
where white space follows, after closing marks too; marks beyond ASCII ("。") need no white space. The next word begins
another. A line break (`str.splitlines`) ends a sentence. "..." and "…" end none. So "e.g. this" is two, "U.S. law" two
as well, "3.5" and "example.org" none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.compiled import kernel
from corpusmill.kernels.bytes.blanks import line_break, starts_with, starts_with_lower
from corpusmill.kernels.bytes.bytehash import U, address_of, load8, load32
from corpusmill.kernels.bytes.bytemasks import bit_count, block, in_span, lowest_bit
from corpusmill.kernels.bytes.unicode_table import ALPHA, END_MARK, KIND_SHIFT, Kind, load_table
from corpusmill.kernels.bytes.utf8 import decode
from corpusmill.kernels.words.table import IS_WORD, WordTable, text_buffers

PAGE_COUNTS = (
    "sentences",
    "curly_brackets",  # "{"
    "lorem_ipsums",  # in either case, not overlapping
)
"""Columns of `count_page`."""

CODE_COUNTS = (
    "code_chars",
    "code_lines",  # str.splitlines
    "code_line_chars",  # of all lines, breaks left out
    "code_longest_line",  # its characters
    "code_alnum",  # letters and numbers
    "code_letters",
    "code_encoded",  # characters in runs of at least ENCODED_RUN of base64's letters
    "code_xml",  # "<?xml version=" within the first 100 characters
)
"""Columns of `count_code`."""

ENCODED_RUN = 64
"""StarCoder 2 looks for runs of base64 and hexadecimal digits from this length on."""

_LOREM = np.frombuffer(b"lorem ipsum", np.uint8)
_XML = np.frombuffer(b"<?xml version=", np.uint8)
_XML_WITHIN = U(100)
_WORD = U(IS_WORD)
_END, _ALPHA, _SHIFT = U(END_MARK), U(ALPHA), U(KIND_SHIFT)
_KIND_WORD, _KIND_SINGLE = U(Kind.WORD), U(Kind.SINGLE)
_STOP, _CURLY, _L, _O, _R, _LESS = (U(ord(c)) for c in ".{lor<")
_SPACE = U(0x20)
_SMALL = U(0x20)
_LAST, _LAST_TWO = U(1 << 63), U(3 << 62)  # what follows the last bytes of a block is not known yet
_RUN = U(ENCODED_RUN)


def count_page(text: pa.LargeStringArray, table: WordTable) -> NDArray[np.int64]:
    """Counts of each document, int64[D, len(PAGE_COUNTS)].

    Args:
        text: large_string[D] without nulls. table: its words.
    """
    data, bounds = text_buffers(text)
    counts = np.zeros((len(text), len(PAGE_COUNTS)), np.int64)
    unicode = load_table()
    _count_sentences(
        address_of(data), bounds, address_of(unicode), table.offsets, table.start, table.stop, table.flags, counts
    )
    _count_page(address_of(data), bounds, address_of(_LOREM), U(len(_LOREM)), counts)
    return counts


def count_code(text: pa.LargeStringArray) -> NDArray[np.int64]:
    """Counts of each document, int64[D, len(CODE_COUNTS)]."""
    data, bounds = text_buffers(text)
    counts = np.zeros((len(text), len(CODE_COUNTS)), np.int64)
    unicode = load_table()
    _count_code(address_of(data), bounds, address_of(unicode), address_of(_XML), U(len(_XML)), counts)
    return counts


@kernel
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


@kernel
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
