"""Edits: byte spans of a stored text that leave a view of it, cut out or replaced. The stored text never changes.

Spans (schema.SPANS) lie within a text, are sorted and do not overlap. Views of a text: `raw` as it is stored, `clean`
without what rule edits cut, `final` also without later cuts and with personal data masked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.compiled import kernel
from corpusmill.kernels.words.table import text_buffers
from corpusmill.schema import SPANS

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]


def no_spans(rows: int) -> pa.ListArray:
    """As many texts without an edit."""
    return pa.ListArray.from_arrays(pa.array(np.zeros(rows + 1, np.int32)), pa.array([], SPANS.value_type))


def spans(offsets: Ints, start: Ints, end: Ints, kind: pa.Array) -> pa.ListArray:
    """Spans of N texts: text i has spans offsets[i] to offsets[i + 1].

    Args:
        offsets: int64[N + 1]. start, end: int64[S], bytes. kind: string[S].
    """
    values = pa.StructArray.from_arrays(
        [pa.array(start, pa.int64()), pa.array(end, pa.int64()), kind.cast(pa.string())], fields=list(SPANS.value_type)
    )
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values)


def parts(found: pa.ListArray) -> tuple[Ints, Ints, Ints, pa.Array]:
    """(offsets, start, end, kind) of spans, as `spans` takes them."""
    offsets = found.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    first = int(offsets[0]) if len(offsets) else 0
    values = found.values.slice(first, int(offsets[-1]) - first if len(offsets) else 0)
    start, end = (np.ascontiguousarray(values.field(i).to_numpy(zero_copy_only=False), np.int64) for i in (0, 1))
    return offsets - first, start, end, values.field(2)


def united(layers: Sequence[pa.ListArray]) -> pa.ListArray:
    """Spans of several layers over the same texts as one: what overlaps or, within one layer's kind, touches is one
    span, of the kind of the earliest layer that has part in it.

    Args:
        layers: each with spans of the same N texts; the first weigh most (cuts before masks).
    """
    layers = [layer for layer in layers if len(layer.values)]
    if len(layers) == 1:
        return layers[0]
    if not layers:
        raise ValueError("no layer has a span; use no_spans")
    taken = [parts(layer) for layer in layers]
    rows = len(layers[0])
    row = np.concatenate([np.repeat(np.arange(rows), np.diff(offsets)) for offsets, *_ in taken])
    start, end = (np.concatenate([part[i] for part in taken]) for i in (1, 2))
    layer = np.repeat(np.arange(len(taken)), [len(part[1]) for part in taken])
    kinds = pa.concat_arrays([part[3] for part in taken])
    order = np.lexsort((layer, end, start, row))
    offsets, first, last, chosen = _unite(rows, row[order], start[order], end[order], layer[order])
    return spans(offsets, first, last, kinds.take(pa.array(order[chosen])))


def stored(start: int, end: int, cut: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Where a piece of an edited text stands in the stored one, what was cut inside it included.

    Args:
        start, end: bytes of the edited text, start before end. cut: spans that were cut out, sorted.
    """
    before_start = before_end = 0  # bytes cut out before either
    for first, after in cut:
        place = first - before_end  # in the edited text
        if place >= end:
            break
        before_end += after - first
        if place <= start:
            before_start = before_end
    return start + before_start, end + before_end


def apply(text: pa.LargeStringArray, found: pa.ListArray, masks: Mapping[str, str] | None = None) -> pa.Array:
    """Texts with their spans cut out, or replaced where `masks` has the span's kind.

    Args:
        text: N texts without nulls. found: their spans. masks: kind -> what stands in its place.

    Raises:
        ValueError: spans of another number of texts, or one that leaves its text or overlaps the one before.
    """
    if len(text) != len(found):
        raise ValueError(f"{len(text)} texts and spans of {len(found)}")
    if not len(found.values):
        return text
    data, bounds = text_buffers(text)
    offsets, start, end, kind = parts(found)
    encoded = kind.dictionary_encode()
    fillers = [(masks or {}).get(name, "").encode() for name in encoded.dictionary.to_pylist()]
    filler_ends = np.cumsum([0, *(len(filler) for filler in fillers)]).astype(np.int64)
    code = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    bounds = np.asarray(bounds, np.int64)
    sizes = np.empty(len(text) + 1, np.int64)
    if (fault := _sizes(bounds, offsets, start, end, code, filler_ends, sizes)) >= 0:
        raise ValueError(f"text {fault}: a span leaves the text or overlaps the one before")
    made = np.empty(int(sizes[-1]), np.uint8)
    fill = np.frombuffer(b"".join(fillers) or b"\0", np.uint8)
    _copy(data, bounds, offsets, start, end, code, fill, filler_ends, sizes, made)
    return pa.LargeStringArray.from_buffers(len(text), pa.py_buffer(sizes), pa.py_buffer(made))


@kernel
def _unite(rows: int, row: Ints, start: Ints, end: Ints, layer: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    count = len(row)
    offsets, first, last = np.zeros(rows + 1, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    chosen = np.empty(count, np.int64)
    made, before = 0, -1
    for i in range(count):
        if row[i] == before and start[i] < last[made - 1]:
            last[made - 1] = max(last[made - 1], end[i])
            if layer[i] < layer[chosen[made - 1]]:
                chosen[made - 1] = i
        else:
            first[made], last[made], chosen[made] = start[i], end[i], i
            made += 1
            before = row[i]
            offsets[before + 1] += 1
    return np.cumsum(offsets), first[:made], last[:made], chosen[:made]


@kernel
def _sizes(bounds: Ints, offsets: Ints, start: Ints, end: Ints, code: Ints, filler_ends: Ints, sizes: Ints) -> int:
    """Ends of the new texts in `sizes`; the number of a text whose spans are wrong, or -1."""
    total = 0
    sizes[0] = 0
    for d in range(len(offsets) - 1):
        size = bounds[d + 1] - bounds[d]
        total += size
        at = 0
        for s in range(offsets[d], offsets[d + 1]):
            if start[s] < at or end[s] < start[s] or end[s] > size:
                return d
            at = end[s]
            total += filler_ends[code[s] + 1] - filler_ends[code[s]] - (end[s] - start[s])
        sizes[d + 1] = total
    return -1


@kernel
def _copy(
    data: Bytes,
    bounds: Ints,
    offsets: Ints,
    start: Ints,
    end: Ints,
    code: Ints,
    fill: Bytes,
    filler_ends: Ints,
    sizes: Ints,
    made: Bytes,
) -> None:
    for d in range(len(offsets) - 1):
        base, at, to = bounds[d], 0, sizes[d]
        for s in range(offsets[d], offsets[d + 1] + 1):
            stop = start[s] if s < offsets[d + 1] else bounds[d + 1] - base
            made[to : to + stop - at] = data[base + at : base + stop]
            to += stop - at
            if s < offsets[d + 1]:
                a, b = filler_ends[code[s]], filler_ends[code[s] + 1]
                made[to : to + b - a] = fill[a:b]
                to += b - a
                at = end[s]
