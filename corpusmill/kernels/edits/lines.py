"""Line edits: the byte spans that a rule file's edits remove from each text, and how many of its words.

A line is what `str.splitlines` gives. Rules apply in their order to each line as the rules before left it. A line that
is removed takes its break with it; where the last lines go, so does the break before them. Words are those of the word
table, counted where they begin. Both are looked at in normal form C (composing.py), as measures are; spans are those of
the text as it is stored.

Method: one pass over a document's bytes tells which phrase rules can apply to it at all; words of a line are counted
only as far as a rule asks. A line with a cut inside is copied without it, with the place of each byte that is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.compiled import inner, kernel
from corpusmill.kernels.bytes.blanks import line_break, lower, strip_left, strip_right
from corpusmill.kernels.bytes.bytehash import U, address_of, load8
from corpusmill.kernels.bytes.unicode_table import load_table
from corpusmill.kernels.edits.line_cuts import citation_cuts, find_phrase, phrase_at, phrase_cuts, url_cuts
from corpusmill.kernels.edits.line_tests import line_key, removes, words_up_to
from corpusmill.kernels.edits.program import CUT, FLAG, NUMBER, PLACE, Op, Program, compiled
from corpusmill.kernels.edits.rules import EditRule
from corpusmill.kernels.words.composing import composed
from corpusmill.kernels.words.plain_form import Changed
from corpusmill.kernels.words.table import IS_WORD, WordTable, text_buffers, word_table
from corpusmill.schema import EDITS

Ints = NDArray[np.int64]

_BLANKS, _NEWLINES, _PHRASE = int(Op.BLANKS), int(Op.NEWLINES), int(Op.PHRASE)
_CITATION, _ADDRESS, _REPEATED_LINE = int(Op.CITATION), int(Op.ADDRESS), int(Op.REPEATED_LINE)
_WORD = np.uint8(IS_WORD)
_FIRST_SPANS = 256


def line_edits(text: pa.LargeStringArray, edits: Sequence[EditRule], table: WordTable | None = None) -> pa.RecordBatch:
    """What edits remove from each text, one row a text (schema.EDITS).

    Args:
        text: large_string[D] without nulls.
        edits: at most 64, in their order.
        table: the words of these texts, where they are known already.

    Raises:
        ValueError: not a large_string array, or one with nulls; more than 64 edits; words of other texts.
    """
    if table is not None and len(table) != len(text):
        raise ValueError(f"{len(text)} texts and words of {len(table)}")
    form, rows = composed(text)
    data, bounds = text_buffers(form)
    words = word_table(form) if table is None or rows else table
    program = compiled(edits)
    offsets = np.zeros(len(text) + 1, np.int64)
    start, end, kind = _spans_of(data, bounds, program, offsets)
    removed, total = np.zeros(len(text), np.int64), np.zeros(len(text), np.int64)
    _count_words(offsets, start, end, words.offsets, words.start, words.flags, removed, total)
    Changed(text, rows, {}).places(offsets, start, end)
    names = pa.array([edit.name for edit in edits], pa.string()).take(pa.array(kind))
    spans = pa.StructArray.from_arrays(
        [pa.array(start), pa.array(end), names], fields=list(EDITS.field("spans").type.value_type)
    )
    ratio = removed / np.maximum(total, 1)
    lists = pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), spans)
    return pa.record_batch([lists, pa.array(removed), pa.array(ratio)], schema=EDITS)


def _spans_of(data: NDArray[np.uint8], bounds: Ints, program: Program, offsets: Ints) -> tuple[Ints, Ints, Ints]:
    longest = int(np.diff(bounds).max(initial=0)) + 1
    unicode, classes = load_table(), _classes()
    edited = np.empty(longest, np.uint8)
    lines = _most_breaks(data, bounds) + 1 if _REPEATED_LINE in program.ops.tolist() else 1
    keys = np.empty(1 << max(4, (2 * lines).bit_length()), np.uint64)
    return _edit(
        address_of(data),
        bounds,
        address_of(unicode),
        address_of(classes),
        program.ops,
        program.numbers,
        program.ratios,
        program.lists,
        program.items,
        address_of(program.blob),
        address_of(program.pairs),
        edited,
        address_of(edited),
        np.empty(longest, np.int64),
        np.empty((longest, 2), np.int64),
        keys,
        np.full(len(keys), -1, np.int64),
        offsets,
    )


@cache
def _classes() -> NDArray[np.uint8]:
    """Classes of ASCII bytes, as `shares` takes them."""
    return np.array([c.isupper() * 1 + c.isdigit() * 2 for c in map(chr, range(128))], np.uint8)


@kernel
def _most_breaks(data: NDArray[np.uint8], bounds: Ints) -> int:
    """No document has more line breaks (bytes that may begin one are counted)."""
    most = 0
    for d in range(len(bounds) - 1):
        count = 0
        for i in range(bounds[d], bounds[d + 1]):
            byte = data[i]
            count += (10 <= byte <= 13) | (28 <= byte <= 30) | (byte == 0xC2) | (byte == 0xE2)
        most = max(most, count)
    return most


@inner
def _grown(array: Ints) -> Ints:
    larger = np.empty(2 * len(array), np.int64)
    larger[: len(array)] = array
    return larger


@inner
def _sort(starts: Ints, ends: Ints, kinds: Ints, first: int, last: int) -> None:
    """Order some spans by place: later rules may cut before earlier ones."""
    i = first + 1
    while i < last and starts[i - 1] < starts[i]:
        i += 1
    if i < last:
        order = first + np.argsort(starts[first:last])
        starts[first:last], ends[first:last], kinds[first:last] = starts[order], ends[order], kinds[order]


@inner
def _possible(text: U, size: U, pairs: U, ops: Ints, lists: Ints, items: Ints, blob: U) -> U:
    """Which phrase rules have a phrase anywhere in a text, a bit each."""
    found, i = U(0), U(1)
    end = text + size
    before = lower(load8(text)) if size > U(0) else U(0)
    while i <= size:
        byte = lower(load8(text + i)) if i < size else U(0)
        if load8(pairs + (before << U(8) | byte)) != U(0):
            for e in range(len(ops)):
                if (
                    ops[e] == _PHRASE
                    and found >> U(e) & U(1) == U(0)
                    and phrase_at(text + i - U(1), text, end, 0, items, lists[e, 0], lists[e, 1], blob) > U(0)
                ):
                    found |= U(1) << U(e)
        before = byte
        i += U(1)
    return found


@inner(forceinline=True)
def _line_end(line: U, end: U) -> Any:
    """Where a line ends, and the bytes of its break."""
    stop, width = line, U(0)
    while stop < end:
        if load8(stop) < U(0x20) or load8(stop) >= U(0xC2):
            width = line_break(stop, end)
            if width > U(0):
                break
        stop += U(1)
    return stop, width


@inner(forceinline=True)
def _add(starts: Ints, ends: Ints, kinds: Ints, spans: int, own: int, begin: int, finish: int, kind: int) -> int:
    """Add a span, or lengthen the last one from `own` on where it continues that; the number of spans."""
    if spans > own and ends[spans - 1] == begin and kinds[spans - 1] == kind:
        ends[spans - 1] = finish
    else:
        starts[spans], ends[spans], kinds[spans] = begin, finish, kind
        spans += 1
    return spans


@inner(forceinline=True)
def _met_before(at: U, n: U, keys: NDArray[np.uint64], stamps: Ints, d: int) -> bool:
    """Whether document d had a line like this one before; it is noted. A line without a key never counts."""
    key, length = line_key(at, at + n)
    slots = U(len(keys) - 1)
    slot = key & slots
    while length > U(0) and stamps[slot] == d and keys[slot] != key:
        slot = (slot + U(1)) & slots
    met = length > U(0) and stamps[slot] == d
    if length > U(0) and not met:
        stamps[slot], keys[slot] = d, key
    return met


@inner(forceinline=True)
def _close(starts: Ints, ends: Ints, kinds: Ints, first: int, spans: int, kept_end: int, size: int, kind: int) -> int:
    """Remove what follows the last line that stays, its break too; the number of spans."""
    position = kept_end
    for j in range(first, spans):
        if starts[j] >= position:
            starts[j] = position
            position = ends[j]
    if position < size:
        starts[spans], ends[spans], kinds[spans] = position, size, kind
        spans += 1
    return spans


@kernel
def _edit(
    data: U,
    bounds: Ints,
    table: U,
    classes: U,
    ops: Ints,
    numbers: Ints,
    ratios: NDArray[np.float64],
    lists: Ints,
    items: Ints,
    blob: U,
    pairs: U,
    edited: NDArray[np.uint8],
    scratch: U,
    origin: Ints,
    cuts: Ints,
    keys: NDArray[np.uint64],
    stamps: Ints,
    offsets: Ints,
) -> tuple[Ints, Ints, Ints]:
    starts, ends = np.empty(_FIRST_SPANS, np.int64), np.empty(_FIRST_SPANS, np.int64)
    kinds = np.empty(_FIRST_SPANS, np.int64)
    spans = 0
    phrases, blanks = False, -1
    for e in range(len(ops)):
        phrases |= ops[e] == _PHRASE
        blanks = e if ops[e] == _BLANKS and blanks < 0 else blanks
    for d in range(len(bounds) - 1):
        text, size = data + U(bounds[d]), U(bounds[d + 1] - bounds[d])
        end = text + size
        possible = _possible(text, size, pairs, ops, lists, items, blob) if phrases else U(0)
        first = spans  # of this document
        kept_end = U(0)  # bytes of the text up to the end of the last line that stays
        any_kept, tail_removed, feeds = False, False, 0
        line = text
        while line < end:
            stop, width = _line_end(line, end)
            following = stop + width
            feeds = feeds + 1 if stop == line and feeds > 0 else 1
            if width != U(1) or load8(stop) != U(0x0A):
                feeds = 0
            while spans + int(stop - line) + 4 > len(starts):  # no line has more spans than bytes
                starts, ends, kinds = _grown(starts), _grown(ends), _grown(kinds)
            own = spans  # first span within this line
            at, n = line, stop - line
            removed_by = -1
            for e in range(len(ops)):
                if ops[e] == _NEWLINES and feeds > numbers[e, NUMBER] and removed_by < 0:
                    removed_by = e
            shift = U(0)  # of the line's begin in `scratch`
            mapped = False
            for e in range(len(ops)):
                if removed_by >= 0:
                    break
                op = ops[e]
                if op == _NEWLINES or (op == _PHRASE and not mapped and possible >> U(e) & U(1) == U(0)):
                    continue
                a, b = lists[e, 0], lists[e, 1]
                count = 0  # of cuts, places in the line as it is now
                if op == _BLANKS:
                    begin = strip_left(at, at + n)
                    finish = strip_right(begin, at + n)
                    for side in range(2):
                        low, high = (U(0), begin - at) if side == 0 else (finish - at, n)
                        while low < high:
                            here = origin[shift + low] if mapped else int(at - text + low)
                            spans = _add(starts, ends, kinds, spans, own, here, here + 1, e)
                            low += U(1)
                    shift += begin - at
                    at, n = begin, finish - begin
                    if n == U(0) and not any_kept:
                        removed_by = e
                elif op == _REPEATED_LINE:
                    if _met_before(at, n, keys, stamps, d):
                        removed_by = e
                elif op == _CITATION:
                    count = citation_cuts(at, n, numbers[e, FLAG], items, a, b, blob, table, cuts)
                elif op == _ADDRESS:
                    count = url_cuts(at, n, items, a, b, blob, cuts)
                elif op == _PHRASE:
                    most = U(numbers[e, NUMBER])
                    spared = most > U(0) and words_up_to(at, at + n, most + U(1)) > most
                    if not spared and lists[e, 3] > lists[e, 2]:
                        _, other = find_phrase(at, at, at + n, 0, 0, items, lists[e, 2], lists[e, 3], blob)
                        spared = other > U(0)
                    if not spared:
                        count = phrase_cuts(at, n, numbers[e, PLACE], numbers[e, FLAG], items, a, b, blob, cuts)
                        if count > 0 and numbers[e, CUT] == 0:
                            removed_by = e
                elif removes(
                    op,
                    at,
                    n,
                    numbers[e, NUMBER],
                    numbers[e, FLAG],
                    numbers[e, PLACE],
                    ratios[e],
                    lists[e],
                    items,
                    blob,
                    table,
                    classes,
                ):
                    removed_by = e
                if removed_by >= 0 or count == 0:
                    continue
                # The line without the cuts; a span for each piece that was whole in the text.
                to, i = U(0), U(0)
                for c in range(count + 1):
                    low = U(cuts[c, 0]) if c < count else n
                    while i < low:
                        edited[shift + to] = load8(at + i)
                        origin[shift + to] = origin[shift + i] if mapped else int(at - text + i)
                        to += U(1)
                        i += U(1)
                    if c == count:
                        break
                    high = U(cuts[c, 1])
                    while i < high:
                        here = origin[shift + i] if mapped else int(at - text + i)
                        spans = _add(starts, ends, kinds, spans, own, here, here + 1, e)
                        i += U(1)
                at, n, mapped = scratch + shift, to, True
                if op == _PHRASE and strip_left(at, at + n) >= at + n:
                    removed_by = e
            if removed_by >= 0:
                begins, follows = int(line - text), int(following - text)
                spans = _add(starts, ends, kinds, own, first, begins, follows, removed_by)
                tail_removed = True
            else:
                _sort(starts, ends, kinds, own, spans)
                if blanks < 0 or n > U(0):
                    if n > U(0):
                        kept_end = U(origin[shift + n - U(1)] + 1) if mapped else at - text + n
                    else:
                        kept_end = U(starts[own]) if spans > own else line - text
                    any_kept = True
                tail_removed = False
            line = following
        if blanks >= 0 or tail_removed:
            if spans + 1 > len(starts):
                starts, ends, kinds = _grown(starts), _grown(ends), _grown(kinds)
            spans = _close(starts, ends, kinds, first, spans, int(kept_end), int(size), max(blanks, 0))
        offsets[d + 1] = spans
    return starts[:spans], ends[:spans], kinds[:spans]


@kernel
def _count_words(
    offsets: Ints,
    start: Ints,
    end: Ints,
    tokens: Ints,
    token_start: NDArray[np.int32],
    flags: NDArray[np.uint8],
    removed: Ints,
    total: Ints,
) -> None:
    """Words of each text, and those that begin within a span."""
    for d in range(len(offsets) - 1):
        s = offsets[d]
        for t in range(tokens[d], tokens[d + 1]):
            if not flags[t] & _WORD:
                continue
            total[d] += 1
            while s < offsets[d + 1] and end[s] <= token_start[t]:
                s += 1
            removed[d] += s < offsets[d + 1] and start[s] <= token_start[t]
