"""Keys of word n-grams and the table they are looked up in: Numba kernels of the benchmark screen.

A key is a polynomial of the word hashes, so a window moves on by one word in two multiplications; word hashes are
mixed, so keys are spread evenly. In front of the table stands a blocked Bloom filter (Putze, Sanders, Singler
2007): three bits in one 64-bit word turn away all but 1 in 100 of the windows that are not in the table, in one
memory access.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Hashes = NDArray[np.uint64]

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_KEYS_PER_BLOCK = 4


@dataclass(frozen=True)
class KeyTable:
    """A set of distinct keys, each with its entry: its position among the keys given."""

    blocks: Hashes
    """The filter: a power of two of 64-bit words, 16 to 32 bits a key."""
    slot_key: Hashes
    """Open addressing: a power of two of slots, 2 to 4 a key; 0 = free."""
    slot_entry: NDArray[np.int32]


def key_table(keys: Hashes) -> KeyTable:
    """Table over distinct keys, none of them 0."""
    size = 1 << max(len(keys) - 1, 15).bit_length()
    table = KeyTable(
        np.zeros(size // _KEYS_PER_BLOCK, np.uint64), np.zeros(2 * size, np.uint64), np.zeros(2 * size, np.int32)
    )
    _insert(keys, table.blocks, table.slot_key, table.slot_entry)
    return table


@numba.njit(cache=True, nogil=True)
def windows(offsets: Ints, folded: Hashes, n: int) -> tuple[Hashes, Ints, Ints]:
    """Key, text and first word of every window of n words inside one text; every text has at least n words."""
    total = len(folded) - (n - 1) * (len(offsets) - 1)
    keys, text, word = np.empty(total, np.uint64), np.empty(total, np.int64), np.empty(total, np.int64)
    count = 0
    for i in range(len(offsets) - 1):
        for first in range(offsets[i], offsets[i + 1] - n + 1):
            key = np.uint64(0)
            for k in range(first, first + n):
                key = key * _MULTIPLIER + folded[k]
            keys[count] = max(key, np.uint64(1))  # 0 marks a free slot
            text[count], word[count] = i, first
            count += 1
    return keys, text, word


@numba.njit(cache=True, nogil=True)
def find(
    offsets: Ints,
    folded: Hashes,
    flags: NDArray[np.uint8],
    is_word: int,
    n: int,
    blocks: Hashes,
    slot_key: Hashes,
    slot_entry: NDArray[np.int32],
) -> tuple[Ints, Ints, Ints]:
    """Document, first token and entry of every window of n words of one document whose key is in the table.

    Args:
        offsets, folded, flags: of a word table.
        is_word: bit of the flags; tokens without it are passed over.
        n: words of a window.
        blocks, slot_key, slot_entry: of a KeyTable.
    """
    block_mask, slot_mask = np.uint64(len(blocks) - 1), np.uint64(len(slot_key) - 1)
    drop = np.uint64(1)
    for _ in range(n):
        drop *= _MULTIPLIER
    longest = np.max(np.diff(offsets)) if len(offsets) > 1 else 0
    token, word, keys = np.empty(longest + 1, np.int64), np.empty(longest + 1, np.uint64), np.empty(longest, np.uint64)
    capacity, count = 64, 0
    found = np.empty((3, capacity), np.int64)
    for d in range(len(offsets) - 1):
        words = 0
        for t in range(offsets[d], offsets[d + 1]):
            token[words], word[words] = t, folded[t]
            words += flags[t] & is_word != 0
        key = np.uint64(0)
        for i in range(min(n, words)):
            key = key * _MULTIPLIER + word[i]
        for i in range(words - n + 1):
            keys[i] = key
            if i + n < words:
                key = key * _MULTIPLIER + word[i + n] - word[i] * drop
        for i in range(
            words - n + 1
        ):  # a loop of its own: the processor has many of its cache misses under way at once
            key = keys[i]
            bits = _bits(key)
            if blocks[key & block_mask] & bits != bits:
                continue
            wanted = max(key, np.uint64(1))
            slot = key >> np.uint64(32) & slot_mask
            while slot_key[slot] and slot_key[slot] != wanted:
                slot = (slot + np.uint64(1)) & slot_mask
            if slot_key[slot] == 0:
                continue
            if count == capacity:
                found = np.concatenate((found, np.empty((3, capacity), np.int64)), axis=1)
                capacity *= 2
            found[0, count], found[1, count], found[2, count] = d, token[i], slot_entry[slot]
            count += 1
    return found[0, :count].copy(), found[1, :count].copy(), found[2, :count].copy()


@numba.njit(cache=True, nogil=True, inline="always")
def _bits(key: np.uint64) -> np.uint64:
    """Three bits of a block, from the upper end of the key (its block is from the lower one)."""
    one, six = np.uint64(1), np.uint64(63)
    return one << (key >> np.uint64(58)) | one << (key >> np.uint64(52) & six) | one << (key >> np.uint64(46) & six)


@numba.njit(cache=True, nogil=True)
def _insert(keys: Hashes, blocks: Hashes, slot_key: Hashes, slot_entry: NDArray[np.int32]) -> None:
    block_mask, slot_mask = np.uint64(len(blocks) - 1), np.uint64(len(slot_key) - 1)
    for entry in range(len(keys)):
        key = keys[entry]
        blocks[key & block_mask] |= _bits(key)
        slot = key >> np.uint64(32) & slot_mask
        while slot_key[slot]:
            slot = (slot + np.uint64(1)) & slot_mask
        slot_key[slot], slot_entry[slot] = key, entry
