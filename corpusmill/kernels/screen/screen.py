"""The benchmark screen: documents that share a word n-gram with an evaluation item.

Method: overlap of 13 normalised words (Brown et al. 2020, arXiv:2005.14165, appendix C), every window of every
item, each hit confirmed on the folded words. Words are those of the word table without its symbols on the plain form
of the text (plain_form.py), so line wraps, case, punctuation, no-break spaces, soft hyphens and full-width forms do not
matter. Items of fewer words than an n-gram are looked for as a whole, down to a floor.

Arrays: D documents, E distinct n-grams.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import groupby

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.kernels.bytes.unicode_table import FOLD_MASK, entry_of
from corpusmill.kernels.screen.table import Hashes, Ints, KeyTable, block_words, find, key_table, windows
from corpusmill.kernels.words.hashes import word_hashes
from corpusmill.kernels.words.plain_form import Rewritten, plain, plain_text, runs_of
from corpusmill.kernels.words.table import IS_WORD, slices, text_buffers, word_table
from corpusmill.schema import CONTAMINATION

HITS = pa.schema(
    [
        pa.field("row", pa.int64(), nullable=False),  # document, as numbered in the text column
        *(field for field in CONTAMINATION if field.name not in ("doc_id", "url", "locator")),
    ]
)
"""One row per document and item that share an n-gram; by row, then offset, then the order of the items."""


@dataclass(frozen=True)
class Item:
    """An evaluation item."""

    benchmark: str
    id: str


@dataclass(frozen=True)
class Source:
    """The items of one benchmark, and how they are screened."""

    benchmark: str
    items: Sequence[tuple[str, str]]
    """Item id and text."""
    n: int = 13
    """Words of an n-gram."""
    floor: int = 0
    """Items of at least this number of words, but fewer than n, are looked for as a whole; 0: none is."""
    min_share: float = 0.0
    """Share of an item's distinct n-grams that a document must hold to be a hit."""


