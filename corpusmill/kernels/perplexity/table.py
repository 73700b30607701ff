"""The language model as a file: one sorted hash table over the n-grams of all orders, read in place by a memory map.

The key of an n-gram is a polynomial of its word hashes, last word first, so one more word to the left is one
multiplication away. Entries stand in the order of their keys, each at its home slot or behind it (linear probing,
entered in order: Amble, Knuth 1974), so a lookup reads one or two cache lines, one in vain ends early, and equal models
are equal bytes.

    bytes 0-7    MILLNGM1
    8-11         length of the header, little-endian
    12-          header: canonical JSON with order, counts, slots, begin, rows, unknown_e6
    begin        rows of 16 bytes: the key (0 = free), then back-off weight and probability as -log2 in millionths
                 of a bit, int32 each

Two n-grams share a key with a chance of about n**2 / 2**65; then the shorter one of them stays.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from corpusmill.canonical import canonical_json
from corpusmill.compiled import kernel
from corpusmill.kernels.bytes.bytehash import U, address_of, load64
from corpusmill.kernels.perplexity.tokens import BEGIN

MAGIC = b"MILLNGM1"
PAGE = 4096
MOST = 2**53
MAX_ORDER = 6

Keys = NDArray[np.uint64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Table:
    """A model that was read."""

    header: Mapping[str, Any]
    rows: Keys
    """uint64[rows, 2], read in place."""

    @property
    def order(self) -> int:
        """Words of the longest n-gram."""
        return int(self.header["order"])


def pack(prob_e6: NDArray[np.int32], backoff_e6: NDArray[np.int32]) -> Keys:
    """Values of rows."""
    return prob_e6.astype(np.uint32).astype(np.uint64) << U(32) | backoff_e6.astype(np.uint32)


def slots_for(entries: int) -> int:
    """Home slots of a number of entries: two of three are taken.

    Raises:
        ValueError: more entries than home slots can hold.
    """
    if entries > 2**31:
        raise ValueError(f"a model has at most 2**31 n-grams, got {entries:,}; prune more, or take a lower order")
    return max(entries + entries // 2, 16)


def write_table(file: BinaryIO, header: Mapping[str, Any], sorted_parts: Iterable[tuple[Keys, Keys]]) -> None:
    """Write a model.

    Args:
        file: seekable, empty.
        header: `order`, `counts` and `unknown_e6`, and what else is worth knowing.
        sorted_parts: (keys, values) in ascending order of keys, through all parts; of equal keys the first stays.
    """
    slots = slots_for(sum(header["counts"]))
    numbers = {"slots": slots, "begin": MOST, "rows": MOST, "merged": MOST}
    begin = len(_header({**header, **numbers}, 0))  # room for any numbers
    file.write(bytes(begin))
    next_free, merged, last = 0, 0, U(0)
    for keys, values in sorted_parts:
        keys = np.maximum(keys, U(1))
        fresh = np.diff(keys, prepend=last) != 0
        merged += len(keys) - int(fresh.sum())
        keys, values = keys[fresh], values[fresh]
        if len(keys):
            places = _places(keys, slots, next_free)
            rows = np.zeros((int(places[-1]) + 1 - next_free, 2), np.uint64)
            rows[places - next_free, 0], rows[places - next_free, 1] = keys, values
            file.write(rows.astype("<u8").tobytes())
            next_free, last = int(places[-1]) + 1, keys[-1]
    total = max(next_free, slots) + 1  # a free row ends every search
    file.write(bytes(16 * (total - next_free)))
    file.seek(0)
    file.write(_header({**header, "slots": slots, "begin": begin, "rows": total, "merged": merged}, begin))


def _header(header: Mapping[str, Any], size: int) -> bytes:
    text = canonical_json(header)
    whole = MAGIC + len(text).to_bytes(4, "little") + text
    return whole.ljust(-(-max(len(whole), size) // PAGE) * PAGE, b"\0")


def read_table(path: Path) -> Table:
    """Read a model in place.

    Raises:
        ValueError: not such a file, or one that was cut.
    """
    with path.open("rb") as file:
        head = file.read(12)
        length = int.from_bytes(head[8:], "little")
        if head[:8] != MAGIC:
            raise ValueError(f"{path.name}: not a language model of ours; expected {MAGIC!r} at its beginning")
        text = file.read(length)
        size = file.seek(0, 2)
    try:
        header = json.loads(text)
        order, rows, slots = (int(header[key]) for key in ("order", "rows", "slots"))
        begin = int(header["begin"])
        int(header["unknown_e6"])
    except (ValueError, KeyError, TypeError) as err:
        raise ValueError(f"{path.name}: its header is damaged ({type(err).__name__}: {err})") from err
    if size != begin + 16 * rows or not 1 <= order <= MAX_ORDER or not 0 < slots < rows:
        raise ValueError(f"{path.name}: expected {begin + 16 * rows:,} bytes for {rows:,} rows, it has {size:,}")
    return Table(header, np.memmap(path, "<u8", "r", begin, (rows, 2)))


def entries(table: Table, block: int = 1 << 20) -> Iterator[tuple[Keys, NDArray[np.int32], NDArray[np.int32]]]:
    """(keys, probabilities, back-off weights) of all rows in use, in ascending order of keys."""
    for first in range(0, len(table.rows), block):
        rows = np.asarray(table.rows[first : first + block])
        rows = rows[rows[:, 0] > 0]
        values = rows[:, 1]
        yield rows[:, 0], (values >> U(32)).astype(np.uint32).view(np.int32), values.astype(np.uint32).view(np.int32)


def bits_of(table: Table, hashes: Keys, offsets: Ints) -> tuple[Ints, Ints]:
    """For each document the bits of its words in millionths, and how many words they are; "</s>" counts as a word.

    Args:
        hashes, offsets: sentences (`perplexity_tokens`).
    """
    bits, words = np.empty(len(offsets) - 1, np.int64), np.empty(len(offsets) - 1, np.int64)
    rows = np.asarray(table.rows)
    slots, unknown = U(table.header["slots"]), int(table.header["unknown_e6"])
    _bits(address_of(rows), slots, table.order, unknown, hashes, offsets, bits, words)
    return bits, words


@kernel
def _places(keys: Keys, slots: int, next_free: int) -> Ints:
    out = np.empty(len(keys), np.int64)
    free = np.int64(next_free)
    for i in range(len(keys)):
        home = np.int64((keys[i] >> U(32)) * U(slots) >> U(32))
        free = free if free > home else home
        out[i] = free
        free += 1
    return out


@kernel
def _bits(rows: U, slots: U, order: int, unknown: int, hashes: Keys, offsets: Ints, bits: Ints, words: Ints) -> None:
    back, deeper = np.zeros(MAX_ORDER + 2, np.int64), np.zeros(MAX_ORDER + 2, np.int64)
    for d in range(len(offsets) - 1):
        total, count = np.int64(0), 0
        known = 0  # words before this one that the model knows as one n-gram
        for i in range(offsets[d], offsets[d + 1]):
            key, found, cost = U(0), 0, np.int64(unknown)
            while found < order and found <= known:  # an n-gram is known only where it is without its last word
                key = key * U(0x9E3779B97F4A7C15) + hashes[i - found]
                wanted = max(key, U(1))
                at = rows + ((wanted >> U(32)) * slots >> U(32) << U(4))
                while U(0) < load64(at) < wanted:
                    at += U(16)
                if load64(at) != wanted:
                    break
                value = load64(at + U(8))
                cost = np.int64(value >> U(32))
                found += 1
                deeper[found] = np.int64(np.int32(np.uint32(value & U(0xFFFFFFFF))))
                if hashes[i] == BEGIN:
                    break
            if hashes[i] != BEGIN:
                for k in range(max(found, 1), known + 1):
                    total += back[k]
                total += cost
                count += 1
            known = min(found, order - 1)
            back, deeper = deeper, back
        bits[d], words[d] = total, count
