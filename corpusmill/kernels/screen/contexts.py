"""In what contexts documents share n-grams with benchmark items: by which common phrases differ from copied items.

A phrase that many pages use goes on differently on each of them; an item that many pages copy goes on as the item does.
So the context of a shared n-gram is what stands around the passage that is shared: as many words before and after it as
the n-gram has, on a side on which the passage ends where the item does a constant, and for a passage that is a whole
item one and the same constant. Copies of items, as in mirrors of a benchmark, therefore have one context however many
they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

import pyarrow as pa

from corpusmill.kernels.screen.screen import Document, Index, Match, Part, documents

CONTEXTS = pa.schema(
    [
        pa.field("ngram", pa.string(), nullable=False),  # its folded words, joined by spaces
        pa.field("context", pa.binary(16), nullable=False),
    ]
)
"""Distinct n-grams and contexts of some documents, in order."""

WHOLE_ITEM = bytes(16)


def contexts(text: pa.Array, index: Index) -> pa.Table:
    """The n-grams that documents share with items, each with its distinct contexts.

    Args:
        text: large_string[D] without nulls.

    Returns:
        CONTEXTS. Items that are looked for as a whole have none.
    """
    found = {pair for part, document in documents(text, index) if not part.whole for pair in _pairs(document, part)}
    ngrams, digests = zip(*sorted(found), strict=True) if found else ((), ())
    return pa.Table.from_arrays(
        [pa.array(ngrams, pa.string()), pa.array(digests, pa.binary(16))],
        schema=CONTEXTS,
    )


def _pairs(document: Document, part: Part) -> Iterator[tuple[str, bytes]]:
    longest: dict[int, tuple[tuple[bool, int], bytes]] = {}  # first word of an n-gram -> its longest passage, context
    for passage in _passages(document.matches):
        first, last = passage[0], passage[-1]
        size = last.word + part.n - first.word
        context = _context(document.words, first, last, part)
        rank = (context == WHOLE_ITEM, size)
        for match in passage:
            if rank > longest.get(match.word, ((False, 0), b""))[0]:
                longest[match.word] = rank, context
    for word, (_, context) in longest.items():
        yield " ".join(document.words[word : word + part.n]), context


def _passages(matches: Iterable[Match]) -> Iterator[list[Match]]:
    """Runs of matches that follow each other both in the document and in one item."""
    ordered = sorted(matches, key=lambda m: (m.item, m.word - m.first, m.word))
    run: list[Match] = []
    for match in ordered:
        if run and (match.item, match.word, match.first) != (run[-1].item, run[-1].word + 1, run[-1].first + 1):
            yield run
            run = []
        run.append(match)
    if run:
        yield run


def _context(words: list[str], first: Match, last: Match, part: Part) -> bytes:
    begins = first.first == 0
    ends = last.first + part.n == len(part.item_words(first.item))
    if begins and ends:
        return WHOLE_ITEM
    low, high = first.word, last.word + part.n
    before = "" if begins else " ".join(words[max(low - part.n, 0) : low])
    after = "" if ends else " ".join(words[high : high + part.n])
    return hashlib.blake2b(f"{before}\n{after}".encode(), digest_size=16).digest()
