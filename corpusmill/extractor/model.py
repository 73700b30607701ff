"""Boosted trees as flat arrays and their evaluator, equal to the training library's to 1e-8.

A tree's inner nodes are numbered from its first node on; a child below zero is a leaf, ~child its number. A node sends
a row left where its feature is <= the threshold. Thresholds are float32, rounded down: rows are float32 too, so that
the comparison comes out as with the library's float64.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numba
import numpy as np
from numpy.typing import NDArray

MODEL = Path(__file__).with_name("model.npz")
"""The shipped models: see docs/notes/extractor-model.md."""

BLOCK_ROWS = 256  # rows whose features stay in the processor's cache while all trees pass over them


@dataclass(frozen=True)
class Trees:
    """T trees with N inner nodes and M leaves in all."""

    roots: NDArray[np.int32]
    """int32[T]: the first node of each tree; a tree of one leaf has its ~leaf."""
    feature: NDArray[np.uint8]
    """uint8[N]."""
    threshold: NDArray[np.float32]
    """float32[N]."""
    children: NDArray[np.int32]
    """int32[N, 2]: left and right; nodes and leaves are numbered over all trees."""
    leaves: NDArray[np.float64]
    """float64[M]."""

    def raw(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        """Sum of the leaves each row of float32[R, F] falls into, float64[R]."""
        out = np.zeros(len(x), np.float64)
        if len(x):
            _sum(np.ascontiguousarray(x), self.roots, self.feature, self.threshold, self.children, self.leaves, out)
        return out

    def probability(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        """The logistic function of `raw`."""
        return 1.0 / (1.0 + np.exp(-self.raw(x)))

    def arrays(self, name: str) -> dict[str, NDArray]:
        """Its arrays under names that begin with `name`."""
        return {f"{name}.{key}": getattr(self, key) for key in self.__dataclass_fields__}


@dataclass(frozen=True)
class Model:
    """What the model file holds."""

    trees: Mapping[str, Trees]
    constants: Mapping[str, float]
    digest: str
    """Hex sha256 of the file."""


@cache
def load_model(path: Path = MODEL) -> Model:
    """Read a model file; nothing in it is executed."""
    data = path.read_bytes()
    with np.load(path, allow_pickle=False) as held:
        names = sorted({key.partition(".")[0] for key in held.files} - {"constants", "names"})
        trees = {name: Trees(**{key: held[f"{name}.{key}"] for key in Trees.__dataclass_fields__}) for name in names}
        constants = dict(zip(held["names"].tolist(), held["constants"].tolist(), strict=True))
    return Model(trees, constants, hashlib.sha256(data).hexdigest())


@numba.njit(nogil=True, cache=True)
def _sum(x, roots, feature, threshold, children, leaves, out):  # type: ignore[no-untyped-def]
    n = len(x)
    for first in range(0, n, BLOCK_ROWS):
        last = min(n, first + BLOCK_ROWS)
        for root in roots:
            for r in range(first, last):
                node = np.int64(root)
                while node >= 0:
                    node = np.int64(children[node, np.int64(x[r, feature[node]] > threshold[node])])
                out[r] += leaves[~node]
