"""The line model: boosted trees on the lines' features, labels by alignment, weights by words (LightGBM)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from extractor_training.data import Example

ROUNDS = 200
PARAMETERS: dict[str, Any] = {
    "objective": "cross_entropy",
    "num_leaves": 31,
    "learning_rate": 0.1,
    "min_data_in_leaf": 60,
    "min_sum_hessian_in_leaf": 1e-3,
    "feature_fraction": 0.3,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "lambda_l2": 2.0,
    "max_bin": 63,
    "num_threads": 1,
    "seed": 1,
    "deterministic": True,
    "force_row_wise": True,
    "verbosity": -1,
}
SAMPLED_PER_PAGE = 100
"""Lines of a page that are drawn, about: by weight, and weighted up for it. All lines cost five times the time."""
UNNAMED_PER_PAGE, UNNAMED_WEIGHT = 40, 0.3
"""Lines of a page without names that are drawn, about, and what each counts."""


SET_WEIGHTS = {"article-extraction-benchmark": 2.0}
"""Typed by people, where the other set was drafted by a model: it counts twice."""


def weights(page: Example) -> NDArray[np.float64]:
    """Weight of each line: its words, over those of the page capped at three times the truth's."""
    words = page.counts()
    return words / (min(int(words.sum()), 3 * int(page.truth.sum()) + 50) + 1e-9) + 1e-4


Sample = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float64]]
"""Features, labels and weights of lines."""


def sample(pages: Sequence[Example], nameless: Sequence[Example]) -> Sample:
    """A sample of the pages' lines, and a smaller one of the same pages without names."""
    named, unnamed = drawn(pages, SAMPLED_PER_PAGE), drawn(nameless, UNNAMED_PER_PAGE)
    x, label = np.concatenate([named[0], unnamed[0]]), np.concatenate([named[1], unnamed[1]])
    return x, label, np.concatenate([named[2], UNNAMED_WEIGHT * unnamed[2]])


def drawn(pages: Sequence[Example], per_page: int) -> Sample:
    """A sample of the pages' lines."""
    generator = np.random.default_rng(1)
    xs, labels, all_weights = [], [], []
    for page in pages:
        weight = weights(page)
        chance = np.minimum(1.0, weight * per_page + 0.02)
        taken = generator.random(len(weight)) < chance
        xs.append(page.x[taken])
        labels.append(page.label[taken])
        all_weights.append((weight / chance)[taken] * SET_WEIGHTS.get(page.set, 1.0))
    return np.concatenate(xs), np.concatenate(labels), np.concatenate(all_weights)


def fit(x: NDArray[np.float32], label: NDArray[np.float32], weight: NDArray[np.float64]) -> Any:
    """A LightGBM booster on lines."""
    import lightgbm

    data = lightgbm.Dataset(x, label, weight=weight, params={"max_bin": PARAMETERS["max_bin"], "verbosity": -1})
    return lightgbm.train(PARAMETERS, data, ROUNDS)
