"""Shingles of texts and their MinHash signatures.

A shingle is `ngram` consecutive words of the plain form: lower case, punctuation and symbols out, digits kept; or so
many characters of the normalised text (those words with one space between). A text with fewer has none: it goes through
exact deduplication only.

Method: Broder 1997. The hash of a shingle is a polynomial over the hashes of its folded words (Rabin-Karp modulo
2**64), mixed; a permutation is x -> a x + b modulo 2**32 on its upper half, a odd. The share of equal places of two
signatures of K permutations estimates the Jaccard similarity J of the sets of shingles with standard error sqrt(J (1 -
J) / K).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.compiled import kernel
from corpusmill.kernels.bytes.bytehash import U
from corpusmill.kernels.bytes.hashing import mix64
from corpusmill.kernels.duplicates.text_digest import normalise
from corpusmill.kernels.words.hashes import word_hashes
from corpusmill.kernels.words.plain_form import plain
from corpusmill.kernels.words.table import IS_WORD, WordTable, slices, text_buffers, word_table

EMPTY = 0xFFFFFFFF
"""Every place of the signature of a text without shingles; leave such texts out of banding."""

_BASE = U(0x9E3779B97F4A7C15)
_WORD = np.uint8(IS_WORD)


class ShingleSets(NamedTuple):
    """Hashed shingles of D documents; those of document d are hashes[offsets[d] : offsets[d + 1]]."""

    offsets: NDArray[np.int64]
    """int64[D + 1]."""
    hashes: NDArray[np.uint64]


class Signatures(NamedTuple):
    """Signatures of D documents."""

    shingles: NDArray[np.int32]
    """int32[D]: different shingles of each; 0 where the text is shorter than one."""
    signature: NDArray[np.uint32]
    """uint32[D, K]; EMPTY where there is no shingle."""


@dataclass(frozen=True)
class Shingling:
    """What a shingle is: `n` consecutive words, or characters of the normalised text."""

    n: int = 5
    unit: str = "word"
    """word | char"""
    fold_digits: bool = False
    """Whether digits 0 to 9 count as one. Number-heavy pages then look alike: tables, logs, price lists."""

    def __post_init__(self) -> None:
        """Refuse what is no shingle."""
        if self.n < 1:
            raise ValueError(f"ngram must be at least 1, got {self.n}")
        if self.unit not in ("word", "char"):
            raise ValueError(f"a shingle is made of word or char, not {self.unit!r}")

    @property
    def identity(self) -> dict[str, object]:
        """The names under which an index remembers what its hashes are of."""
        return {
            "shingle": f"{self.n} {self.unit}s",
            "normaliser": "folded words of the plain form" + (", digits as one" if self.fold_digits else ""),
            "hash": "polynomial64",
        }

    def table(self, text: pa.LargeStringArray) -> WordTable:
        """The words or characters of a batch as a word table (of characters only the fields that shingles need)."""
        text, _ = plain(text)
        if self.fold_digits:
            text = with_one_digit(text)
        return _as_table(*(word_hashes(text) if self.unit == "word" else _characters_of(text)))


def signatures(
    text: pa.LargeStringArray,
    *,
    ngram: int,
    num_perm: int,
    seed: int,
    shingling: Shingling | None = None,
    table: WordTable | None = None,
) -> Signatures:
    """MinHash signatures, one row a document.

    Args:
        text: large_string[D] without nulls.
        ngram: words of a shingle, at least 1.
        num_perm: permutations K, at least 1.
        seed: of the permutations; signatures of different seeds do not compare.
        shingling: another kind of shingle than words; `ngram` is then not looked at.
        table: the words of these texts, where they are known already, shingles are made of words and the texts are in
            plain form.
    """
    multipliers, increments = permutations(num_perm, seed)
    kind = shingling or Shingling(ngram)
    if table is not None:
        return sign(shingles(table, kind.n), multipliers, increments)
    parts = [sign(shingles(kind.table(part), kind.n), multipliers, increments) for _, part in slices(text)]
    if not parts:
        return Signatures(np.zeros(0, np.int32), np.zeros((0, num_perm), np.uint32))
    return Signatures(np.concatenate([p.shingles for p in parts]), np.concatenate([p.signature for p in parts]))


def shingle_sets(text: pa.LargeStringArray, kind: Shingling | int) -> ShingleSets:
    """The set of shingles of each document, sorted: for exact similarities. A number: of words."""
    kind = Shingling(kind) if isinstance(kind, int) else kind
    found = shingles(kind.table(text), kind.n)
    offsets = np.zeros(len(found.offsets), np.int64)
    hashes = found.hashes.copy()
    return ShingleSets(offsets, hashes[: _sort_unique(found.offsets, hashes, offsets)])


def shingles(text: pa.LargeStringArray | WordTable, ngram: int) -> ShingleSets:
    """Every shingle of each document in text order, repeated ones as often as they occur.

    Raises:
        ValueError: ngram below 1; not a large_string array, or one with nulls.
    """
    if ngram < 1:
        raise ValueError(f"ngram must be at least 1, got {ngram}")
    table = text if isinstance(text, WordTable) else word_table(plain(text)[0])
    counts = np.maximum(table.word_counts() - (ngram - 1), 0)
    offsets = np.zeros(len(table) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    hashes = np.empty(offsets[-1], np.uint64)
    longest = int(np.diff(table.offsets).max(initial=0))
    _shingle(table.offsets, table.folded, table.flags, ngram, np.empty(longest + 1, np.uint64), offsets, hashes)
    return ShingleSets(offsets, hashes)


def sign(sets: ShingleSets, multipliers: NDArray[np.uint32], increments: NDArray[np.uint32]) -> Signatures:
    """Signatures of given shingles (repeated ones do no harm), by given permutations, uint32[K] each."""
    documents = len(sets.offsets) - 1
    distinct = np.zeros(documents, np.int32)
    signature = np.full((documents, len(multipliers)), EMPTY, np.uint32)
    slots = 1 << max(4, (2 * int(np.diff(sets.offsets).max(initial=0))).bit_length())
    keys, stamps = np.empty(slots, np.uint64), np.full(slots, -1, np.int32)
    _sign(sets.offsets, sets.hashes, multipliers, increments, keys, stamps, distinct, signature)
    return Signatures(distinct, signature)


def permutations(num_perm: int, seed: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Odd multipliers and increments, uint32[K] each: 64 bits of blake2b over the permutation's number, keyed by the
    seed.

    The first k of K permutations are the k permutations of that seed.
    """
    if num_perm < 1:
        raise ValueError(f"num_perm must be at least 1, got {num_perm}")
    key = hashlib.blake2b(f"minhash1|{seed}".encode(), digest_size=32).digest()
    drawn = b"".join(hashlib.blake2b(k.to_bytes(8, "little"), digest_size=8, key=key).digest() for k in range(num_perm))
    pairs = np.frombuffer(drawn, "<u4").reshape(num_perm, 2).astype(np.uint32)
    return np.ascontiguousarray(pairs[:, 0] | 1), np.ascontiguousarray(pairs[:, 1])