@dataclass(frozen=True)
class Words:
    """The words (no symbols) of some texts: hashes and byte spans, and the bytes they lie in."""

    offsets: Ints
    folded: Hashes
    start: NDArray[np.int32]
    stop: NDArray[np.int32]
    data: NDArray[np.uint8]
    bounds: Ints

    def places(self, row: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """First byte of each word of one text, and the byte after its last."""
        inside = slice(self.offsets[row], self.offsets[row + 1])
        return self.start[inside], self.stop[inside]

    def fold(self, row: int, low: int = 0, high: int | None = None) -> list[str]:
        """Folded words of one text; the others than low to high - 1 are empty."""
        start, stop = self.places(row)
        raw = self.data[self.bounds[row] : self.bounds[row + 1]].tobytes()
        folded = _folded(raw, start[low:high], stop[low:high])
        return [""] * low + folded + [""] * (len(start) - low - len(folded))

    def text(self, row: int) -> str:
        """One text."""
        return self.data[self.bounds[row] : self.bounds[row + 1]].tobytes().decode("utf-8")


@dataclass(frozen=True)
class Part:
    """The n-grams of one length, ready to screen with; or the items that are looked for as a whole, by their first
    words."""

    n: int
    """Words of an n-gram; of a whole item's beginning."""
    whole: bool
    items: tuple[Item, ...]
    """Screened items."""
    order: tuple[int, ...]
    """Number of each among all items given: hits at one place are listed in it."""
    min_share: tuple[float, ...]
    """Of each."""
    ngrams: tuple[int, ...]
    """Distinct n-grams of each; 1 for a whole item."""
    words: Words
    """Words of the screened items, text i being item i."""
    table: KeyTable
    """Keys of the distinct n-grams."""
    entry_offsets: Ints
    """int64[E + 1] into the two below."""
    entry_item: Ints
    """Items that hold the n-gram, ascending."""
    entry_word: Ints
    """Its first word there, numbered within the item."""
    _entries: dict[int, dict[tuple[str, ...], list[tuple[int, int]]]] = field(default_factory=dict, compare=False)
    _words: dict[int, list[str]] = field(default_factory=dict, compare=False)

    @cached_property
    def longest(self) -> int:
        """Words of the longest item."""
        return int(np.diff(self.words.offsets).max(initial=0))

    def item_words(self, item: int) -> list[str]:
        """Folded words of an item."""
        if item not in self._words:
            self._words[item] = self.words.fold(item)
        return self._words[item]

    def entry(self, number: int) -> dict[tuple[str, ...], list[tuple[int, int]]]:
        """What an entry stands for: folded words -> (item, first word). More than one where hashes collide."""
        if number not in self._entries:
            known: dict[tuple[str, ...], list[tuple[int, int]]] = {}
            for k in range(self.entry_offsets[number], self.entry_offsets[number + 1]):
                item, first = int(self.entry_item[k]), int(self.entry_word[k])
                known.setdefault(tuple(self.item_words(item)[first : first + self.n]), []).append((item, first))
            self._entries[number] = known
        return self._entries[number]


@dataclass(frozen=True)
class Index:
    """Every n-gram of the items, and every item that is looked for as a whole."""

    parts: tuple[Part, ...]
    too_short: tuple[Item, ...]
    """Items of fewer words than the floor: not screened."""
    exempt: tuple[Item, ...] = ()
    """Items whose every n-gram is exempted: not screened."""

    @property
    def ngrams(self) -> int:
        """Number of distinct n-grams and whole items."""
        return sum(len(part.entry_offsets) - 1 for part in self.parts)


@dataclass(frozen=True)
class Match:
    """A confirmed n-gram (or whole item) of an item in a document."""

    word: int
    """Its first word in the document."""
    item: int
    first: int
    """Its first word in the item."""
    entry: int


@dataclass(frozen=True)
class Document:
    """A document with confirmed matches of one part."""

    row: int
    words: list[str]
    """Folded; empty where no match is near."""
    start: NDArray[np.int32]
    """First byte of each word in its plain form."""
    stop: NDArray[np.int32]
    places: Rewritten | None
    matches: list[Match]

    def span(self, first: int, after: int) -> tuple[int, int]:
        """Bytes of words first to after - 1, in the text as given."""
        begin, end = int(self.start[first]), int(self.stop[after - 1])
        return (self.places.start(begin), self.places.stop(end)) if self.places else (begin, end)


@lru_cache(maxsize=1 << 16)
def fold(word: str) -> str:
    """Folded form of a word: lower case, without apostrophes and invisible characters."""
    return "".join(chr(folded) for c in word if (folded := entry_of(ord(c)) & FOLD_MASK))


def build_index(sources: Sequence[Source], exempt: Iterable[str] = ()) -> Index:
    """Index every n-gram of the items, and the beginnings of those that are looked for as a whole.

    Args:
        sources: in the order in which hits at one place are to be listed.
        exempt: n-grams that are no hit: their folded words, joined by spaces.
    """
    grouped: dict[tuple[int, bool], list[tuple[int, Item, str, float]]] = {}
    too_short: list[Item] = []
    order = 0
    for source in sources:
        texts = [plain_text(text) for _, text in source.items]
        counts = word_table(pa.array(texts, pa.large_string())).word_counts().tolist()
        for (name, _), text, count in zip(source.items, texts, counts, strict=True):
            item, whole = Item(source.benchmark, name), count < source.n
            if whole and not 0 < source.floor <= count:
                too_short.append(item)
            else:
                key = (source.floor if whole else source.n, whole)
                grouped.setdefault(key, []).append((order, item, text, 0.0 if whole else source.min_share))
            order += 1
    skipped = _keys_by_length(exempt)
    parts, lost = [], []
    for (n, whole), members in sorted(grouped.items(), key=lambda entry: (entry[0][1], entry[0][0])):
        part, without = _part(n, whole, members, np.zeros(0, np.uint64) if whole else skipped.get(n))
        parts.append(part)
        lost += without
    return Index(tuple(parts), tuple(too_short), tuple(lost))


def screen(text: pa.Array, index: Index) -> pa.Table:
    """Documents that share an n-gram with an item, and where.

    Args:
        text: large_string[D] without nulls.

    Returns:
        HITS: for each document and item what they share, confirmed on the folded words.
    """
    rows: list[tuple[tuple[int, int, int], list[object]]] = []
    for part, document in documents(text, index):
        for item, found in groupby(sorted(document.matches, key=lambda m: (m.item, m.word)), key=lambda m: m.item):
            matches = list(found)
            shared = len({match.entry for match in matches})
            if (share := shared / part.ngrams[item]) >= part.min_share[item]:
                name, first = part.items[item], matches[0]
                n = len(part.item_words(item)) if part.whole else part.n
                offset, stop = document.span(first.word, first.word + n)
                ngram = " ".join(document.words[first.word : first.word + n])
                spans = [{"start": a, "end": b} for a, b in _extents(document, matches, part)]
                values = [
                    document.row,
                    name.benchmark,
                    name.id,
                    offset,
                    stop,
                    part.whole,
                    n,
                    shared,
                    share,
                    ngram,
                    spans,
                ]
                rows.append(((document.row, offset, part.order[item]), values))
    rows.sort(key=lambda row: row[0])
    columns = zip(*(values for _, values in rows), strict=True) if rows else [[] for _ in HITS]
    arrays = [pa.array(list(column), field.type) for column, field in zip(columns, HITS, strict=True)]
    return pa.Table.from_arrays(arrays, schema=HITS)


def documents(text: pa.Array, index: Index) -> Iterator[tuple[Part, Document]]:
    """Documents with confirmed matches, once for each part that has some there."""
    for first_row, given in slices(text):
        made, rewritten = plain(given)
        offsets, folded = word_hashes(made)
        found = [(part, *_found(part, offsets, folded)) for part in index.parts]
        rows = np.unique(np.concatenate([np.zeros(0, np.int64), *(row for _, row, _, _ in found)]))
        words = words_of(made.take(pa.array(rows)))  # places are needed of few documents: they are read again
        for part, row, word, entry in found:
            for document, begin, end in runs_of(row):
                inside = int(np.searchsorted(rows, document))
                places, entries = word[begin:end].tolist(), entry[begin:end].tolist()
                near = part.longest + part.n  # nothing farther from a match is looked at
                body = words.fold(inside, max(places[0] - near, 0), places[-1] + near)
                matches = _confirmed(part, body, places, entries)
                if matches:
                    spans, moved = words.places(inside), rewritten.get(document)
                    yield part, Document(first_row + document, body, *spans, moved, matches)


def _found(part: Part, offsets: Ints, folded: Hashes) -> tuple[Ints, Ints, Ints]:
    keys = part.table
    return find(offsets, folded, part.n, keys.blocks, keys.slot_key, keys.slot_entry)


def _folded(raw: bytes, start: NDArray[np.int32], stop: NDArray[np.int32]) -> list[str]:
    """Folded words of a text, by their spans."""
    low = raw.lower().decode("latin-1")  # a character a byte; of ASCII alone small letters
    words = [low[a:b] for a, b in zip(start.tolist(), stop.tolist(), strict=True)]
    return [w.replace("'", "") if w.isascii() else fold(w.encode("latin-1").decode("utf-8")) for w in words]


def _confirmed(part: Part, folded: list[str], places: list[int], entries: list[int]) -> list[Match]:
    matches, n = [], part.n
    for word, entry in zip(places, entries, strict=True):
        for item, first in part.entry(entry).get(tuple(folded[word : word + n]), ()):
            if part.whole:
                wanted = part.item_words(item)
                if folded[word : word + len(wanted)] != wanted:
                    continue
            matches.append(Match(word, item, first, entry))
    return matches


def _extents(document: Document, matches: Sequence[Match], part: Part) -> list[tuple[int, int]]:
    """Bytes of the places of one item in a document.

    A place is a run of n-grams, widened within the item's extent to the last two words in a row that agree on either
    side: so a changed word does not leave the rest of an item behind, and a quoted phrase takes no other text with it.
    Places with fewer than n words between them are one.
    """
    words, item = document.words, part.item_words(matches[0].item)
    size = len(item) if part.whole else part.n
    runs: dict[int, tuple[int, int]] = {}  # where the item begins if this is its place -> words, from and to
    for match in matches:
        begin = match.word - match.first
        low, high = runs.get(begin, (match.word, match.word))
        runs[begin] = min(low, match.word), max(high, match.word + size)
    widened = []
    for begin, (low, high) in runs.items():
        agrees = [
            words[i : i + 2] == item[i - begin : i - begin + 2]
            for i in range(max(begin, 0), min(begin + len(item), len(words)) - 1)
        ]
        pairs = [max(begin, 0) + k for k, same in enumerate(agrees) if same]
        widened.append((min([low, *pairs[:1]]), max([high, *(pair + 2 for pair in pairs[-1:])])))
    joined: list[tuple[int, int]] = []
    for low, high in sorted(widened):
        if joined and low - joined[-1][1] < part.n:
            joined[-1] = joined[-1][0], max(joined[-1][1], high)
        else:
            joined.append((low, high))
    return [document.span(low, high) for low, high in joined]


def _part(
    n: int, whole: bool, members: Sequence[tuple[int, Item, str, float]], skipped: Hashes | None
) -> tuple[Part, list[Item]]:
    text = pa.array([body for _, _, body, _ in members], pa.large_string())
    words = words_of(text)
    keys, item, word = windows(words.offsets, words.folded, n)
    word = word - words.offsets[item]
    kept = word == 0 if whole else np.ones(len(keys), np.bool_)
    if skipped is not None and len(skipped):
        kept &= ~np.isin(keys, skipped)
    keys, item, word = keys[kept], item[kept], word[kept]
    order = np.argsort(keys, kind="stable")  # windows come item by item, so items ascend in every entry
    unique, begins = np.unique(keys[order], return_index=True)
    entry_offsets = np.append(begins, len(keys)).astype(np.int64)
    entry = np.repeat(np.arange(len(unique)), np.diff(entry_offsets))
    pairs = np.unique(np.stack([item[order], entry]), axis=1) if len(keys) else np.zeros((2, 0), np.int64)
    distinct = np.bincount(pairs[0], minlength=len(members))
    part = Part(
        n=n,
        whole=whole,
        items=tuple(name for _, name, _, _ in members),
        order=tuple(number for number, *_ in members),
        min_share=tuple(share for *_, share in members),
        ngrams=tuple(distinct.tolist()),
        words=words,
        table=key_table(unique, windows(words.offsets, words.folded, block_words(n))[0]),
        entry_offsets=entry_offsets,
        entry_item=item[order],
        entry_word=word[order],
    )
    return part, [part.items[i] for i in np.flatnonzero(distinct == 0)]


def _keys_by_length(ngrams: Iterable[str]) -> dict[int, Hashes]:
    """Keys of n-grams, by their number of words."""
    lengths: dict[int, list[str]] = {}
    for ngram in sorted(set(ngrams)):
        lengths.setdefault(ngram.count(" ") + 1, []).append(ngram)
    found = {}
    for n, members in lengths.items():
        text = pa.array(members, pa.large_string())
        words = words_of(text)
        found[n] = windows(words.offsets, words.folded, n)[0]
    return found


def words_of(text: pa.Array) -> Words:
    """The words of texts.

    Args:
        text: large_string[D] without nulls.
    """
    table = word_table(text)
    data, bounds = text_buffers(text)
    is_word = table.flags & IS_WORD > 0
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(table.word_counts())])
    return Words(offsets, table.folded[is_word], table.start[is_word], table.stop[is_word], data, bounds)
