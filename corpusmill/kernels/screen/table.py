"""Keys of word n-grams and the table they are looked up in: Numba kernels of the benchmark screen.

A key is a polynomial of the word hashes, so a window moves on by one word in two multiplications; word hashes are
mixed, so keys are spread evenly.

Not every window is looked up. A text's words are cut into blocks of (n + 1) // 2: any window of n words holds a whole
block, so where no n-gram of the table holds the same block, none of the windows around it is in the table. Blocks go
through a blocked Bloom filter (Putze, Sanders, Singler 2007): three bits in one 64-bit word turn away all but 1 in
100 of the others, in one memory access a block.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corpusmill.compiled import inner, kernel

Ints = NDArray[np.int64]
Hashes = NDArray[np.uint64]

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_KEYS_PER_BLOCK = 4


@dataclass(frozen=True)
class KeyTable:
    """A set of distinct keys, each with its entry: its position among the keys given."""

    blocks: Hashes
    """The filter of blocks of words: a power of two of 64-bit words, 16 to 32 bits a block."""
    slot_key: Hashes
    """Open addressing: a power of two of slots, 2 to 4 a key; 0 = free."""
    slot_entry: NDArray[np.int32]


def block_words(n: int) -> int:
    """Words of a block: the longest of which any window of n words holds a whole one."""
    return (n + 1) // 2


def key_table(keys: Hashes, blocks: Hashes) -> KeyTable:
    """Table over distinct keys of n words, none of them 0, with the keys of every block of words inside those."""
    size, filtered = (1 << max(len(given) - 1, 15).bit_length() for given in (keys, blocks))
    table = KeyTable(
        np.zeros(filtered // _KEYS_PER_BLOCK, np.uint64), np.zeros(2 * size, np.uint64), np.zeros(2 * size, np.int32)
    )
    _insert(keys, blocks, table.blocks, table.slot_key, table.slot_entry)
    return table


@kernel
def windows(offsets: Ints, folded: Hashes, n: int) -> tuple[Hashes, Ints, Ints]:
    """Key, text and first word of every window of n words inside one text; every text has at least n words."""
    total = len(folded) - (n - 1) * (len(offsets) - 1)
    keys, text, word = np.empty(total, np.uint64), np.empty(total, np.int64), np.empty(total, np.int64)
    count = 0
    for i in range(len(offsets) - 1):
        for first in range(offsets[i], offsets[i + 1] - n + 1):
            keys[count] = _key(folded, first, n)
            text[count], word[count] = i, first
            count += 1
    return keys, text, word


@kernel
def find(
    offsets: Ints,
    folded: Hashes,
    n: int,
    blocks: Hashes,
    slot_key: Hashes,
    slot_entry: NDArray[np.int32],
) -> tuple[Ints, Ints, Ints]:
    """Document, first word and entry of every window of n words of one document whose key is in the table.

    Args:
        offsets, folded: int64[D + 1], and the hashes of the documents' words.
        n: words of a window.
        blocks, slot_key, slot_entry: of a KeyTable.
    """
    slot_mask = np.uint64(len(slot_key) - 1)
    size = (n + 1) // 2
    document, word = _known_blocks(offsets, folded, n, size, blocks)
    capacity, count = 64, 0
    found = np.empty((3, capacity), np.int64)
    for k in range(len(document)):
        d, block = document[k], word[k]
        first, last = offsets[d], offsets[d + 1] - n
        for i in range(max(first, block - size + 1), min(last, block) + 1):  # the block is their first whole one
            key = _key(folded, i, n)
            slot = key >> np.uint64(32) & slot_mask
            while slot_key[slot] and slot_key[slot] != key:
                slot = (slot + np.uint64(1)) & slot_mask
            if slot_key[slot] == 0:
                continue
            if count == capacity:
                found = np.concatenate((found, np.empty((3, capacity), np.int64)), axis=1)
                capacity *= 2
            found[0, count], found[1, count], found[2, count] = d, i - first, slot_entry[slot]
            count += 1
    return found[0, :count].copy(), found[1, :count].copy(), found[2, :count].copy()


@inner
def _known_blocks(offsets: Ints, folded: Hashes, n: int, size: int, blocks: Hashes) -> tuple[Ints, Ints]:
    """Document and first word (counted over all documents) of the blocks that may be in the filter."""
    mask = np.uint64(len(blocks) - 1)
    total = len(folded) // size
    document, word, keys = np.empty(total + 1, np.int64), np.empty(total + 1, np.int64), np.empty(total, np.uint64)
    count = 0
    for d in range(len(offsets) - 1):
        if offsets[d + 1] - offsets[d] < n:
            continue
        for first in range(offsets[d], offsets[d + 1] - size + 1, size):
            document[count], word[count], keys[count] = d, first, _key(folded, first, size)
            count += 1
    known = 0
    for i in range(count):  # a loop without a branch: the processor has many of its cache misses under way at once
        bits = _bits(keys[i])
        document[known], word[known] = document[i], word[i]
        known += blocks[keys[i] & mask] & bits == bits
    return document[:known], word[:known]


@inner(forceinline=True)
def _key(folded: Hashes, first: int, n: int) -> np.uint64:
    """Key of n words."""
    key = np.uint64(0)
    for k in range(first, first + n):
        key = key * _MULTIPLIER + folded[k]
    return max(key, np.uint64(1))  # 0 marks a free slot


@inner(forceinline=True)
def _bits(key: np.uint64) -> np.uint64:
    """Three bits of a block, from the upper end of the key (its block is from the lower one)."""
    one, six = np.uint64(1), np.uint64(63)
    return one << (key >> np.uint64(58)) | one << (key >> np.uint64(52) & six) | one << (key >> np.uint64(46) & six)


@kernel
def _insert(keys: Hashes, filtered: Hashes, blocks: Hashes, slot_key: Hashes, slot_entry: NDArray[np.int32]) -> None:
    block_mask, slot_mask = np.uint64(len(blocks) - 1), np.uint64(len(slot_key) - 1)
    for key in filtered:
        blocks[key & block_mask] |= _bits(key)
    for entry in range(len(keys)):
        key = keys[entry]
        slot = key >> np.uint64(32) & slot_mask
        while slot_key[slot]:
            slot = (slot + np.uint64(1)) & slot_mask
        slot_key[slot], slot_entry[slot] = key, entry
