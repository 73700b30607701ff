"""Repeated word n-grams, n = 2 to 10, as others than datatrove count them (that: kernels/repeats.py).

* DOLMA: top n-gram: its characters times its count, even where that is 1. Duplicated: characters of every n-gram that
  occurs twice or more, overlaps counted again and again, of the characters of all n-grams.
* DCLM: top n-gram: as above, 0 where no n-gram occurs twice, the longest of equally frequent ones. Duplicated:
  characters of the words in any n-gram that occurs twice or more, first copies too.
* REDPAJAMA: as DCLM, but of equally frequent n-grams the earliest.
* NEMO: top n-gram: the earliest of the most frequent; what counts is where it stands in the text (`count_in_text`).
  Duplicated: second and later copies, overlaps counted once, with the blanks between their words.

Method: that of kernels/repeats.py: an n-gram can only repeat where its first n - 1 words do.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.compiled import kernel
from corpusmill.kernels.bytes.blanks import starts_with
from corpusmill.kernels.bytes.bytehash import U, address_of
from corpusmill.kernels.words.table import WordTable, text_buffers

DOLMA, DCLM, REDPAJAMA, NEMO = range(4)

_BASE = U(0x9E3779B97F4A7C15)
SIZES = tuple(range(2, 11))


def count_ngrams(table: WordTable, style: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """(counts, totals, places), int64[D, 9] each, a column for each n of SIZES.

    counts: characters of the top n-gram (n to 4) or of duplicated n-grams. totals: characters of all n-grams. places:
    number of the first word of the top n-gram (n to 4), -1 where the document has fewer words.
    """
    shape = (len(table), len(SIZES))
    counts, totals, places = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.full(shape, -1, np.int64)
    longest = int(np.diff(table.offsets).max(initial=0))
    slots = 1 << max(4, (2 * longest).bit_length())
    _count(
        table.offsets,
        table.exact,
        table.chars,
        style,
        np.empty(longest + 1, np.uint64),
        np.empty(longest + 1, np.int64),
        np.empty(longest + 1, np.int32),
        np.empty(longest + 1, np.int32),
        np.empty(slots, np.uint64),
        np.zeros(slots, np.int64),
        np.empty(slots, np.int32),
        np.empty(slots, np.int32),
        counts,
        totals,
        places,
    )
    return counts, totals, places


@kernel
def _count(
    offsets: NDArray[np.int64],
    exact: NDArray[np.uint64],
    chars: NDArray[np.int32],
    style: int,
    prefix: NDArray[np.uint64],
    length: NDArray[np.int64],
    places: NDArray[np.int32],
    slot_at: NDArray[np.int32],
    keys: NDArray[np.uint64],
    stamps: NDArray[np.int64],
    times: NDArray[np.int32],
    first: NDArray[np.int32],
    counts: NDArray[np.int64],
    totals: NDArray[np.int64],
    top_places: NDArray[np.int64],
) -> None:
    stamp = 0
    for d in range(len(offsets) - 1):
        begin, words = U(offsets[d]), U(offsets[d + 1]) - U(offsets[d])
        prefix[0], length[0] = U(0), 0
        i = U(0)
        while i < words:
            prefix[i + U(1)] = prefix[i] * _BASE + exact[begin + i]
            length[i + U(1)] = length[i] + chars[begin + i]
            places[i] = i
            i += U(1)
        slots = U(16)
        while slots < U(2) * words:
            slots *= U(2)
        found = words
        power = _BASE
        for n in range(2, 11):
            power *= _BASE
            size = U(n)
            if words < size:
                break
            if style == DOLMA and n >= 5:
                i = U(0)
                while i + size <= words:
                    totals[d, n - 2] += length[i + size] - length[i]
                    i += U(1)
            stamp += 1
            most, earliest = 1, U(0)
            j = U(0)
            while j < found:
                i = U(places[j])
                if i + size > words:
                    found = j
                    break
                key = prefix[i + size] - prefix[i] * power
                slot = (key ^ (key >> U(32))) & (slots - U(1))
                while stamps[slot] == stamp and keys[slot] != key:
                    slot = (slot + U(1)) & (slots - U(1))
                if stamps[slot] != stamp:
                    stamps[slot], keys[slot], times[slot], first[slot] = stamp, key, 1, i
                else:
                    times[slot] += 1
                    here = U(first[slot])
                    better = here < earliest
                    if style == DCLM:
                        better = length[here + size] - length[here] > length[earliest + size] - length[earliest]
                    if times[slot] > most or (times[slot] == most and better):
                        most, earliest = times[slot], here
                slot_at[j] = slot
                j += U(1)
            kept, covered, dup_chars = U(0), U(0), 0
            j = U(0)
            while j < found:
                i, slot = U(places[j]), U(slot_at[j])
                j += U(1)
                if times[slot] < 2:
                    continue
                places[kept] = i
                kept += U(1)
                if n < 5:
                    continue
                whole = length[i + size] - length[i]
                new = max(i, covered)
                if style == DOLMA:
                    dup_chars += whole
                elif style == NEMO:
                    if first[slot] != np.int32(i):
                        dup_chars += length[i + size] - length[new] + min(int(i + size - new), n - 1)
                        covered = i + size
                else:
                    dup_chars += length[i + size] - length[new]
                    covered = i + size
            found = kept
            if n >= 5:
                counts[d, n - 2] = dup_chars
            else:
                top_places[d, n - 2] = int(earliest)
                if most > 1 or style in (DOLMA, NEMO):
                    counts[d, n - 2] = most * (length[earliest + size] - length[earliest])


def count_in_text(text: pa.LargeStringArray, table: WordTable, places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Characters that go from each text where its top n-grams, words joined by single spaces, are taken out of it:
    int64[D, 3] for n = 2, 3, 4; other words that hold one lose it too.

    Args:
        text: large_string[D]. table: its words as they stand. places: of `count_ngrams`.
    """
    data, bounds = text_buffers(text)
    counts = np.zeros((len(text), 3), np.int64)
    longest = int(np.diff(bounds).max(initial=0))
    phrase = np.empty(longest + 4, np.uint8)
    _take_out(
        data, address_of(data), bounds, table.offsets, table.start, table.stop, table.chars, places, phrase,
        address_of(phrase), counts,
    )  # fmt: skip
    return counts


@kernel
def _take_out(
    data: NDArray[np.uint8],
    address: U,
    bounds: NDArray[np.int64],
    offsets: NDArray[np.int64],
    start: NDArray[np.int32],
    stop: NDArray[np.int32],
    chars: NDArray[np.int32],
    places: NDArray[np.int64],
    phrase: NDArray[np.uint8],
    phrase_at: U,
    counts: NDArray[np.int64],
) -> None:
    for d in range(len(bounds) - 1):
        text, end = bounds[d], bounds[d + 1]
        for n in range(2, 5):
            if places[d, n - 2] < 0:
                continue
            size, length = 0, n - 1
            for t in range(offsets[d] + places[d, n - 2], offsets[d] + places[d, n - 2] + n):
                length += chars[t]
                if size:
                    phrase[size] = 0x20
                    size += 1
                for i in range(text + start[t], text + stop[t]):
                    phrase[size] = data[i]
                    size += 1
            i = text
            while i + size <= end:
                if data[i] == phrase[0] and starts_with(address + U(i), address + U(end), phrase_at, U(size)):
                    counts[d, n - 2] += length
                    i += size
                else:
                    i += 1
