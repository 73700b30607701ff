"""Boosted trees as flat arrays and their evaluator, equal to the training library's to 1e-8.

A tree's inner nodes are numbered from its first node on; a child below zero is a leaf, ~child its number. A node sends
a row left where its feature is <= the threshold. Thresholds are float32, rounded down: rows are float32 too, so that
the comparison comes out as with the library's float64.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numba
import numpy as np
from numpy.typing import NDArray

from corpusmill.kernels.bytehash import U

MODEL = Path(__file__).with_name("model.npz")
"""The shipped models: see docs/notes/extractor-model.md."""

LEAF = 0x80000000
BLOCK_ROWS = 64  # rows whose features stay in the processor's cache while all trees pass over them


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
            _sum(np.ascontiguousarray(x), *self._packed, self.threshold, self.leaves, out)
        return out

    @cached_property
    def _packed(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Roots, and feature, left and right child of each node one after the other; a leaf is LEAF + its number.
        Unsigned and side by side, they are read in two thirds of the time."""
        nodes = np.empty((len(self.feature), 3), np.uint32)
        nodes[:, 0] = self.feature
        nodes[:, 1:] = _unsigned(self.children)
        return _unsigned(self.roots), nodes.ravel()

    def probability(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        """The logistic function of `raw`."""
        return _logistic(self.raw(x))

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
def _logistic(x):  # type: ignore[no-untyped-def]
    """1 / (1 + exp(-x)) from exact operations alone: numpy's exp differs between processors.

    exp(y) = 2**k exp(r) with |r| <= log(2) / 2, by Taylor's series.
    """
    out = np.empty(len(x), np.float64)
    for i in range(len(x)):
        y = min(max(-x[i], -700.0), 700.0)
        k = math.floor(y * 1.4426950408889634 + 0.5)
        r = y - k * 0.693147180369123816490 - k * 1.90821492927058770002e-10  # log(2) in two parts, the first short
        series = 1.0
        for n in range(16, 0, -1):
            series = 1.0 + series * r / n
        out[i] = 1.0 / (1.0 + math.ldexp(series, int(k)))
    return out


def _unsigned(numbers: NDArray[np.int32]) -> NDArray[np.uint32]:
    wide = numbers.astype(np.int64)
    return np.where(wide >= 0, wide, LEAF + ~wide).astype(np.uint32)


@numba.njit(nogil=True, cache=True)
def _sum(x, roots, nodes, threshold, leaves, out):  # type: ignore[no-untyped-def]
    n, leaf = U(len(x)), U(LEAF)
    first = U(0)
    while first < n:
        last = min(n, first + U(BLOCK_ROWS))
        for root in roots:
            r = first
            while r < last:
                node = U(root)
                while node < leaf:
                    at = node * U(3)
                    node = U(nodes[at + U(1) + U(x[r, U(nodes[at])] > threshold[node])])
                out[r] += leaves[node - leaf]
                r += U(1)
        first = last
