"""Interpolated modified Kneser-Ney in plain Python, by the definitions: what the estimator must equal, and scoring with
back-off as ARPA files mean it."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

from corpusmill.kernels.bytes.unicode_table import entry_of
from tests.corpusmill.kernels import reference

FALLBACK = (0.5, 1.0, 1.5)
Ngram = tuple[str, ...]
Model = dict[Ngram, tuple[float, float]]
"""n-gram -> probability of its last word, and its back-off weight as a context."""


def words_of(line: str) -> list[str]:
    """Tokens of a line as the language model spells them."""
    out = []
    for token, is_word in reference.tokens(line):
        if not is_word:
            out.append(token)
        elif not any(entry_of(ord(c)) & 1 << 24 for c in token):
            out.append("0")
        else:
            out.append(reference.fold(token))
    return out


def sentences_of(text: str) -> list[list[str]]:
    return [words for line in text.split("\n") if (words := words_of(line))]


def estimate(sentences: list[list[str]], order: int, prune: list[int]) -> Model:
    """All n-grams that stay, with <s> and <unk>."""
    occurs: list[Counter[Ngram]] = [Counter() for _ in range(order + 1)]
    for sentence in sentences:
        line = ["<s>", *sentence, "</s>"]
        for end in range(2, len(line) + 1):
            for k in range(1, min(order, end) + 1):
                occurs[k][tuple(line[end - k : end])] += 1
    before: dict[Ngram, set[str]] = defaultdict(set)
    for k in range(2, order + 1):
        for ngram in occurs[k]:
            before[ngram[1:]].add(ngram[0])
    model: Model = {}
    shorter: dict[Ngram, float] = {}
    words = len(occurs[1]) + 1
    for k in range(1, order + 1):
        adjusted = {g: n if k == order or g[0] == "<s>" else len(before[g]) for g, n in occurs[k].items()}
        discount = discounts(adjusted)
        total: Counter[Ngram] = Counter()
        freed: dict[Ngram, float] = defaultdict(float)
        for ngram, count in adjusted.items():
            total[ngram[:-1]] += count
            kept = occurs[k][ngram] > prune[k - 1]
            freed[ngram[:-1]] += discount[min(count, 3) - 1] if kept else count
        weight = {context: freed[context] / total[context] for context in total}
        longer: dict[Ngram, float] = {}
        for ngram, count in adjusted.items():
            lower = shorter[ngram[1:]] if k > 1 else 1 / words
            own = (count - discount[min(count, 3) - 1]) / total[ngram[:-1]]
            longer[ngram] = own + weight[ngram[:-1]] * lower
        if k == 1:
            model[("<unk>",)] = (weight[()] / words, 1.0)
            model[("<s>",)] = (1.0, 1.0)
        for context, value in weight.items():
            if context in model:
                model[context] = (model[context][0], value)
        model |= {g: (p, 1.0) for g, p in longer.items() if occurs[k][g] > prune[k - 1]}
        shorter = longer
    return model


def discounts(adjusted: dict[Ngram, int]) -> tuple[float, float, float]:
    n = Counter(adjusted.values())
    if not (n[1] and n[2] and n[3]):
        return FALLBACK
    y = n[1] / (n[1] + 2 * n[2])
    found = tuple(j - (j + 1) * y * n[j + 1] / n[j] for j in (1, 2, 3))
    return found if all(0 < d <= j for j, d in enumerate(found, 1)) else FALLBACK


def probability(model: Model, context: Ngram, word: str) -> float:
    """p(word | context), backing off where the n-gram is not in the model."""
    if (*context, word) in model:
        return model[(*context, word)][0]
    if not context:
        return model[("<unk>",)][0]
    return model.get(context, (0, 1.0))[1] * probability(model, context[1:], word)


def bits(model: Model, order: int, text: str) -> float | None:
    """Cross entropy in bits a word."""
    total, count = 0.0, 0
    for sentence in sentences_of(text):
        line = ["<s>", *sentence, "</s>"]
        for i in range(1, len(line)):
            total -= math.log2(probability(model, tuple(line[max(0, i - order + 1) : i]), line[i]))
            count += 1
    return total / count if count else None
