"""Flagged words: how many words and phrases of a list that the user gives stand in each document.

Words are found by one Aho-Corasick pass over the text in small letters, whatever the length of the list. A word counts
where no letter or digit is beside it, so that "class" holds none; in scripts written without spaces, wherever it
stands. Of words that overlap, the one that begins first counts, of those the longest. The measures are those of
Data-Juicer's flagged_words_filter (share of words) and of C4 (any at all), up to the unit of words, which is ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import ahocorasick_rs
import numpy as np
import pyarrow as pa

from corpusmill.canonical import sha256
from corpusmill.kernels.bytes.unicode_table import KIND_SHIFT, Kind, entry_of
from corpusmill.kernels.words.table import slices, word_table

COLUMNS = pa.schema(
    [
        pa.field("flagged_words", pa.int32(), nullable=False),  # words and phrases of the list
        pa.field("flagged_word_ratio", pa.float64(), nullable=False),  # of the words of the text; 0 where it has none
    ]
)
"""What `flagged` writes."""


@dataclass(frozen=True)
class FlaggedWords:
    """A list of words and phrases, in small letters, blanks as single ones; known by the digest of its entries.

    Attributes:
        entries: in any order and spelling.
        digest: sha256, as hex, of the entries in order.
    """

    entries: frozenset[str]
    digest: str = field(init=False)
    _automaton: ahocorasick_rs.AhoCorasick = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        kept = sorted({" ".join(entry.lower().split()) for entry in self.entries} - {""})
        automaton = ahocorasick_rs.AhoCorasick(kept, store_patterns=False)
        for name, value in (
            ("entries", frozenset(kept)),
            ("digest", sha256("\n".join(kept).encode("utf-8"))),
            ("_automaton", automaton),
        ):
            object.__setattr__(self, name, value)

    @classmethod
    def of_lines(cls, lines: Iterable[str]) -> FlaggedWords:
        """From lines of a file: one entry a line, "#" begins a comment."""
        return cls(frozenset(line.partition("#")[0] for line in lines))

    def count(self, text: str) -> int:
        """How many stand in a text."""
        small = text.lower()
        found, after = 0, 0
        matches = self._automaton.find_matches_as_indexes(small, overlapping=True)
        for begin, end in sorted((begin, -end) for _, begin, end in matches):
            end = -end
            if begin >= after and _stands_alone(small, begin, end):
                found += 1
                after = end
        return found


def flagged(text: pa.LargeStringArray, words: FlaggedWords) -> pa.RecordBatch:
    """Flagged words of each document.

    Args:
        text: large_string[n] without nulls.

    Returns:
        COLUMNS, n rows.

    Raises:
        ValueError: text of another type, or with nulls.
    """
    totals = [word_table(part).word_counts() for _, part in slices(text)]
    total = np.concatenate([np.zeros(0, np.int64), *totals])
    counts = np.array([words.count(document) for document in text.to_pylist()], np.int64)
    ratio = np.divide(counts, total, out=np.zeros(len(text)), where=total > 0)
    return pa.record_batch([pa.array(counts, pa.int32()), pa.array(ratio, pa.float64())], schema=COLUMNS)


def _stands_alone(text: str, begin: int, end: int) -> bool:
    return not (
        (begin > 0 and _spaced(text[begin]) and _spaced(text[begin - 1]))
        or (end < len(text) and _spaced(text[end - 1]) and _spaced(text[end]))
    )


def _spaced(character: str) -> bool:
    """A letter, digit or mark of a script with spaces between words."""
    kind = entry_of(ord(character)) >> KIND_SHIFT & 7
    return kind in (Kind.WORD, Kind.MARK)
