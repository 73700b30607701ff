"""The chooser's two regressions: by how much trafilatura's word F1 is above the line model's on a page (LightGBM)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROUNDS = 100
PARAMETERS: dict[str, Any] = {
    "objective": "regression",
    "num_leaves": 8,
    "learning_rate": 0.05,
    "min_data_in_leaf": 25,
    "feature_fraction": 0.3,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "lambda_l2": 5.0,
    "num_threads": 1,
    "seed": 3,
    "deterministic": True,
    "force_row_wise": True,
    "verbosity": -1,
}


SET_WEIGHTS = {"article-extraction-benchmark": 3.0}
"""Pages of its kind are few among the others, and trafilatura is best on them."""


def fit(rows: Sequence[NDArray[np.float32]], gains: NDArray[np.float64], sets: Sequence[str]) -> Any:
    """A LightGBM booster on rows of float32[1, G], one of each page, and the sets that the pages are from."""
    import lightgbm

    weights = np.array([SET_WEIGHTS.get(name, 1.0) for name in sets])
    return lightgbm.train(PARAMETERS, lightgbm.Dataset(np.concatenate(rows), gains, weight=weights), ROUNDS)
