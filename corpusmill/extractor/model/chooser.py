"""When trafilatura's text is likely to be better than the line model's: two small regressions on the gain in word F1.

`gate` looks at the page alone and says whether trafilatura is worth its time; `verdict` looks at both texts and says
which to take. Both are trained on pages where both were scored. They decide what is stored, so features are made of
exact operations in a fixed order: no logarithm of NumPy's, no product of matrices.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from corpusmill.extractor.model.agreement import votes, words_of
from corpusmill.extractor.model.features import NAMES
from corpusmill.extractor.model.lines import Lines
from corpusmill.extractor.model.load import Model
from corpusmill.kernels.elementary import log

_PAGE = [i for i, name in enumerate(NAMES) if name.startswith("page_")]
_INSIDE = [NAMES.index(name) for name in ("in_best", "in_half", "link_share")]
_ROLES = [NAMES.index("in_nav") + i for i in range(32)]
_KIND = NAMES.index("kind")


def gate_features(lines: Lines) -> NDArray[np.float32]:
    """What is known before trafilatura runs, float32[1, G]; the page has lines."""
    words = lines.words.astype(np.float64)
    p, keep, x = lines.probability, lines.keep, lines.features
    total, kept = words.sum() + 1e-9, words[keep].sum() + 1e-9
    expected = (words * p).sum()
    kind = x[:, _KIND]
    ends = np.concatenate([[0], np.flatnonzero(keep) + 1, [len(keep) + 1]])
    share = words * keep / kept
    numbers = [
        lines.confidence,
        _log1p(kept),
        _log1p(total),
        kept / total,
        expected / total,
        keep.mean(),
        _log1p(keep.sum()),
        (share * p).sum(),
        (words * np.minimum(p, 1 - p)).sum() / total,
        (words * p)[~keep].sum() / (expected + 1e-9),
        share[kind == 1].sum(),
        share[kind == 6].sum(),
        _log1p(np.diff(ends).max()),
    ]
    mixed = [*_shape(words, p, keep), *numbers]
    parts = [np.array(mixed), x[0, _PAGE], _weighted(share, x[:, _ROLES]), _weighted(share, x[:, _INSIDE])]
    return np.concatenate(parts).astype(np.float32)[None]


def _shape(words: NDArray[np.float64], p: NDArray[np.float64], keep: NDArray[np.bool_]) -> list[float]:
    """How sure the lines are, as quantiles by words of all and of the kept; in how many runs the kept ones stand."""
    order = np.argsort(p, kind="stable")
    places = np.flatnonzero(keep)
    kept = words[places]
    span = words[places[0] : places[-1] + 1].sum()
    runs = 1 + int(np.count_nonzero(np.diff(places) > 1))
    return [
        *_quantiles(p[order], words[order], (0.1, 0.25, 0.5, 0.75, 0.9)),
        *_quantiles(p[order][keep[order]], words[order][keep[order]], (0.1, 0.5, 0.9)),
        p[places].min(),
        runs / len(places),
        _log1p(runs),
        kept.sum() / (span + 1e-9),
        kept.max() / (kept.sum() + 1e-9),
        np.count_nonzero(kept >= 20) / len(places),
    ]


def _quantiles(p: NDArray[np.float64], words: NDArray[np.float64], shares: Sequence[float]) -> list[float]:
    """Probabilities below which these shares of the words lie; `p` ascends."""
    sums = np.cumsum(words)
    found = np.searchsorted(sums, np.array(shares) * (sums[-1] + 1e-9))
    return p[np.minimum(found, len(p) - 1)].tolist()


def _log1p(value: float) -> float:
    return float(log(1.0 + float(value)))


def _weighted(share: NDArray[np.float64], x: NDArray[np.float32]) -> NDArray[np.float64]:
    """Weighted sums of columns, in a fixed order: a product of matrices adds in one that differs between processors."""
    weighted: NDArray[np.float64] = np.add.reduce(share[:, None] * x, axis=0)
    return weighted


def verdict_features(lines: Lines, other: str, gate: NDArray[np.float32]) -> NDArray[np.float32]:
    """The same, with what trafilatura's text says, float32[1, V]."""
    words = lines.words.astype(np.float64)
    p, keep = lines.probability, lines.keep
    vote = votes(lines, other)
    said = float(len(words_of(other)))
    total, kept, expected = words.sum() + 1e-9, words[keep].sum() + 1e-9, (words * p).sum() + 1e-9
    voted = (words * vote).sum() + 1e-9
    both = (words * vote)[keep].sum()
    numbers = [
        _log1p(said),
        said / total,
        said / kept,
        voted / (said + 1),
        both / kept,
        both / voted,
        2 * (words * p * vote).sum() / (voted + expected),
        2 * (words * p * vote).sum() / (said + expected),
        (words * p * vote).sum() / expected,
    ]
    roles = _weighted(words * vote / voted, lines.features[:, _ROLES])
    return np.concatenate([gate[0], numbers, roles]).astype(np.float32)[None]


def worth_asking(model: Model, gate: NDArray[np.float32]) -> bool:
    """Whether trafilatura is worth its time on a page."""
    return float(model.trees["gate"].raw(gate)[0]) > model.constants["gate_min_gain"]


def better(model: Model, verdict: NDArray[np.float32]) -> bool:
    """Whether trafilatura's text is to be taken."""
    return float(model.trees["verdict"].raw(verdict)[0]) > 0.0
