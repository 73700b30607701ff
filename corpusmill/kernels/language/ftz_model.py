"""Compressed fastText models (.ftz) as tables for `ftz_predict`.

The file format is fastText's, version 12: arguments, dictionary, the map of n-gram buckets that were kept, the input
matrix by product quantisation (Joulin et al. 2016, arXiv:1612.03651), the output matrix. Read are classifiers with a
hierarchical softmax and no word n-grams, as lid.176.ftz; other models are None here, and go through fastText itself.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

MAGIC, VERSION = 793712314, 12
_HIERARCHICAL, _SUPERVISED, _NO_WORD_NGRAMS = 1, 3, 1
_END = b"</s>"
_HASH, _PRIME = 2166136261, 16777619
SPREAD = 2654435761
"""Knuth's multiplier: places of buckets in their table."""


@dataclass(frozen=True)
class Tables:
    """A model with R rows of E numbers, W words, L labels."""

    labels: tuple[str, ...]
    rows: NDArray[np.float32]
    """float32[R, E]: words first, then kept n-grams."""
    outputs: NDArray[np.float32]
    """float32[L, E], of the inner nodes."""
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    """int32[2 L - 1], children in the Huffman tree; -1: a leaf, whose number is its label."""
    kept: NDArray[np.uint8]
    """A bit for each bucket: whether its row was kept."""
    keys: NDArray[np.int32]
    places: NDArray[np.int32]
    """Hash table of kept buckets (-1: empty) and their places behind the words."""
    slots: NDArray[np.int32]
    """Hash table of words (-1: empty)."""
    starts: NDArray[np.int64]
    letters: NDArray[np.uint8]
    """Bytes of the words; word w is letters[starts[w]:starts[w + 1]]."""
    sizes: NDArray[np.int64]
    """Buckets, shortest and longest n-gram, the word that ends a line."""


class _Reader:
    def __init__(self, data: bytes | mmap.mmap) -> None:
        self.data, self.at = data, 0

    def numbers(self, form: str) -> tuple[int, ...]:
        values = struct.unpack_from(f"<{form}", self.data, self.at)
        self.at += struct.calcsize(f"<{form}")
        return values

    def array(self, kind: type, count: int) -> NDArray:
        values: NDArray = np.frombuffer(self.data, kind, count, self.at).copy()
        self.at += values.nbytes
        return values

    def skip(self, size: int) -> None:
        if size < 0 or self.at + size > len(self.data):
            raise ValueError("bytes are missing")
        self.at += size

    def word(self) -> bytes:
        end = self.data.find(b"\0", self.at)
        if end < 0:
            raise ValueError("a word does not end")
        word, self.at = self.data[self.at : end], end + 1
        return word


def labels_of(path: str | Path) -> tuple[str, ...]:
    """Labels of a fastText model, compressed or not, from its dictionary alone; none where it is no such file."""
    try:
        with Path(path).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _labels(_Reader(data))
    except (struct.error, ValueError, UnicodeDecodeError):  # cut short, empty, or no fastText file at all
        return ()


def _labels(file: _Reader) -> tuple[str, ...]:
    if file.numbers("ii")[0] != MAGIC:
        return ()
    file.numbers("12id")
    count, _, _ = file.numbers("3i")
    file.numbers("2q")
    entries = [(file.word(), file.numbers("qb")[1]) for _ in range(count)]
    return tuple(word.decode("utf-8") for word, is_label in entries if is_label)


def check_whole(path: Path) -> None:
    """Walk over a fastText model, compressed or not: the library loads one that is cut short without a word, or hangs.

    Raises:
        ValueError: the file is no such model, or its end is missing.
    """
    with path.open("rb") as stream:
        if stream.read(4) != MAGIC.to_bytes(4, "little"):
            raise ValueError("not a fastText model: it does not begin as one")
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                _walk(_Reader(data))
            except (struct.error, ValueError) as err:
                raise ValueError(f"a fastText model whose end is missing: it has {len(data):,} bytes only") from err


def _walk(file: _Reader) -> None:
    file.skip(2 * 4 + 12 * 4 + 8)  # magic, version, arguments
    count, _, _, _, pruned = file.numbers("3i2q")
    for _ in range(count):
        file.word()
        file.skip(9)
    file.skip(8 * max(pruned, 0))
    (quantised,) = file.numbers("?")
    _skip_matrix(file, quantised)
    (quantised_output,) = file.numbers("?")
    _skip_matrix(file, quantised and quantised_output)


def _skip_matrix(file: _Reader, quantised: int) -> None:
    if not quantised:
        height, width = file.numbers("2q")
        file.skip(4 * height * width)
        return
    normed, height, _, codes = file.numbers("?2qi")
    file.skip(codes)
    file.skip(4 * 256 * file.numbers("4i")[0])
    if normed:
        file.skip(height)
        file.skip(4 * 256 * file.numbers("4i")[0])


