"""Planted items: the benchmark screen tried on text of which it is known what it holds.

Items of the run's own benchmarks are planted in made-up text, disguised as pages disguise them, together with
look-alikes that a screen must pass over; both go through `ngrams.screen`. A run whose planted items are not all found
must fail.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from corpusmill.kernels.screen.screen import Index, Item, Part, screen


@dataclass(frozen=True)
class Planted:
    """What the screen made of the planted items of one length, and of look-alikes."""

    n: int
    """Words of the n-grams; of the beginning, where items are looked for as a whole."""
    whole: bool
    planted: int
    found: int
    missed: tuple[Item, ...]
    lookalikes: int
    false_hits: int


def planted(index: Index, *, seed: int, items: int = 64) -> list[Planted]:
    """Plant items of each part of the index, and look-alikes; then screen.

    A look-alike is an item with every n-th word replaced, so that it shares no n-gram with it; of an item that is
    looked for as a whole, the last word is replaced.

    Args:
        index: the index that the run screens with.
        seed: chooses the items and the made-up words.
        items: how many of each part to plant at most.
    """
    return [_planted(index, part, seed, items) for part in index.parts]


def _planted(index: Index, part: Part, seed: int, items: int) -> Planted:
    usable = [i for i in range(len(part.items)) if part.ngrams[i]]
    chosen = sorted(usable, key=lambda i: _draw(seed, f"item{part.n}", part.order[i]))[:items]
    texts = []
    for k, i in enumerate(chosen):
        before, after = (" ".join(_made_up(seed, f"{side}{part.order[i]}", 40)) for side in ("before", "after"))
        bodies = (DISGUISES[k % len(DISGUISES)](part.words.text(i)), _lookalike(part, i, seed))
        texts += [f"{before}\n{body}\n{after}" for body in bodies]
    hits = screen(pa.array(texts, pa.large_string()), index)
    names = zip(hits.column("benchmark").to_pylist(), hits.column("item").to_pylist(), strict=True)
    found = set(zip(hits.column("row").to_pylist(), (Item(*name) for name in names), strict=True))
    missed = tuple(part.items[i] for k, i in enumerate(chosen) if (2 * k, part.items[i]) not in found)
    # an item may hold another, shorter one, which its look-alike then holds as well: that is no false hit
    false_hits = sum((2 * k + 1, part.items[i]) in found for k, i in enumerate(chosen))
    return Planted(part.n, part.whole, len(chosen), len(chosen) - len(missed), missed, len(chosen), false_hits)


def _lookalike(part: Part, item: int, seed: int) -> str:
    words = part.item_words(item)
    invented = _made_up(seed, f"lookalike{part.order[item]}", len(words))
    every = len(words) if part.whole else part.n
    return " ".join(invented[w] if w % every == every - 1 else word for w, word in enumerate(words))


def _upper(text: str) -> str:
    return "".join(c.upper() if c.isascii() else c for c in text)


def _soft_hyphens(text: str) -> str:
    letters = [c.isascii() and c.isalpha() for c in text] + [False]
    return "".join(c + "\u00ad" * (i % 3 == 0 and letters[i] and letters[i + 1]) for i, c in enumerate(text))


def _wrapped(text: str) -> str:
    return "".join("\n    " if c == " " and i % 2 else c for i, c in enumerate(text))


def _decomposed(text: str) -> str:
    """Letters with accents as letter and mark, where that is the same text (UAX #15) and the marks are common ones."""
    apart = ((c, unicodedata.normalize("NFD", c)) for c in text)
    return "".join(
        d if all("\u0300" <= mark <= "\u036f" for mark in d[1:]) and unicodedata.normalize("NFC", d) == c else c
        for c, d in apart
    )


def _full_width(text: str) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


DISGUISES: tuple[Callable[[str], str], ...] = (
    lambda text: text,
    _upper,
    _wrapped,
    _soft_hyphens,
    lambda text: text.replace(" ", "\u00a0"),
    lambda text: text.replace("'", "\u2019").replace('"', "\u201d"),
    _full_width,
    lambda text: _decomposed(text).replace("fi", "\ufb01"),
    lambda text: _upper(_soft_hyphens(_wrapped(text))),
)
"""How pages disguise an item without changing its words; planted items take turns."""


def _draw(seed: int, purpose: str, number: int) -> bytes:
    return hashlib.blake2b(f"{seed}|{purpose}|{number}".encode(), digest_size=16, person=b"planted1").digest()


def _made_up(seed: int, purpose: str, count: int) -> list[str]:
    """Words that no language has: x, then three syllables."""
    draws = (_draw(seed, purpose, i) for i in range(count))
    return ["x" + "".join("bdfgklmnprst"[d[k] % 12] + "aeiou"[d[k + 1] % 5] for k in (0, 2, 4)) for d in draws]
