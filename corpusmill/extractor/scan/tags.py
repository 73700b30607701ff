# ruff: noqa: SIM109 (compiled code: comparing with a tuple is slower)
"""What a tag does: ends the line, opens or closes containers, begins a link, skips what no reader sees."""

from __future__ import annotations

from corpusmill.compiled import inner
from corpusmill.extractor.scan import vocabulary as v
from corpusmill.extractor.scan.attributes import HALF, TEX, attributes, looked_up, source_of
from corpusmill.extractor.scan.boxes import close_by_tag, close_implied, frame_at, open_box
from corpusmill.extractor.scan.bytes import PRIME, after, comment_end, find, find_end_tag, hash_name, tag_end
from corpusmill.extractor.scan.state import N_LINE, Frame, Line, State, add, get, put, store8
from corpusmill.extractor.scan.text import end_word
from corpusmill.kernels.bytes.bytehash import U, load8

_PRE = U(v.TAGS["pre"])
_INLINE, _CONTAINER, _LEAF, _SKIPPED, _BREAK = U(v.INLINE), U(v.CONTAINER), U(v.LEAF), U(v.SKIPPED), U(v.BREAK)
_RULE, _LINK, _BOLD, _TITLE, _MATH, _RAW = U(v.RULE), U(v.LINK), U(v.BOLD), U(v.TITLE), U(v.MATH), U(v.RAW)


@inner
def flush(page):  # type: ignore[no-untyped-def]
    """End the line; one without characters leaves nothing."""
    word = get(page, State.WORD)
    if word != U(0):
        end_word(page, word)
        put(page, State.WORD, U(0))
    put(page, State.RUN, U(0))
    if get(page, Line.CHARS) > U(0):
        frame = frame_at(page, get(page, State.LEVEL))
        put(page, Line.STOP, get(page, State.USED))
        put(page, Line.LIST_DEPTH, get(frame, Frame.LIST_DEPTH))
        put(page, Line.DEPTH, get(page, State.LEVEL) + get(page, State.OVERFLOW))
        put(page, Line.CONTAINER, get(frame, Frame.CONTAINER))
        put(page, Line.ROW, get(frame, Frame.ROW))
        put(page, Line.CELL, get(frame, Frame.CELL))
        put(page, Line.ROLES, get(page, State.LEAF_ROLES) | get(page, State.INLINE_ROLES))
        line = get(page, State.LINES) + U(8 * N_LINE) * get(page, State.N_LINES)
        for k in range(N_LINE):
            put(line, k, get(page, k))
        add(page, State.N_LINES, U(1))
        put(page, Line.START, get(page, State.USED))
        put(page, Line.SOFT, U(0))
    put(page, State.USED, get(page, Line.START))
    put(page, Line.CHARS, U(0))
    put(page, Line.WORDS, U(0))
    put(page, Line.LINK_CHARS, U(0))
    put(page, Line.LINK_WORDS, U(0))
    put(page, Line.LINKS, U(0))
    put(page, Line.ENDS, U(0))
    put(page, Line.COMMAS, U(0))
    put(page, Line.DIGITS, U(0))
    put(page, Line.CAPITALS, U(0))
    put(page, Line.SEPARATORS, U(0))
    put(page, Line.BOLD_CHARS, U(0))
    put(page, Line.TITLE_WORDS, U(0))
    put(page, Line.SYMBOLS, U(0))
    put(page, Line.TEXT_CHARS, U(0))
    put(page, Line.HASH, U(0))
    put(page, State.INLINE_ROLES, U(0))
    put(page, State.PENDING, U(0))


@inner
def write_mark(page, c):  # type: ignore[no-untyped-def]
    """Add a character that does not stand in the page."""
    store8(get(page, State.TEXT) + get(page, State.USED), c)
    add(page, State.USED, U(1))
    add(page, Line.CHARS, U(1))


@inner
def _after_declaration(at, end):  # type: ignore[no-untyped-def]
    """The place after a comment, a doctype or the like."""
    if at + U(4) <= end and load8(at + U(2)) == U(45) and load8(at + U(3)) == U(45):
        if at + U(4) < end and load8(at + U(4)) == U(62):
            return at + U(5)
        return comment_end(at + U(4), end)
    return after(at, end, U(62))


@inner
def _after_visible_half(stop, end):  # type: ignore[no-untyped-def]
    """Where the span whose start tag stops here ends: the visible half of a formula whose source stands beside it."""
    nested, at = 1, stop
    while nested > 0:
        at = find(at + U(1), end, U(60))
        if at >= end:
            return end
        closing = U(load8(at + U(1)) == U(47)) if at + U(6) <= end else U(0)
        name = at + U(1) + closing
        if (
            at + U(6) <= end
            and (load8(name) | U(32)) == U(115)
            and (load8(name + U(1)) | U(32)) == U(112)
            and (load8(name + U(2)) | U(32)) == U(97)
        ):
            nested += -1 if closing == U(1) else 1
    return at


