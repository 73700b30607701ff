"""ARPA files: the text form of n-gram models that KenLM, SRILM and others read and write.

    \\data\\            ngram 1=20 ...
    \\1-grams:         log10 p, the words, log10 of the back-off weight unless it is 1
    \\end\\
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from corpusmill.compiled import kernel
from corpusmill.kernels.bytes.bytehash import U, address_of, hash_bytes
from corpusmill.kernels.perplexity.estimate import MOST_E6
from corpusmill.kernels.perplexity.table import MAX_ORDER, Keys
from corpusmill.kernels.perplexity.tokens import UNKNOWN_TEXT

_BLANKS = re.compile("[ \t]+")
LOG2_10 = 3.321928094887362


def head(counts: Sequence[int]) -> str:
    """The beginning of a file: how many n-grams of each length follow."""
    return "\\data\\\n" + "".join(f"ngram {k}={count}\n" for k, count in enumerate(counts, 1))


def line(words: str, prob_e6: int, backoff_e6: int) -> str:
    """One n-gram; words joined by blanks, weights as -log2 in millionths."""
    weight = f"\t{-backoff_e6 / 1e6 / LOG2_10:.7f}" if backoff_e6 else ""
    return f"{-prob_e6 / 1e6 / LOG2_10:.7f}\t{words}{weight}\n"


class Damaged(ValueError):
    """Not an ARPA file, or not all of one."""


def parse(lines: Iterable[str]) -> Iterator[list[int] | tuple[int, str, int, int]]:
    """First the counts that the file promises, then its n-grams: length, words, prob_e6, backoff_e6.

    Raises:
        Damaged: with the number of the line.
    """
    counts: list[int] = []
    found, k, ended, number = 0, 0, False, 0
    for number, raw in enumerate(lines, 1):
        text = raw.rstrip("\r\n")
        if not text or (not k and text == "\\data\\") or ended:
            continue
        if not k and text.startswith("ngram "):
            counts.append(_whole(text.rpartition("=")[2], number))
        elif text.startswith("\\"):
            if k == 0:
                if not 1 <= len(counts) <= MAX_ORDER:
                    raise Damaged(f"line {number}: expected 1 to {MAX_ORDER} counts in the head, got {len(counts)}")
                yield counts
            elif found != counts[k - 1]:
                raise Damaged(f"line {number}: {found} n-grams of length {k}, the head says {counts[k - 1]}")
            k, found, ended = k + 1, 0, text == "\\end\\"
            if text != (f"\\{k}-grams:" if k <= len(counts) else "\\end\\"):
                raise Damaged(f"line {number}: expected the {k}-grams or the end, got {text[:40]!r}")
        elif k:
            yield k, *_entry(text, k, number)
            found += 1
    if not ended:
        raise Damaged(f"line {number}: the file ends before \\end\\")


def _entry(text: str, k: int, number: int) -> tuple[str, int, int]:
    parts = _BLANKS.split(text.strip(" \t"))
    if len(parts) not in (k + 1, k + 2):
        raise Damaged(f"line {number}: expected a number, {k} words and perhaps a weight, got {text[:60]!r}")
    try:
        prob, weight = float(parts[0]), float(parts[k + 1]) if len(parts) > k + 1 else 0.0
    except ValueError as err:
        raise Damaged(f"line {number}: {err}") from err
    bits = [round(min(max(-value * LOG2_10 * 1e6, -MOST_E6), MOST_E6)) for value in (prob, weight)]
    return " ".join(parts[1 : k + 1]), max(bits[0], 0), bits[1]


def _whole(text: str, number: int) -> int:
    try:
        return int(text)
    except ValueError as err:
        raise Damaged(f"line {number}: {err}") from err


def keys_of_words(ngrams: Sequence[str]) -> Keys:
    """Keys (`perplexity_table`) of n-grams given as words joined by blanks."""
    words = [ngram.split(" ") for ngram in ngrams]
    data = [word.encode() for ngram in words for word in reversed(ngram)]
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum([len(word) for word in data], dtype=np.int64)])
    joined = np.frombuffer(b"".join(data) or b"\0", np.uint8)
    lengths = np.array([len(ngram) for ngram in words], np.int64)
    return _keys(address_of(joined), bounds, lengths)


def has_unknown(ngram: str) -> bool:
    """Whether an n-gram has the unknown word, which no text has."""
    return UNKNOWN_TEXT in ngram.split(" ")


@kernel
def _keys(data: U, bounds: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.uint64]:
    out = np.empty(len(lengths), np.uint64)
    w = 0
    for i in range(len(lengths)):
        key = U(0)
        for _ in range(lengths[i]):
            key = key * U(0x9E3779B97F4A7C15) + hash_bytes(data + U(bounds[w]), U(bounds[w + 1] - bounds[w]))
            w += 1
        out[i] = key
    return out