def with_one_digit(text: pa.LargeStringArray) -> pa.LargeStringArray:
    """The texts with every digit 1 to 9 replaced by 0; other scripts' digits stay."""
    data, bounds = text_buffers(text)
    folded = np.array(data[bounds[0] : bounds[-1]])
    folded[(folded >= 0x30) & (folded <= 0x39)] = 0x30  # no longer character has such a byte
    offsets = pa.py_buffer((bounds - bounds[0]).astype(np.int64))
    return pa.Array.from_buffers(pa.large_string(), len(text), [None, offsets, pa.py_buffer(folded)])


def _as_table(offsets: NDArray[np.int64], folded: NDArray[np.uint64]) -> WordTable:
    """A word table of words only, with what shingles need of it."""
    none = np.zeros(0, np.int32)
    return WordTable(offsets, none, none, none, folded, folded, np.full(len(folded), IS_WORD, np.uint8))


def _characters_of(text: pa.LargeStringArray) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """The characters of the normalised texts as words: offsets and hashes."""
    normalised, ends = normalise(text)
    offsets = np.zeros(len(text) + 1, np.int64)
    folded = np.empty(len(normalised), np.uint64)
    n = int(_characters(normalised, ends, offsets, folded))
    return offsets, folded[:n]


@kernel
def _characters(
    text: NDArray[np.uint8], ends: NDArray[np.int64], offsets: NDArray[np.int64], folded: NDArray[np.uint64]
) -> int:
    n, at = 0, 0
    for d in range(len(ends)):
        while at < ends[d]:
            character = U(text[at])
            at += 1
            while at < ends[d] and text[at] & 0xC0 == 0x80:
                character = character << U(8) | U(text[at])
                at += 1
            folded[n] = mix64(character)
            n += 1
        offsets[d + 1] = n
    return n


@kernel
def _shingle(
    tokens: NDArray[np.int64],
    folded: NDArray[np.uint64],
    flags: NDArray[np.uint8],
    ngram: int,
    prefix: NDArray[np.uint64],
    offsets: NDArray[np.int64],
    hashes: NDArray[np.uint64],
) -> None:
    power = U(1)
    for _ in range(ngram):
        power *= _BASE
    size = U(ngram)
    for d in range(len(tokens) - 1):
        prefix[0] = U(0)
        words, out = U(0), U(offsets[d])
        t = U(tokens[d])
        while t < U(tokens[d + 1]):
            if flags[t] & _WORD:
                prefix[words + U(1)] = prefix[words] * _BASE + folded[t]
                words += U(1)
                if words >= size:
                    hashes[out] = mix64(prefix[words] - prefix[words - size] * power)
                    out += U(1)
            t += U(1)


@kernel
def _sort_unique(found: NDArray[np.int64], hashes: NDArray[np.uint64], offsets: NDArray[np.int64]) -> int:
    n = 0
    for d in range(len(found) - 1):
        hashes[found[d] : found[d + 1]].sort()
        for i in range(found[d], found[d + 1]):
            if i == found[d] or hashes[i] != hashes[n - 1]:
                hashes[n] = hashes[i]
                n += 1
        offsets[d + 1] = n
    return n


@kernel
def _sign(
    offsets: NDArray[np.int64],
    hashes: NDArray[np.uint64],
    multipliers: NDArray[np.uint32],
    increments: NDArray[np.uint32],
    keys: NDArray[np.uint64],
    stamps: NDArray[np.int32],
    distinct: NDArray[np.int32],
    signature: NDArray[np.uint32],
) -> None:
    for d in range(len(offsets) - 1):
        slots = U(16)
        while slots < U(2) * U(offsets[d + 1] - offsets[d]):
            slots *= U(2)
        row = signature[d]
        for i in range(offsets[d], offsets[d + 1]):
            key = hashes[i]
            slot = key & (slots - U(1))
            while stamps[slot] == d and keys[slot] != key:
                slot = (slot + U(1)) & (slots - U(1))
            if stamps[slot] == d:
                continue  # a shingle changes a signature once
            stamps[slot], keys[slot] = d, key
            distinct[d] += 1
            x = np.uint32(key >> U(32))
            for k in range(len(row)):
                row[k] = min(row[k], np.uint32(multipliers[k] * x + increments[k]))
