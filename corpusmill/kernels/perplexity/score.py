"""Perplexity of documents under an n-gram language model, and what is done with it: head, middle and tail by language.

Documents that a model of clean text finds ordinary are kept or weighted higher (CCNet, Wenzek et al. 2020,
arXiv:1911.00359: head, middle and tail by the 30th and 60th percentile of each language). Stored is not the perplexity
2**h but h, in 1/10,000 bits a word; the order is the same. Words are those of `perplexity_tokens`, with line ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.kernels.perplexity.table import bits_of, read_table
from corpusmill.kernels.perplexity.tokens import sentences
from corpusmill.kernels.words.table import slices, word_table

HEAD, MIDDLE, TAIL = "head", "middle", "tail"
HEAD_PERCENT, TAIL_PERCENT = 30, 60
"""CCNet's."""


class Model:
    """A language model of ours, read in place. Safe to share between threads."""

    def __init__(self, path: Path) -> None:
        """Open a model.

        Raises:
            ValueError: not a model of ours, or a damaged one.
        """
        self.table = read_table(path)

    def log2_e4(self, text: pa.Array) -> pa.Int32Array:
        """Cross entropy of each document in 1/10,000 bits a word.

        Args:
            text: large_string[n] without nulls; each line is a sentence.

        Returns:
            int32[n]; null where a document has no words.
        """
        parts = []
        for _, part in slices(text):
            found = sentences(part, word_table(part))
            parts.append(per_word_e4(*bits_of(self.table, found.hashes, found.offsets)))
        return pa.concat_arrays(parts) if parts else pa.array([], pa.int32())


def per_word_e4(bits_e6: NDArray[np.int64], words: NDArray[np.int64]) -> pa.Int32Array:
    """Bits a word in 1/10,000, rounded half up; null where there are no words."""
    divisor = 200 * np.maximum(words, 1)
    values = (2 * bits_e6 + divisor // 2) // divisor
    return pa.array(values.astype(np.int32), pa.int32(), mask=words == 0)


@dataclass(frozen=True)
class Bounds:
    """Where the head of a language ends and its tail begins: in bits_e4, head < low <= middle <= high < tail."""

    low: int
    high: int
    documents: int


def percentile_bounds(
    bits_e4: pa.Array | pa.ChunkedArray,
    languages: pa.Array | pa.ChunkedArray,
    head: int = HEAD_PERCENT,
    tail: int = TAIL_PERCENT,
) -> dict[str, Bounds]:
    """Percentiles of each language, by nearest rank.

    Args:
        bits_e4: int32[n]. languages: string[n]. Documents where one of them is null do not count.
        head, tail: percentiles, 0 < head <= tail < 100.

    Raises:
        ValueError: percentiles out of range or order.
    """
    if not 0 < head <= tail < 100:
        raise ValueError(f"percentiles must have 0 < head <= tail < 100, got {head} and {tail}")
    table = pa.table({"language": languages, "bits": bits_e4}).drop_null().sort_by([("language", "ascending")])
    names = table.column("language").cast(pa.string()).combine_chunks().dictionary_encode()
    names = names.combine_chunks() if isinstance(names, pa.ChunkedArray) else names
    codes, bits = names.indices.to_numpy(), table.column("bits").to_numpy()
    found = {}
    for code, name in enumerate(names.dictionary.to_pylist()):
        values = np.sort(bits[codes == code])
        low, high = (int(values[-(-len(values) * percent // 100) - 1]) for percent in (head, tail))
        found[name] = Bounds(low, high, len(values))
    return found


def bucket(bits_e4: pa.Array, languages: pa.Array, bounds: Mapping[str, Bounds]) -> pa.StringArray:
    """head, middle or tail of each document; null without words, without language, or in one without bounds.

    Args:
        bits_e4: int32[n]. languages: string[n].
    """
    names: list[str | None] = []
    for bits, language in zip(bits_e4.to_pylist(), languages.to_pylist(), strict=True):
        known = bounds.get(language) if language is not None else None
        if bits is None or known is None:
            names.append(None)
        else:
            names.append(HEAD if bits < known.low else TAIL if bits > known.high else MIDDLE)
    return pa.array(names, pa.string())
