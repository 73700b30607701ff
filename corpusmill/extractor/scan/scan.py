"""One pass over the UTF-8 bytes of a page: lines of text with counts, and the containers they stand in, without a DOM.

A container is an element that groups (div, section, li, td, …); an end tag closes to its match or is ignored. Block
tags and `<br>` end a line; a cell of a table is a line of its own, `pre` is one line with its blanks and newlines.
Blank runs become one space, entities stay as they are written. What no reader sees (scripts, styles, drawings, choices)
is skipped; formulas come as their TeX. Time is linear in the page.

The parts: scan_tags.py with scan_attributes.py and scan_boxes.py, scan_text.py with scan_letters.py; scan_bytes.py
finds bytes, scan_state.py holds what they share.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from corpusmill.compiled import inner, kernel
from corpusmill.extractor.scan import attributes, letters, vocabulary
from corpusmill.extractor.scan import state as scan_state
from corpusmill.extractor.scan.boxes import box_at, close_to
from corpusmill.extractor.scan.bytes import count_tags
from corpusmill.extractor.scan.state import MAX_DEPTH, N_BOX, N_FRAME, N_LINE, N_STATE, Box, Line, State, get, put
from corpusmill.extractor.scan.tags import flush, read_tag, write_mark
from corpusmill.extractor.scan.text import begins_tag, read_text, read_title
from corpusmill.kernels.bytes.bytehash import U, address_of, load8

__all__ = ["Box", "Line", "Scan", "scan"]

_TITLE_WORDS = scan_state.TITLE_SLOTS
_N_TAGS = len(vocabulary.TAG_NAMES)


@dataclass(frozen=True)
class Scan:
    """What a page says: L lines and C containers."""

    text: NDArray[np.uint8]
    """UTF-8 of all lines, one after the other."""
    lines: NDArray[np.int64]
    """int64[L, N_LINE]."""
    boxes: NDArray[np.int64]
    """int64[C, N_BOX]."""
    title_words: int
    size: int
    """Bytes of the page."""

    def __len__(self) -> int:
        """Number of lines."""
        return len(self.lines)


def scan(html: bytes) -> Scan:
    """Lines and containers of a page."""
    text, lines, boxes, title_words = _read(np.frombuffer(html, np.uint8), _constants())
    return Scan(text, lines, boxes, title_words, len(html))


@cache
def _tables() -> tuple[NDArray, ...]:
    """The arrays whose addresses the scanner holds."""
    return (
        letters.CLASSES, *vocabulary.tag_table(), *vocabulary.word_table(), *vocabulary.tag_facts(),
        attributes.NEEDLES,
    )  # fmt: skip


@cache
def _constants() -> NDArray[np.uint64]:
    """Words of the state from CLASSES to NEEDLES: addresses of tables, and the masks of those that are looked up."""
    classes, tag_keys, tag_values, word_keys, word_values, actions, kinds, roles, needles = map(address_of, _tables())
    tag_mask, word_mask = U(len(vocabulary.tag_table()[0]) - 1), U(len(vocabulary.word_table()[0]) - 1)
    words = [classes, tag_keys, tag_values, tag_mask, word_keys, word_values, word_mask, actions, kinds, roles, needles]
    return np.array(words, np.uint64)


@inner
def _read_page(page):  # type: ignore[no-untyped-def]
    """Read all of the page."""
    at, end = get(page, State.DATA), get(page, State.END)
    while at < end or at == get(page, State.JUMP_AT):
        jump = get(page, State.JUMP_AT)
        if at == jump:
            if get(page, State.JUMP_TO) > at:
                if get(page, Line.CHARS) > U(0):
                    write_mark(page, U(36))
                at = get(page, State.JUMP_TO)
            put(page, State.JUMP_AT, U(0))
        elif load8(at) == U(60) and jump == U(0) and begins_tag(at, end):
            at = read_tag(page, at)
        elif get(page, State.IN_TITLE) != U(0):
            at = read_title(page, at)
        else:
            at = read_text(page, at)
    flush(page)
    close_to(page, U(0))
    put(box_at(page, U(0)), Box.LAST_LINE, get(page, State.N_LINES))


@kernel
def _read(data, constants):  # type: ignore[no-untyped-def]
    """Text, lines, boxes and number of the title's words."""
    size = len(data)
    tags = count_tags(U(data.ctypes.data), U(size), False) + U(2)
    text = np.empty(U(size) + U(2) * tags + U(16), np.uint8)
    lines, boxes = np.empty((tags + U(2), N_LINE), np.int64), np.empty((tags + U(2), N_BOX), np.int64)
    stack, state = np.zeros((MAX_DEPTH + 2, N_FRAME), np.int64), np.zeros(N_STATE, np.uint64)
    title, of_tags = np.zeros(_TITLE_WORDS, np.uint64), np.zeros((2, _N_TAGS), np.uint64)
    page = U(state.ctypes.data)
    for k in range(len(constants)):
        put(page, U(State.CLASSES) + U(k), constants[k])
    put(page, State.DATA, U(data.ctypes.data))
    put(page, State.END, U(data.ctypes.data) + U(size))
    put(page, State.TEXT, U(text.ctypes.data))
    put(page, State.LINES, U(lines.ctypes.data))
    put(page, State.BOXES, U(boxes.ctypes.data))
    put(page, State.STACK, U(stack.ctypes.data))
    put(page, State.TITLE, U(title.ctypes.data))
    put(page, State.OPEN, U(of_tags.ctypes.data))
    put(page, State.UNCLOSED, U(of_tags[1:].ctypes.data))
    put(page, State.N_BOXES, U(1))
    boxes[0] = 0
    _read_page(page)
    n_lines, n_boxes, n_title = state[State.N_LINES], state[State.N_BOXES], state[State.N_TITLE]
    stack[0, 0] = title[0] = of_tags[0, 0] = 0  # so that they live until here
    return text, lines[:n_lines], boxes[:n_boxes], np.int64(n_title)
