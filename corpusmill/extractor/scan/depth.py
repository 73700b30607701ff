"""How deep a page nests, bounded from its tags before any parser sees it.

Parsers and extractors take quadratic time or give up in silence on deep trees: Resiliparse's main content takes 0.3 s
at depth 2,000 and 6 s at 10,000; libxml2 under trafilatura returns nothing beyond 255. So depth is bounded first, in
one linear pass.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from corpusmill.compiled import inner, kernel
from corpusmill.extractor.scan import vocabulary
from corpusmill.extractor.scan.bytes import OFFSET, PRIME, count_tags, find
from corpusmill.kernels.bytes.bytehash import U, load8

_WITHOUT_DEPTH = (  # void elements, and those that a parser closes before the next of their kind
    "area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr "
    "p li dt dd tr td th option optgroup tbody thead tfoot colgroup caption rt rp html head body "
    "a button form nobr select"
)
_LEVELS = {"table": 4, "ul": 2, "ol": 2, "dl": 2, "menu": 2}  # with the rows, cells and items they hold


def deeper_than(html: bytes, limit: int) -> bool:
    """Whether elements may nest deeper than `limit`.

    The bound is the balance of start and end tags, as if end tags that match nothing were ignored as parsers do. A
    page with thousands of elements that are never closed counts as deep.
    """
    data = np.frombuffer(html, np.uint8)
    starts = int(_starts(data))
    return starts > limit and int(_depth(data, *_levels())) > limit


@cache
def _levels() -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Hashes of tags' names and by how much they move the depth; all others do by one."""
    levels = {**dict.fromkeys(_WITHOUT_DEPTH.split(), 0), **_LEVELS}
    names = np.array([vocabulary.word_hash(name) for name in levels], np.uint64)
    return names, np.array(list(levels.values()), np.int64)


@inner
def _slot(keys, key):  # type: ignore[no-untyped-def]
    """Where a key is in an open-addressed table, or would be."""
    slot = key & U(len(keys) - 1)
    while keys[slot] != U(0) and keys[slot] != key:
        slot = (slot + U(1)) & U(len(keys) - 1)
    return slot


@inner
def _bound(data, names, levels):  # type: ignore[no-untyped-def]
    """The greatest balance of start and end tags, plus the end tags that match nothing."""
    at = U(data.ctypes.data)
    end = at + U(len(data))
    size = 1024
    keys, moves, balance = np.zeros(size, np.uint64), np.ones(size, np.int64), np.zeros(size, np.int64)
    used = len(names)
    for k in range(len(names)):
        slot = _slot(keys, names[k])
        keys[slot], moves[slot] = names[k], levels[k]
    depth, peak, any_tag = 0, 0, False
    while True:
        at = find(at, end, U(60)) + U(1)
        is_end = at < end and load8(at) == U(47)
        at += U(is_end)
        if at >= end:
            break
        c = load8(at) | U(32)
        if not U(97) <= c <= U(122):
            continue
        key = OFFSET
        while U(97) <= c <= U(122) or U(48) <= c <= U(58) or c == U(45) or c == U(95):
            key = (key ^ c) * PRIME
            at += U(1)
            if at >= end:
                break
            c = load8(at)
            c += U(32) if U(65) <= c <= U(90) else U(0)
        slot = _slot(keys, key)
        if keys[slot] == U(0):
            keys[slot] = key
            used += 1
        move = -moves[slot] if is_end else moves[slot]
        balance[slot] += move
        depth += move
        peak = depth if not any_tag else max(peak, depth)
        any_tag = True
        if 2 * used > size:
            keys, moves, balance = _twice(keys, moves, balance)
            size *= 2
    return peak - np.minimum(balance, 0).sum()


@inner
def _twice(keys, moves, balance):  # type: ignore[no-untyped-def]
    """The table with twice the room."""
    size = 2 * len(keys)
    new_keys, new_moves, new_balance = np.zeros(size, np.uint64), np.ones(size, np.int64), np.zeros(size, np.int64)
    for old in range(len(keys)):
        if keys[old] != U(0):
            slot = _slot(new_keys, keys[old])
            new_keys[slot], new_moves[slot], new_balance[slot] = keys[old], moves[old], balance[old]
    return new_keys, new_moves, new_balance


@kernel
def _starts(data):  # type: ignore[no-untyped-def]
    """Number of `<` that begin no end tag."""
    return count_tags(U(data.ctypes.data), U(len(data)), True)


@kernel
def _depth(data, names, levels):  # type: ignore[no-untyped-def]
    return _bound(data, names, levels)
