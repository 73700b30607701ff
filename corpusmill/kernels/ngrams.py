"""The benchmark screen: documents that share a word n-gram with an evaluation item.

Method: overlap of 13 normalised words (Brown et al. 2020, arXiv:2005.14165, appendix C), every window of every
item, each hit confirmed on the folded words. Words are those of the word table without its symbols, so line wraps,
case, punctuation, no-break spaces and soft hyphens do not matter.

Arrays: D documents, E distinct n-grams.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.kernels.ngram_table import Hashes, Ints, KeyTable, find, key_table, windows
from corpusmill.kernels.unicode_table import FOLD_MASK, entry_of
from corpusmill.kernels.words import IS_WORD, WordTable, slices, text_buffers, word_table

HITS = pa.schema(
    [
        pa.field("row", pa.int64(), nullable=False),  # document, as numbered in the text column
        pa.field("benchmark", pa.string(), nullable=False),
        pa.field("item", pa.string(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),  # first byte of the first n-gram shared with the item
        pa.field("stop", pa.int64(), nullable=False),  # byte after its last word
        pa.field("ngram", pa.string(), nullable=False),  # its folded words, joined by spaces
    ]
)
"""One row per document and item that share an n-gram; by row, then offset, then the order of the items."""


@dataclass(frozen=True)
class Item:
    """An evaluation item."""

    benchmark: str
    id: str


@dataclass(frozen=True)
class Words:
    """The words (no symbols) of some texts: hashes and byte spans, and the bytes they lie in."""

    offsets: Ints
    folded: Hashes
    start: NDArray[np.int32]
    stop: NDArray[np.int32]
    data: NDArray[np.uint8]
    bounds: Ints

    def raw(self, row: int, first: int, n: int) -> list[str]:
        """Words first to first + n - 1 (numbered through all texts) of text `row`, as written there."""
        base = self.bounds[row]
        spans = zip(self.start[first : first + n].tolist(), self.stop[first : first + n].tolist(), strict=True)
        return [self.data[base + a : base + b].tobytes().decode("utf-8") for a, b in spans]


@dataclass(frozen=True)
class Index:
    """Every n-gram of the items, ready to screen with."""

    n: int
    """Words of an n-gram."""
    items: tuple[Item, ...]
    """Screened items, in the order given."""
    too_short: tuple[Item, ...]
    """Items of fewer than n words: a screen of this length cannot find them."""
    words: Words
    """Words of the screened items."""
    table: KeyTable
    """Keys of the distinct n-grams."""
    entry_offsets: Ints
    """int64[E + 1] into the two below."""
    entry_item: Ints
    """Items that hold the n-gram, ascending."""
    entry_word: Ints
    """Its first word there, numbered through all items."""

    @property
    def ngrams(self) -> int:
        """Number of distinct n-grams."""
        return len(self.entry_offsets) - 1


@dataclass(frozen=True)
class Planted:
    """What the screen made of planted items and of look-alikes."""

    planted: int
    found: int
    missed: tuple[Item, ...]
    lookalikes: int
    false_hits: int

    @property
    def recall(self) -> float:
        """Share of the planted items that were found; 1 where there was none to plant."""
        return self.found / self.planted if self.planted else 1.0


def fold(word: str) -> str:
    """Folded form of a word: lower case, without apostrophes and invisible characters."""
    return "".join(chr(folded) for c in word if (folded := entry_of(ord(c)) & FOLD_MASK))


def build_index(items: Sequence[tuple[str, str, str]], n: int = 13) -> Index:
    """Index every n-gram of the items.

    Args:
        items: (benchmark, item id, text), in the order in which hits at one place are to be listed.
        n: words of an n-gram.
    """
    counts = word_table(pa.array([text for _, _, text in items], pa.large_string())).word_counts()
    names = [Item(benchmark, item) for benchmark, item, _ in items]
    kept = np.flatnonzero(counts >= n).tolist()
    text = pa.array([items[i][2] for i in kept], pa.large_string())
    words = _words(text, word_table(text))
    keys, item, word = windows(words.offsets, words.folded, n)
    order = np.argsort(keys, kind="stable")  # windows come item by item, so items ascend in every entry
    unique, begins = np.unique(keys[order], return_index=True)
    return Index(
        n=n,
        items=tuple(names[i] for i in kept),
        too_short=tuple(names[i] for i in np.flatnonzero(counts < n)),
        words=words,
        table=key_table(unique),
        entry_offsets=np.append(begins, len(keys)).astype(np.int64),
        entry_item=item[order],
        entry_word=word[order],
    )


def screen(text: pa.Array, index: Index) -> pa.Table:
    """Documents that share an n-gram with an item, and where.

    Args:
        text: large_string[D] without nulls.

    Returns:
        HITS: for each document and item the first n-gram they share, confirmed on its folded words.
    """
    columns: list[list[object]] = [[] for _ in HITS]
    for first_row, part in slices(text):
        for row, item, offset, stop, ngram in _hits(part, index):
            name = index.items[item]
            values = (first_row + row, name.benchmark, name.id, offset, stop, " ".join(ngram))
            for column, value in zip(columns, values, strict=True):
                column.append(value)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, HITS, strict=True)]
    return pa.Table.from_arrays(arrays, schema=HITS)


def planted(index: Index, *, seed: int, items: int = 64) -> Planted:
    """Plant items of the index in made-up text, disguised as pages disguise them, and look-alikes; then screen.

    A look-alike is an item with every n-th word replaced, so that it shares no n-gram with it. A run whose planted
    items are not all found must fail.

    Args:
        index: the index that the run screens with.
        seed: chooses the items and the made-up words.
        items: how many to plant at most.
    """
    chosen = sorted(range(len(index.items)), key=lambda i: _draw(seed, "item", i))[:items]
    texts = []
    for k, i in enumerate(chosen):
        before, after = (" ".join(_made_up(seed, f"{side}{i}", 40)) for side in ("before", "after"))
        first, last = index.words.offsets[i], index.words.offsets[i + 1]
        words = index.words.raw(i, first, last - first)
        invented = _made_up(seed, f"lookalike{i}", len(words))
        similar = [invented[w] if w % index.n == index.n - 1 else word for w, word in enumerate(words)]
        body = index.words.data[index.words.bounds[i] : index.words.bounds[i + 1]].tobytes().decode("utf-8")
        texts += [f"{before}\n{part}\n{after}" for part in (DISGUISES[k % len(DISGUISES)](body), " ".join(similar))]
    hits = screen(pa.array(texts, pa.large_string()), index)
    rows = hits.column("row").to_pylist()
    pairs = set(zip(rows, hits.column("benchmark").to_pylist(), hits.column("item").to_pylist(), strict=True))
    missed = [
        index.items[i]
        for k, i in enumerate(chosen)
        if (2 * k, index.items[i].benchmark, index.items[i].id) not in pairs
    ]
    return Planted(
        planted=len(chosen),
        found=len(chosen) - len(missed),
        missed=tuple(missed),
        lookalikes=len(chosen),
        false_hits=len({row for row in rows if row % 2}),
    )


def _upper(text: str) -> str:
    return "".join(c.upper() if c.isascii() else c for c in text)


def _soft_hyphens(text: str) -> str:
    letters = [c.isascii() and c.isalpha() for c in text] + [False]
    return "".join(c + "\u00ad" * (i % 3 == 0 and letters[i] and letters[i + 1]) for i, c in enumerate(text))


def _wrapped(text: str) -> str:
    return "".join("\n    " if c == " " and i % 2 else c for i, c in enumerate(text))


DISGUISES: tuple[Callable[[str], str], ...] = (
    lambda text: text,
    _upper,
    _wrapped,
    _soft_hyphens,
    lambda text: text.replace(" ", "\u00a0"),
    lambda text: text.replace("'", "\u2019").replace('"', "\u201d"),
    lambda text: _upper(_soft_hyphens(_wrapped(text))),
)
"""How pages disguise an item without changing its words; planted items take turns."""


def _draw(seed: int, purpose: str, number: int) -> bytes:
    return hashlib.blake2b(f"{seed}|{purpose}|{number}".encode(), digest_size=16, person=b"planted1").digest()


def _made_up(seed: int, purpose: str, count: int) -> list[str]:
    """Words that no language has: x, then three syllables."""
    draws = (_draw(seed, purpose, i) for i in range(count))
    return ["x" + "".join("bdfgklmnprst"[d[k] % 12] + "aeiou"[d[k + 1] % 5] for k in (0, 2, 4)) for d in draws]


def _hits(text: pa.LargeStringArray, index: Index) -> Iterator[tuple[int, int, int, int, list[str]]]:
    """(row, item, first byte, byte after the last, folded words) of the first confirmed n-gram of each row and item."""
    table = word_table(text)
    keys = index.table
    row, token, entry = find(
        table.offsets, table.folded, table.flags, IS_WORD, index.n, keys.blocks, keys.slot_key, keys.slot_entry
    )
    if not len(row):
        return
    words = _words(text, table)
    first = np.cumsum(table.flags & IS_WORD > 0)[token] - 1  # token -> word
    done: set[tuple[int, int]] = set()
    for r, w, e in zip(row.tolist(), first.tolist(), entry.tolist(), strict=True):
        for k in range(index.entry_offsets[e], index.entry_offsets[e + 1]):
            item = int(index.entry_item[k])
            if (r, item) in done:
                continue
            ngram = [fold(word) for word in words.raw(r, w, index.n)]
            if ngram == [fold(word) for word in index.words.raw(item, index.entry_word[k], index.n)]:
                done.add((r, item))
                yield r, item, int(words.start[w]), int(words.stop[w + index.n - 1]), ngram


def _words(text: pa.Array, table: WordTable) -> Words:
    data, bounds = text_buffers(text)
    is_word = table.flags & IS_WORD > 0
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(table.word_counts())])
    return Words(offsets, table.folded[is_word], table.start[is_word], table.stop[is_word], data, bounds)
