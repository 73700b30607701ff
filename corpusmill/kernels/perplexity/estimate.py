"""Modified Kneser-Ney smoothing, interpolated: probabilities and back-off weights of counted n-grams.

    p(w | v) = max(a(v w) - D(a(v w)), 0) / sum_x a(v x)  +  g(v) p(w | v without its first word)
    g(v)     = sum of the discounts taken from v's continuations / sum_x a(v x)

a is the adjusted count (`perplexity_counts`), D one of three discounts of each order, for counts of 1, 2, 3 and more
(Chen, Goodman 1999, equations 23 to 26). The shortest context interpolates with all words alike. Where n-grams are
pruned their counts stay in the sums, and what they leave goes to the lower order (Heafield et al. 2013, as KenLM).

Logarithms come from additions, multiplications and divisions alone, so the same counts give the same model on every
processor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corpusmill.compiled import inner, kernel
from corpusmill.kernels.elementary import log_parts
from corpusmill.kernels.perplexity.counts import FIRST_WORD, Ids

FALLBACK = (0.5, 1.0, 1.5)
"""Discounts where counts of counts give none, as in small or artificial texts; those of lmplz --discount_fallback."""
MOST_E6 = 100_000_000
"""Weights and probabilities end at 2**-100."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Discounts:
    """What is taken from adjusted counts of 1, 2, and 3 and more."""

    values: tuple[float, float, float]
    fallback: bool = False
    """The counts of counts gave none."""


def discounts(seen: NDArray[np.int64]) -> Discounts:
    """Discounts of one order.

    Args:
        seen: a row of `counts_of_counts`.
    """
    n1, n2, n3, n4 = (float(n) for n in seen[1:5])
    if not (n1 and n2 and n3):
        return Discounts(FALLBACK, fallback=True)
    y = n1 / (n1 + 2 * n2)
    values = (1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3)
    if any(not 0 < value <= count for count, value in enumerate(values, 1)):
        return Discounts(FALLBACK, fallback=True)
    return Discounts(values)


@kernel
def context_sums(
    first: Ids, occurs: Ids, adjusted: Ids, numbers: Ids, discount: Floats, prune: int, total: Ids, freed: Floats
) -> None:
    """Add up, for each context, the adjusted counts of what follows it, and the mass that goes to the lower order.

    Args:
        first, occurs, adjusted: of all n-grams of one order.
        numbers: number of the context that ends at each position of the stream.
        discount: float64[3].
        prune: n-grams that occur so often or less are left out.
        total, freed: of each context; start at 0.
    """
    for i in range(len(first)):
        context = numbers[first[i] - 1]
        total[context] += adjusted[i]
        freed[context] += discount[min(adjusted[i], 3) - 1] if occurs[i] > prune else adjusted[i]


@kernel
def probabilities(
    first: Ids,
    adjusted: Ids,
    parents: Ids,
    numbers: Ids,
    discount: Floats,
    total: Ids,
    freed: Floats,
    shorter: Floats,
    out: Floats,
) -> None:
    """Probability of the last word of each n-gram of one order, float64, in `out`.

    Args:
        total, freed: of each context.
        shorter: probabilities of the order below, by number.
    """
    for i in range(len(first)):
        context = numbers[first[i] - 1]
        count = adjusted[i]
        taken = discount[min(count, 3) - 1]
        out[i] = (count - taken + freed[context] * shorter[parents[i]]) / total[context]


@kernel
def kept_ngrams(occurs: Ids, prune: int, begin: int, end: int) -> NDArray[np.int64]:
    """Numbers from `begin` to `end` of the n-grams that stay in the model."""
    out = np.empty(end - begin, np.int64)
    n = 0
    for i in range(begin, end):
        if occurs[i] > prune:
            out[n] = i
            n += 1
    return out[:n]


@kernel
def keys_of(kept: NDArray[np.int64], first: Ids, k: int, tokens: Ids, words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Keys (`perplexity_table`) of n-grams of length k.

    Args:
        words: hash of each word by its id.
    """
    out = np.empty(len(kept), np.uint64)
    for i in range(len(kept)):
        key = np.uint64(0)
        for back in range(k):
            key = key * np.uint64(0x9E3779B97F4A7C15) + words[tokens[first[kept[i]] - back]]
        out[i] = key
    return out


@inner
def _log2(value: float) -> float:
    """Logarithm to base 2 of a positive number."""
    exponent, s, series = log_parts(value)
    return exponent + 2.8853900817779268 * s * series  # 2 / log(2)


@kernel
def bits_e6(values: Floats) -> NDArray[np.int32]:
    """-log2 of numbers from 0 to 1 in millionths of a bit; 100 bits at most."""
    out = np.empty(len(values), np.int32)
    for i in range(len(values)):
        bits = -_log2(values[i]) * 1e6 if values[i] > 0.0 else float(MOST_E6)
        out[i] = np.int32(min(max(math.floor(bits + 0.5), 0.0), float(MOST_E6)))
    return out


@kernel
def number_words(
    hashes: NDArray[np.uint64],
    slot_hash: NDArray[np.uint64],
    slot_id: Ids,
    known: int,
    ids: Ids,
    new: NDArray[np.int64],
) -> int:
    """Ids of words in the order of their first occurrence; the table must have room for all of them.

    Args:
        hashes: none of them 0.
        slot_hash, slot_id: open addressing over a power of two of slots; 0 = free.
        known: words in the table; the next gets the id FIRST_WORD + known.
        ids: filled.
        new: filled with the places in `hashes` of words not met before.

    Returns:
        how many words are new.
    """
    mask = np.uint64(len(slot_hash) - 1)
    found = 0
    for i in range(len(hashes)):
        slot = hashes[i] & mask
        while slot_hash[slot] != np.uint64(0) and slot_hash[slot] != hashes[i]:
            slot = (slot + np.uint64(1)) & mask
        if slot_hash[slot] == np.uint64(0):
            slot_hash[slot], slot_id[slot] = hashes[i], FIRST_WORD + known + found
            new[found] = i
            found += 1
        ids[i] = slot_id[slot]
    return found


@kernel
def move_words(slot_hash: NDArray[np.uint64], slot_id: Ids, to_hash: NDArray[np.uint64], to_id: Ids) -> None:
    """Enter all words of one table of `number_words` into another, empty one."""
    mask = np.uint64(len(to_hash) - 1)
    for i in range(len(slot_hash)):
        if slot_hash[i] != np.uint64(0):
            slot = slot_hash[i] & mask
            while to_hash[slot] != np.uint64(0):
                slot = (slot + np.uint64(1)) & mask
            to_hash[slot], to_id[slot] = slot_hash[i], slot_id[i]
