"""Training pages: lines with features, labels and words; folds by domain."""

from __future__ import annotations

import hashlib
import html
from collections.abc import Iterable
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from bench.extraction.sets import Page, tokens
from corpusmill.extractor.model.features import features
from corpusmill.extractor.model.product import described
from corpusmill.extractor.page import Page as Html
from corpusmill.extractor.scan.scan import Line, Scan, scan
from extractor_training.align import matched

FOLDS = 5


@dataclass(frozen=True)
class Example:
    """A page with L lines; words are numbered within the page."""

    set: str
    id: str
    fold: int
    kind: str | None
    scan: Scan
    x: NDArray[np.float32]
    """float32[L, F]."""
    label: NDArray[np.float32]
    """Share of each line's words that the truth has, in its order."""
    words: NDArray[np.int32]
    """Word numbers of all lines."""
    offsets: NDArray[np.int64]
    """Line r has words[offsets[r]:offsets[r + 1]]."""
    truth: NDArray[np.int32]
    """How often the truth has each word."""
    numbers: dict[str, int]
    description: str
    """Of the product that it is of, by JSON-LD."""

    def counts(self) -> NDArray[np.int64]:
        """Words of each line."""
        return np.diff(self.offsets)

    def f1(self, keep: NDArray[np.bool_]) -> float:
        """Word F1 if these lines are kept."""
        have = np.bincount(self.words[np.repeat(keep, self.counts())], minlength=len(self.truth))
        both = int(np.minimum(have[: len(self.truth)], self.truth).sum())
        total = int(have.sum()) + int(self.truth.sum())
        return 2 * both / total if total else 1.0


def fold_of(page: Page) -> int:
    """Fold of a page, by its domain."""
    host = urlsplit(page.url).netloc.lower().removeprefix("www.") or page.id
    domain = ".".join(host.split(".")[-2:])
    return int.from_bytes(hashlib.sha256(domain.encode("utf-8")).digest()[:4], "little") % FOLDS


def line_texts(found: Scan) -> list[str]:
    """Text of each line."""
    data = found.text.tobytes() if len(found.lines) else b""
    return [html.unescape(data[a:b].decode("utf-8", "replace")) for a, b in found.lines[:, :2].tolist()]


def example(set_name: str, page: Page) -> Example:
    """Features and labels of a page."""
    html_bytes = page.text().encode("utf-8", "replace")
    found = scan(html_bytes)
    numbers: dict[str, int] = {}
    lines = [[numbers.setdefault(word, len(numbers)) for word in tokens(text)] for text in line_texts(found)]
    truth = np.array([numbers.setdefault(word, len(numbers)) for word in tokens(page.truth or "")], np.int32)
    sizes = np.array([len(line) for line in lines], np.int64)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    words = np.array([word for line in lines for word in line], np.int32)
    hits = np.concatenate([np.zeros(1, np.int64), np.cumsum(matched(words, truth))])
    label = (hits[offsets[1:]] - hits[offsets[:-1]]) / np.maximum(sizes, 1)
    used = int(found.lines[-1, Line.STOP]) if len(found) else 0
    return Example(
        set_name,
        page.id,
        fold_of(page),
        page.kind,
        replace(found, text=found.text[:used].copy()),
        features(found),
        label.astype(np.float32),
        words,
        offsets,
        np.bincount(truth, minlength=len(numbers)).astype(np.int32),
        numbers,
        described(Html(html_bytes)),
    )


def examples(set_name: str, pages: Iterable[Page]) -> list[Example]:
    """Features and labels of the pages of a set."""
    return [example(set_name, page) for page in pages]