def read_tables(path: Path) -> Tables | None:
    """The tables of a model file; None where it is of another kind (or no model: fastText says so)."""
    try:
        return _tables(_Reader(path.read_bytes()))
    except (struct.error, ValueError):  # cut short, or no fastText file at all
        return None


def _tables(file: _Reader) -> Tables | None:
    if file.numbers("ii") != (MAGIC, VERSION):
        return None
    _, _, _, _, _, word_ngrams, loss, model, buckets, shortest, longest, _ = file.numbers("12i")
    file.numbers("d")
    if (word_ngrams, loss, model) != (_NO_WORD_NGRAMS, _HIERARCHICAL, _SUPERVISED) or not 0 < shortest <= longest:
        return None
    count, word_count, _ = file.numbers("3i")
    _, pruned = file.numbers("2q")
    entries: list[tuple[bytes, int]] = []
    for _ in range(count):
        word = file.word()
        entries.append((word, file.numbers("qb")[0]))  # and whether it is a label: these come last
    if pruned <= 0:
        return None
    kept_buckets = file.array(np.int32, 2 * pruned).reshape(-1, 2)
    (quantised,) = file.numbers("?")
    if not quantised:
        return None
    rows = _quantised_rows(file)
    (quantised_output,) = file.numbers("?")
    words, counts = [word for word, _ in entries[:word_count]], [number for _, number in entries[word_count:]]
    if quantised_output or _END not in words:
        return None
    height, width = file.numbers("2q")
    outputs = file.array(np.float32, height * width).reshape(height, width)
    left, right = huffman(counts)
    kept, keys, places = _bucket_table(kept_buckets, buckets)
    starts = np.cumsum([0, *map(len, words)]).astype(np.int64)
    sizes = np.array([buckets, shortest, longest, words.index(_END)], np.int64)
    labels = tuple(label.decode("utf-8") for label, _ in entries[word_count:])
    letters = np.frombuffer(b"".join(words), np.uint8).copy()
    return Tables(labels, rows, outputs, left, right, kept, keys, places, _word_table(words), starts, letters, sizes)


def _quantised_rows(file: _Reader) -> NDArray[np.float32]:
    """Rows of the input matrix: a centroid for each part, times the row's norm where norms are kept."""
    (normed,) = file.numbers("?")
    height, width = file.numbers("2q")
    (size,) = file.numbers("i")
    codes = file.array(np.uint8, size).reshape(height, -1)
    _, parts, wide, last = file.numbers("4i")
    centroids = file.array(np.float32, width * 256)
    rows = np.empty((height, width), np.float32)
    for part in range(parts):
        columns = wide if part < parts - 1 else last
        begin = part * 256 * wide
        table = centroids[begin : begin + 256 * columns].reshape(256, columns)
        rows[:, part * wide : part * wide + columns] = table[codes[:, part]]
    if normed:
        norm_codes = file.array(np.uint8, height)
        norm_width, *_ = file.numbers("4i")
        rows *= file.array(np.float32, norm_width * 256)[norm_codes][:, None]
    return rows


def huffman(counts: Sequence[int]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Children of each node of the tree over labels with these counts, which descend; as fastText builds it."""
    size = len(counts)
    left, right = np.full(2 * size - 1, -1, np.int32), np.full(2 * size - 1, -1, np.int32)
    weights = [*counts, *[10**15] * (size - 1)]
    leaf, node = size - 1, size
    for parent in range(size, 2 * size - 1):
        pair = []
        for _ in range(2):
            if leaf >= 0 and weights[leaf] < weights[node]:
                pair.append(leaf)
                leaf -= 1
            else:
                pair.append(node)
                node += 1
        left[parent], right[parent] = pair
        weights[parent] = weights[pair[0]] + weights[pair[1]]
    return left, right


def _bucket_table(
    pairs: NDArray[np.int32], buckets: int
) -> tuple[NDArray[np.uint8], NDArray[np.int32], NDArray[np.int32]]:
    kept = np.zeros(buckets // 8 + 1, np.uint8)
    size = 1 << (3 * len(pairs)).bit_length()
    keys, places = np.full(size, -1, np.int32), np.zeros(size, np.int32)
    for bucket, place in pairs.tolist():
        kept[bucket >> 3] |= 1 << (bucket & 7)
        slot = bucket * SPREAD & (size - 1)
        while keys[slot] >= 0:
            slot = (slot + 1) & (size - 1)
        keys[slot], places[slot] = bucket, place
    return kept, keys, places


def _word_table(words: Sequence[bytes]) -> NDArray[np.int32]:
    size = 1 << (3 * len(words)).bit_length()
    slots = np.full(size, -1, np.int32)
    for number, word in enumerate(words):
        h = _HASH
        for byte in word:  # FNV-1a over signed bytes
            h = ((h ^ (byte if byte < 128 else byte | 0xFFFFFF00)) * _PRIME) & 0xFFFFFFFF
        slot = h & (size - 1)
        while slots[slot] >= 0:
            slot = (slot + 1) & (size - 1)
        slots[slot] = number
    return slots
