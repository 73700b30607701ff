"""Personal data in texts: where it is, of which kind, how much, and what stands in its place.

Masks are names in angle brackets, as StarCoder's data has them, not made-up values as FineWeb's: for cards, accounts
and keys there is no value that is nobody's and looks like one, a reader sees that something was taken out, and a model
that learns them cannot give out a false number as a true one. Every mask of a kind is the same, so that no person can
be followed through a text. A mask is no personal data itself.

Values that are reserved for examples (RFC 2606 domains, RFC 5737 and RFC 3849 addresses) are masked like others, since
their form is that of others and a mask in their place teaches the same; names of nobody at such domains
(user@example.com) never are. `reserved=False` leaves all of these as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from corpusmill import schema
from corpusmill.kernels.edits.spans import spans
from corpusmill.kernels.pii import numbers, words
from corpusmill.kernels.pii import scan as scan
from corpusmill.kernels.pii.runs import run_of
from corpusmill.kernels.words.table import text_buffers

MASKS = {
    "email": "<EMAIL>",
    "ip": "<IP_ADDRESS>",
    "phone": "<PHONE>",
    "card": "<CARD_NUMBER>",
    "iban": "<IBAN>",
    "national_id": "<NATIONAL_ID>",
    "api_key": "<KEY>",
}
"""What stands in place of each kind."""

KINDS = tuple(MASKS)

_RANK = {kind: rank for rank, kind in enumerate(("api_key", "email", "iban", "card", "national_id", "ip", "phone"))}
"""Where finds overlap, the lower wins: the stronger evidence."""

_BEFORE, _AFTER = 64, 64
"""Bytes about a place that its check may see; a key's block and a token's value have more after them."""
_LONG_AFTER = {scan.PEM: words.PEM_BYTES, scan.TOKEN: 4096}


def find(text: pa.LargeStringArray, kinds: tuple[str, ...] = KINDS, *, reserved: bool = True) -> pa.RecordBatch:
    """Personal data of each document. What is found of one kind does not depend on the other kinds asked for.

    Args:
        text: large_string[n] without nulls.
        kinds: some of KINDS, in any order.
        reserved: whether values that are reserved for examples count, too.

    Returns:
        schema.pii_group(kinds), n rows: spans in bytes of the text, sorted, apart; how many of each kind, and of all.

    Raises:
        ValueError: an unknown kind, or text of another type or with nulls.
    """
    if unknown := sorted(set(kinds) - set(KINDS)):
        raise ValueError(f"unknown kinds of personal data {unknown}; known are {', '.join(KINDS)}")
    docs, starts, stops, names = [], [], [], []
    for doc, start, stop, kind in _settled(text, reserved):
        if kind in kinds:
            docs.append(doc)
            starts.append(start)
            stops.append(stop)
            names.append(kind)
    rows = np.array(docs, np.int64)
    total = np.bincount(rows, minlength=len(text))
    offsets = np.concatenate([[0], np.cumsum(total)])
    found = spans(offsets, np.array(starts, np.int64), np.array(stops, np.int64), pa.array(names, pa.string()))
    of_kind = {kind: rows[[name == kind for name in names]] if names else rows for kind in kinds}
    counts = [np.bincount(of_kind[kind], minlength=len(text)) for kind in kinds]
    columns = [found, *(pa.array(count, pa.int32()) for count in (*counts, total))]
    return pa.record_batch(columns, schema=schema.pii_group(kinds))


def _settled(text: pa.LargeStringArray, reserved: bool) -> Iterator[tuple[int, int, int, str]]:
    """(document, begin, end, kind) of all finds, in text order, without overlaps."""
    before, here = -1, list[tuple[int, int, str]]()
    for doc, found in _finds(text, reserved):
        if doc != before:
            yield from ((before, *one) for one in _apart(here))
            before, here = doc, []
        here.append(found)
    yield from ((before, *one) for one in _apart(here))


def _apart(found: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    if len(found) < 2:
        return found
    kept: list[tuple[int, int, str]] = []
    for one in sorted(set(found), key=lambda f: (_RANK[f[2]], f[0], -f[1])):
        if all(one[1] <= other[0] or other[1] <= one[0] for other in kept):
            kept.append(one)
    return sorted(kept)


def _finds(text: pa.LargeStringArray, reserved: bool) -> Iterator[tuple[int, tuple[int, int, str]]]:
    """Every find with its document; they may overlap."""
    places = scan.places(text)
    if not len(places.doc):
        return
    data, bounds = text_buffers(text)
    view = data.data
    ends = bounds[1:] - bounds[:-1]
    rows = zip(*(column.tolist() for column in vars(places).values()), strict=True)
    for doc, kind, start, stop, facts, cue in rows:
        first, size = int(bounds[doc]), int(ends[doc])
        low, high = max(0, start - _BEFORE), min(size, stop + _LONG_AFTER.get(kind, _AFTER))
        window = bytes(view[first + low : first + high])
        for a, b, name in _CHECKS[kind](window, start - low, stop - low, facts, low, cue, reserved):
            yield doc, (a + low, b + low, name)


Check = Callable[[bytes, int, int, int, int, int, bool], Iterator[tuple[int, int, str]]]
_CHECKS: dict[int, Check] = {
    scan.EMAIL: lambda w, a, b, facts, low, cue, r: words.email(w, a, facts - low, b, r),
    scan.NUMBERS: lambda w, a, b, facts, low, cue, r: numbers.in_numbers(run_of(w, a, b), facts, cue, r),
    scan.IBAN: lambda w, a, b, facts, low, cue, r: words.account(w, a),
    scan.CODE: lambda w, a, b, facts, low, cue, r: words.code(w, a, b, cue),
    scan.TOKEN: lambda w, a, b, facts, low, cue, r: words.key(w, a, b),
    scan.PEM: lambda w, a, b, facts, low, cue, r: words.private_key(w, a),
    scan.IP6: lambda w, a, b, facts, low, cue, r: numbers.address6(w, a, r),
}
