"""The best label of each line by a compressed fastText model, in a quarter of fastText's time.

fastText looks each character n-gram up in a hash table of nodes all over the memory, though nearly none was kept: here
a bit says so first. Features, their order and float32 arithmetic are fastText's: a line's vector is the mean of the
rows of its known words, kept n-grams and the end of the line; the label is the best leaf of the tree, depth first.
Exponentials and logarithms are our own, rounded to float32: scores are stored, and libm's differ between machines.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpusmill.compiled import inner, kernel
from corpusmill.kernels.elementary import exp, log
from corpusmill.kernels.language.ftz_model import SPREAD, Tables

_HASH, _PRIME, _SIGNED = np.uint32(2166136261), np.uint64(16777619), np.uint32(0xFFFFFF00)
_SPREAD = np.int64(SPREAD)
_OPEN, _CLOSE, _BLANK = 60, 62, 32  # "<" and ">" stand for the edges of a word in its n-grams
_LABEL = np.frombuffer(b"__label__", np.uint8).copy()
_FLOOR = 1e-5


def best_labels(
    tables: Tables, data: bytes, offsets: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Number of the best label and its probability for each of N lines.

    Args:
        data: the lines, one after the other, with blanks as white space. offsets: int64[N + 1].
    """
    count = len(offsets) - 1
    label, probability = np.zeros(count, np.int32), np.zeros(count, np.float32)
    _best_labels(
        np.frombuffer(data or b" ", np.uint8),
        offsets,
        tables.rows,
        tables.outputs,
        tables.left,
        tables.right,
        tables.kept,
        tables.keys,
        tables.places,
        tables.slots,
        tables.starts,
        tables.letters,
        tables.sizes,
        label,
        probability,
    )
    return label, probability


@inner
def _hashed(h: np.uint32, byte: Any) -> np.uint32:
    signed = np.uint32(byte) | _SIGNED if byte >= 128 else np.uint32(byte)
    return np.uint32(np.uint64(h ^ signed) * _PRIME)


@inner
def _known_word(
    data: NDArray[np.uint8],
    start: int,
    stop: int,
    h: np.uint32,
    slots: NDArray[np.int32],
    starts: NDArray[np.int64],
    letters: NDArray[np.uint8],
) -> int:
    """Number of a word, or -1."""
    mask = len(slots) - 1
    slot = np.int64(h) & mask
    while slots[slot] >= 0:
        word = slots[slot]
        first, size = starts[word], starts[word + 1] - starts[word]
        if size == stop - start:
            i = 0
            while i < size and letters[first + i] == data[start + i]:
                i += 1
            if i == size:
                return word
        slot = (slot + 1) & mask
    return -1


@inner
def _is_label(data: NDArray[np.uint8], start: int, stop: int) -> bool:
    if stop - start < len(_LABEL):
        return False
    i = 0
    while i < len(_LABEL) and data[start + i] == _LABEL[i]:
        i += 1
    return i == len(_LABEL)


@inner
def _add_ngrams(
    data: NDArray[np.uint8],
    start: int,
    stop: int,
    rows: NDArray[np.float32],
    words: int,
    kept: NDArray[np.uint8],
    keys: NDArray[np.int32],
    places: NDArray[np.int32],
    sizes: NDArray[np.int64],
    total: NDArray[np.float32],
) -> int:
    """Add the rows of a word's n-grams, edges included, in fastText's order; how many there were."""
    buckets, shortest, longest = np.uint32(sizes[0]), sizes[1], sizes[2]
    size, mask, added = stop - start + 2, len(keys) - 1, 0
    for p in range(size):
        byte = _OPEN if p == 0 else _CLOSE if p == size - 1 else np.int64(data[start + p - 1])
        if byte & 0xC0 == 0x80:
            continue
        h, i, n = _HASH, p, 1
        while i < size and n <= longest:
            h = _hashed(h, byte)
            i += 1
            while i < size:
                byte = _CLOSE if i == size - 1 else np.int64(data[start + i - 1])
                if byte & 0xC0 != 0x80:
                    break
                h = _hashed(h, byte)
                i += 1
            if n >= shortest and not (n == 1 and (p == 0 or i == size)):
                bucket = np.int64(h % buckets)
                if kept[bucket >> 3] >> (bucket & 7) & 1:
                    slot = bucket * _SPREAD & mask
                    while keys[slot] != bucket:
                        slot = (slot + 1) & mask
                    row = words + places[slot]
                    for k in range(len(total)):
                        total[k] += rows[row, k]
                    added += 1
            n += 1
    return added


@inner
def _log(x: np.float32) -> np.float32:
    return np.float32(log(np.float64(x) + _FLOOR))


@inner
def _best_leaf(
    vector: NDArray[np.float32],
    outputs: NDArray[np.float32],
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    nodes: NDArray[np.int32],
    scores: NDArray[np.float32],
) -> tuple[int, np.float32]:
    """The label with the greatest product of branch probabilities, and that; depth first, left before right."""
    labels = len(outputs)
    best, leaf, floor = np.float32(-1e30), -1, np.float32(log(_FLOOR))
    nodes[0], scores[0], top = 2 * labels - 2, np.float32(0), 1
    while top > 0:
        top -= 1
        node, score = nodes[top], scores[top]
        if score < floor or score < best:
            continue
        if left[node] < 0:
            if leaf < 0 or score > best:
                best, leaf = score, node
            continue
        dot = np.float32(0)
        for k in range(len(vector)):
            dot += outputs[node - labels, k] * vector[k]
        share = np.float32(1.0 / (1.0 + np.float64(np.float32(exp(np.float64(-dot))))))
        nodes[top], scores[top] = right[node], np.float32(score + _log(share))
        nodes[top + 1] = left[node]
        scores[top + 1] = np.float32(score + _log(np.float32(1.0 - np.float64(share))))
        top += 2
    return leaf, np.float32(exp(np.float64(best)))


@kernel
def _best_labels(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    rows: NDArray[np.float32],
    outputs: NDArray[np.float32],
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    kept: NDArray[np.uint8],
    keys: NDArray[np.int32],
    places: NDArray[np.int32],
    slots: NDArray[np.int32],
    starts: NDArray[np.int64],
    letters: NDArray[np.uint8],
    sizes: NDArray[np.int64],
    label: NDArray[np.int32],
    probability: NDArray[np.float32],
) -> None:
    vector = np.empty(rows.shape[1], np.float32)
    nodes, scores = np.empty(len(left) + 2, np.int32), np.empty(len(left) + 2, np.float32)
    words = len(starts) - 1
    for n in range(len(offsets) - 1):
        vector[:] = 0
        count, at, end = 0, offsets[n], offsets[n + 1]
        while at < end:
            start, h = at, _HASH
            while at < end and data[at] != _BLANK and data[at] != 0:
                h = _hashed(h, np.int64(data[at]))
                at += 1
            if at > start and not _is_label(data, start, at):
                word = _known_word(data, start, at, h, slots, starts, letters)
                if word >= 0:
                    for k in range(len(vector)):
                        vector[k] += rows[word, k]
                    count += 1
                count += _add_ngrams(data, start, at, rows, words, kept, keys, places, sizes, vector)
            at += 1
        for k in range(len(vector)):
            vector[k] += rows[sizes[3], k]
        vector *= np.float32(1.0 / (count + 1))
        label[n], probability[n] = _best_leaf(vector, outputs, left, right, nodes, scores)