@inner
def _skip(page, tag, action, name, name_end, stop, tex):  # type: ignore[no-untyped-def]
    """Where to go on after the start tag of an element that no reader sees, or at the source of its formula; 0 where
    the element never ends."""
    end, unclosed = get(page, State.END), get(page, State.UNCLOSED)
    until = end
    if action != _RAW and load8(stop - U(1)) == U(47):
        until = stop
    elif get(unclosed, tag) == U(0):
        until = find_end_tag(stop, end, name, name_end - name)
        if until >= end and action != _RAW:
            put(unclosed, tag, U(1))
    if until >= end and action != _RAW:
        return U(0)
    start, close = until, until
    if action == _MATH:
        start = source_of(page, stop, until)
        if start < until:
            start = tag_end(start, until) + U(1)
            close = find(start, until, U(60))
    elif action == _RAW and tex:
        start = stop + U(1)
    if start >= close:
        return min(tag_end(until, end) + U(1), end)
    if get(page, Line.CHARS) == U(0):
        put(page, State.USED, get(page, Line.START))
        put(page, Line.PLACE, start - get(page, State.DATA))
    elif get(page, State.PENDING) != U(0):
        write_mark(page, U(32))
    put(page, State.PENDING, U(0))
    write_mark(page, U(36))
    put(page, State.JUMP_AT, close)
    put(page, State.JUMP_TO, min(tag_end(until, end) + U(1), end))
    return start


@inner
def _begin_title(page, tag, name, name_end, stop):  # type: ignore[no-untyped-def]
    """Read a title's words if it is the page's first; returns where to go on."""
    end, unclosed = get(page, State.END), get(page, State.UNCLOSED)
    until = end
    if get(unclosed, tag) == U(0):
        until = find_end_tag(stop, end, name, name_end - name)
        put(unclosed, tag, U(until >= end))
    begins = get(page, State.N_TITLE) == U(0) and stop + U(1) < until < end
    put(page, State.IN_TITLE, U(begins))
    put(page, State.TITLE_END, until)
    put(page, State.WORD, U(0))
    return min(stop + U(1), end) if begins or until >= end else until


@inner
def _break_in_pre(page):  # type: ignore[no-untyped-def]
    """A block inside of preformatted text is a line of it."""
    if get(page, Line.CHARS) > U(0):
        write_mark(page, U(10))
        put(page, State.PENDING, U(1))
        word = get(page, State.WORD)
        if word != U(0):
            put(page, Line.HASH, (get(page, Line.HASH) ^ word) * PRIME + U(1))
            put(page, State.WORD, U(0))


@inner
def read_tag(page, at):  # type: ignore[no-untyped-def]
    """Do what a tag says; returns where to go on."""
    end = get(page, State.END)
    second = load8(at + U(1))
    if second == U(33):
        return _after_declaration(at, end)
    if second == U(63):
        return after(at, end, U(62))
    is_end = second == U(47)
    name = at + U(2) if is_end else at + U(1)
    name_end, has_dash = name, False
    while name_end < end:
        c = load8(name_end)
        if c <= U(32) or c == U(62) or c == U(47):
            break
        has_dash |= c == U(45)
        name_end += U(1)
    if name_end == name:
        return min(name_end + U(1), end)
    tag = looked_up(
        get(page, State.TAG_KEYS), get(page, State.TAG_VALUES), get(page, State.TAG_MASK), hash_name(name, name_end)
    )
    if tag == U(0) and has_dash:
        tag = U(v.CUSTOM)
    action = get(get(page, State.ACTIONS), tag)
    stop = tag_end(name_end, end)
    if get(page, State.IN_TITLE) != U(0):
        put(page, State.IN_TITLE, U(0))
        put(page, State.WORD, U(0))
    roles, signature = U(0), U(0)
    if not is_end:
        flags = U(0)
        if stop > name_end:
            roles, signature, flags = attributes(page, name_end, stop)
        roles |= get(get(page, State.TAG_ROLES), tag)
        signature = (signature ^ tag) * PRIME
        if flags & HALF:
            return _after_visible_half(stop, end)
        if action == _SKIPPED or action == _RAW or action == _MATH:
            place = _skip(page, tag, action, name, name_end, stop, flags & TEX != U(0))
            if place != U(0):
                return place
            action = _INLINE
        if action == _TITLE:
            return _begin_title(page, tag, name, name_end, stop)
    if action == _CONTAINER or action == _LEAF or action == _BREAK or action == _RULE:
        if get(page, State.IN_PRE) != U(0) and tag != _PRE:
            if not is_end:
                _break_in_pre(page)
            if not is_end or action != _CONTAINER:
                return min(stop + U(1), end)
        flush(page)
    _apply(page, tag, action, is_end, roles, signature)
    return min(stop + U(1), end)


@inner
def _apply(page, tag, action, is_end, roles, signature):  # type: ignore[no-untyped-def]
    """What is open and in force after a tag."""
    here = U(0) if is_end else get(page, State.LEVEL) + U(1)
    if action == _LINK:
        put(page, State.IN_LINK, here)
        put(page, State.NEW_LINK, U(not is_end))
        put(page, State.INLINE_ROLES, get(page, State.INLINE_ROLES) | roles)
    elif action == _BOLD:
        put(page, State.IN_BOLD, here)
    elif action == _INLINE:
        put(page, State.INLINE_ROLES, get(page, State.INLINE_ROLES) | roles)
    elif action == _BREAK:
        put(page, Line.SOFT, U(1))
    elif action == _LEAF:
        put(page, State.IN_PRE, U(tag == _PRE and not is_end))
        put(page, Line.SOFT, U(0))
        frame = frame_at(page, get(page, State.LEVEL))
        put(page, Line.KIND, get(frame, Frame.KIND) if is_end else get(get(page, State.KINDS), tag))
        put(page, State.LEAF_ROLES, U(0) if is_end else roles)
    elif action == _CONTAINER:
        put(page, State.IN_PRE, U(0))
        put(page, Line.SOFT, U(0))
        if is_end:
            close_by_tag(page, tag)
        else:
            close_implied(page, tag)
            open_box(page, tag, roles, signature)
        put(page, Line.KIND, get(frame_at(page, get(page, State.LEVEL)), Frame.KIND))
        put(page, State.LEAF_ROLES, U(0))
