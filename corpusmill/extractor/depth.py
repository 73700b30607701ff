"""How deep a page nests, bounded from its tags before any parser sees it.

Parsers and extractors take quadratic time or give up in silence on deep trees: Resiliparse's main content takes 0.3 s
at depth 2,000 and 6 s at 10,000; libxml2 under trafilatura returns nothing beyond 255. So depth is bounded first, in
one linear pass.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import accumulate

_TAG = re.compile(rb"<(/?[a-zA-Z][a-zA-Z0-9:_-]*)")

_WITHOUT_DEPTH = frozenset(  # void elements, and those that a parser closes before the next of their kind
    b"area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr "
    b"p li dt dd tr td th option optgroup tbody thead tfoot colgroup caption rt rp html head body "
    b"a button form nobr select".split()
)
_LEVELS = {b"table": 4, b"ul": 2, b"ol": 2, b"dl": 2, b"menu": 2}  # with the rows, cells and items they hold


def deeper_than(html: bytes, limit: int) -> bool:
    """Whether elements may nest deeper than `limit`.

    The bound is the balance of start and end tags, as if end tags that match nothing were ignored as parsers do. A
    page with thousands of elements that are never closed counts as deep.
    """
    if html.count(b"<") - html.count(b"</") <= limit:
        return False
    tags = _TAG.findall(html)
    counts = Counter(tags)
    levels = {tag: _levels(tag) for tag in counts}
    opened: Counter[bytes] = Counter()
    for tag, count in counts.items():
        opened[tag.lower().lstrip(b"/")] += count * levels[tag]
    unmatched = -sum(balance for balance in opened.values() if balance < 0)
    return max(accumulate(map(levels.__getitem__, tags)), default=0) + unmatched > limit


def _levels(tag: bytes) -> int:
    """By how much a tag moves the depth."""
    name = tag.lower()
    if name.startswith(b"/"):
        return -_levels(name[1:])
    return 0 if name in _WITHOUT_DEPTH else _LEVELS.get(name, 1)
