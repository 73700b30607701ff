# ruff: noqa: SIM109 (compiled code: comparing with a tuple is slower)
"""The containers that are open where the scanner stands: a stack of frames, of which the page itself is the first."""

from __future__ import annotations

from corpusmill.compiled import inner
from corpusmill.extractor.scan import vocabulary as v
from corpusmill.extractor.scan.state import MAX_DEPTH, N_BOX, N_FRAME, Box, Frame, State, add, get, put
from corpusmill.kernels.bytes.bytehash import U

_LI, _TR, _TD, _TH, _TABLE, _UL, _OL = (U(v.TAGS[t]) for t in ("li", "tr", "td", "th", "table", "ul", "ol"))
_LOOK_BACK = U(32)  # containers in which a list item, row or cell looks for one of its kind to end


@inner(forceinline=True)
def frame_at(page, level):  # type: ignore[no-untyped-def]
    """Address of an open container's frame."""
    return get(page, State.STACK) + U(8 * N_FRAME) * level


@inner(forceinline=True)
def box_at(page, number):  # type: ignore[no-untyped-def]
    """Address of a container."""
    return get(page, State.BOXES) + U(8 * N_BOX) * number


@inner
def close_by_tag(page, tag):  # type: ignore[no-untyped-def]
    """Close to the container that an end tag ends; one that matches nothing is ignored."""
    if get(page, State.OVERFLOW) > U(0):
        put(page, State.OVERFLOW, get(page, State.OVERFLOW) - U(1))
    elif get(get(page, State.OPEN), tag) > U(0):
        target = get(page, State.LEVEL)
        while get(frame_at(page, target), Frame.TAG) != tag:
            target -= U(1)
        close_to(page, target - U(1))


@inner
def close_implied(page, tag):  # type: ignore[no-untyped-def]
    """Close the item, row or cell that the start tag of the next one ends."""
    is_cell = tag == _TD or tag == _TH
    if not (is_cell or tag == _LI or tag == _TR):
        return
    level = get(page, State.LEVEL)
    floor = level - min(level, _LOOK_BACK)
    while level > floor:
        other = get(frame_at(page, level), Frame.TAG)
        if other == tag or (is_cell and (other == _TD or other == _TH)):
            close_to(page, level - U(1))
            return
        if other == _TABLE or (tag == _LI and (other == _UL or other == _OL)) or (is_cell and other == _TR):
            return
        level -= U(1)


@inner
def close_to(page, target):  # type: ignore[no-untyped-def]
    """Close all containers above a level, with the links and bold type that began in them."""
    level = get(page, State.LEVEL)
    while level > target:
        frame = frame_at(page, level)
        tag = get(frame, Frame.TAG)
        put(get(page, State.OPEN), tag, get(get(page, State.OPEN), tag) - U(1))
        put(box_at(page, get(frame, Frame.CONTAINER)), Box.LAST_LINE, get(page, State.N_LINES))
        level -= U(1)
    put(page, State.LEVEL, level)
    if get(page, State.IN_LINK) > level + U(1):
        put(page, State.IN_LINK, U(0))
    if get(page, State.IN_BOLD) > level + U(1):
        put(page, State.IN_BOLD, U(0))


@inner
def open_box(page, tag, roles, signature):  # type: ignore[no-untyped-def]
    """Open a container."""
    level = get(page, State.LEVEL)
    if level >= U(MAX_DEPTH):
        add(page, State.OVERFLOW, U(1))
        return
    outer, frame = frame_at(page, level), frame_at(page, level + U(1))
    parent, number = get(outer, Frame.CONTAINER), get(page, State.N_BOXES)
    put(page, State.LEVEL, level + U(1))
    put(page, State.N_BOXES, number + U(1))
    put(frame, Frame.TAG, tag)
    put(frame, Frame.CONTAINER, number)
    put(frame, Frame.ROW, get(outer, Frame.ROW))
    put(frame, Frame.CELL, get(outer, Frame.CELL))
    put(frame, Frame.LIST_DEPTH, get(outer, Frame.LIST_DEPTH))
    if tag == _TR:
        add(page, State.N_ROWS, U(1))
        put(frame, Frame.ROW, get(page, State.N_ROWS))
        put(frame, Frame.CELL, U(0))
    elif tag == _TD or tag == _TH:
        add(outer, Frame.CELL, U(1))
        put(frame, Frame.CELL, get(outer, Frame.CELL))
    elif tag == _UL or tag == _OL:
        add(frame, Frame.LIST_DEPTH, U(1))
    kind = get(get(page, State.KINDS), tag)
    put(frame, Frame.KIND, kind if kind != U(0) else get(outer, Frame.KIND))
    add(get(page, State.OPEN), tag, U(1))
    box = box_at(page, number)
    put(box, Box.PARENT, parent)
    put(box, Box.TAG, tag)
    put(box, Box.OWN_ROLES, roles)
    put(box, Box.ROLES, roles | get(box_at(page, parent), Box.ROLES))
    put(box, Box.SIGNATURE, signature)
    put(box, Box.FIRST_LINE, get(page, State.N_LINES))
    put(box, Box.LAST_LINE, get(page, State.N_LINES))
    put(box, Box.DEPTH, level + U(1))
