"""Boosted trees as flat arrays and their evaluators, equal to the training library's to 1e-8.

A tree's inner nodes are numbered from its first node on; a child below zero is a leaf, ~child its number. A node sends
a row left where its feature is <= the threshold. Thresholds are float32, rounded down: rows are float32 too, so that
the comparison comes out as with the library's float64.

Many rows are judged without walking down any tree, as QuickScorer does (Lucchese et al. 2015): the leaves of a tree are
bits, from left to right; a node that sends a row right rules out the leaves on its left, whatever the other nodes say;
the first leaf that is left is the row's. So all nodes of one feature are asked one after the other, 32 rows at a time,
without a branch. Nodes that all rows of a page answer alike, as those about the page itself, are asked once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpusmill.compiled import intrinsic, ir, kernel, types
from corpusmill.kernels.bytes.bytehash import U
from corpusmill.kernels.elementary import exp_parts

LEAF = 0x80000000
MAX_BITS = 32  # leaves of a tree that bits can distinguish
BLOCK = 32  # rows that are judged together: a tree's bits for them fill two cache lines
FEW_ROWS = 8  # so few rows are sent down the trees one by one


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
        bits = self._bits if len(x) > FEW_ROWS else None
        return self.walked(x) if bits is None else _by_bits(np.ascontiguousarray(x), *bits)

    def walked(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        """The same, row by row from the roots down."""
        out = np.zeros(len(x), np.float64)
        if len(x):
            _walk(np.ascontiguousarray(x), *self._packed, self.threshold, self.leaves, out)
        return out

    def probability(self, x: NDArray[np.float32]) -> NDArray[np.float64]:
        """The logistic function of `raw`."""
        raw = self.raw(x)
        out = np.empty_like(raw)
        _logistic(raw, out)
        return out

    def arrays(self, name: str) -> dict[str, NDArray]:
        """Its arrays under names that begin with `name`."""
        return {f"{name}.{key}": getattr(self, key) for key in self.__dataclass_fields__}

    @cached_property
    def _packed(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Roots, and feature, left and right child of each node one after the other; a leaf is LEAF + its number.
        Unsigned and side by side, they are read in two thirds of the time."""
        nodes = np.empty((len(self.feature), 3), np.uint32)
        nodes[:, 0] = self.feature
        nodes[:, 1:] = _unsigned(self.children)
        return _unsigned(self.roots), nodes.ravel()

    @cached_property
    def _bits(self) -> tuple[NDArray, ...] | None:
        """What _by_bits reads, nodes by feature and threshold; None where a tree has more than MAX_BITS leaves."""
        tree, barred = np.zeros(len(self.feature), np.uint32), np.zeros(len(self.feature), np.uint32)
        leaves = np.zeros((len(self.roots), MAX_BITS), np.float64)
        for t, root in enumerate(self.roots.tolist()):
            order = _number(self.children, root, t, tree, barred)
            if len(order) > MAX_BITS:
                return None
            leaves[t, : len(order)] = self.leaves[order]
        by_feature = np.lexsort((self.threshold, self.feature))
        starts = np.searchsorted(self.feature[by_feature], np.arange(int(self.feature.max(initial=0)) + 2))
        threshold = np.ascontiguousarray(self.threshold[by_feature])
        return starts, threshold, tree[by_feature], ~barred[by_feature], leaves


@kernel(error_model="numpy")
def _logistic(x, out):  # type: ignore[no-untyped-def]
    """1 / (1 + exp(-x)), several values at a time: the bits of the powers become numbers after the loop."""
    powers = np.empty(len(x), np.int64)
    for i in range(len(x)):
        out[i], k = exp_parts(-x[i])
        powers[i] = (k + 1023) << 52
    scale = powers.view(np.float64)
    for i in range(len(x)):
        out[i] = 1.0 / (1.0 + out[i] * scale[i])


def _unsigned(numbers: NDArray[np.int32]) -> NDArray[np.uint32]:
    wide = numbers.astype(np.int64)
    return np.where(wide >= 0, wide, LEAF + ~wide).astype(np.uint32)


def _number(
    children: NDArray[np.int32], root: int, t: int, tree: NDArray[np.uint32], barred: NDArray[np.uint32]
) -> list[int]:
    """Leaves of a tree from left to right; notes each node's tree and the bits of the leaves on its left."""
    order: list[int] = []
    todo: list[tuple[int, int | None]] = [(root, None)]  # a node, and where its left half began once that is done
    while todo:
        node, begin = todo.pop()
        if node < 0:
            order.append(~node)
        elif begin is None:
            left, right = children[node].tolist()
            todo += [(right, None), (node, len(order)), (left, None)]
        else:
            tree[node] = t
            barred[node] = ((1 << len(order)) - (1 << begin)) & 0xFFFFFFFF
    return order


@intrinsic
def _lowest_bit(context: Any, word: Any) -> Any:
    """Number of the lowest bit of a word that has one."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.zext(builder.cttz(args[0], ir.Constant(ir.IntType(1), 1)), ir.IntType(64))

    return types.uint64(types.uint32), codegen


@intrinsic
def _rule_out(context: Any, words: Any, column: Any, bound: Any, allowed: Any) -> Any:
    """Leave only the allowed bits in the words, uint32[BLOCK], whose value in the column, float32[BLOCK], is > bound.

    Both are addresses. Spelled out as vectors, since the compiler does not find them: it takes a third of the time.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lanes, floats = ir.VectorType(ir.IntType(32), BLOCK), ir.VectorType(ir.FloatType(), BLOCK)

        def spread(value: Any, vector: Any) -> Any:
            one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
            zeros = ir.Constant(ir.VectorType(ir.IntType(32), BLOCK), [0] * BLOCK)
            return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), zeros)

        place = builder.inttoptr(args[0], lanes.as_pointer())
        values = builder.load(builder.inttoptr(args[1], floats.as_pointer()), align=4)
        above = builder.fcmp_ordered(">", values, spread(args[2], floats))
        held = builder.load(place, align=4)
        left = builder.and_(held, spread(args[3], lanes))
        builder.store(builder.select(above, left, held), place, align=4)
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64, types.float32, types.uint32), codegen


@kernel
def _walk(x, roots, nodes, threshold, leaves, out):  # type: ignore[no-untyped-def]
    n, leaf = U(len(x)), U(LEAF)
    first = U(0)
    while first < n:
        last = min(n, first + U(BLOCK))
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


@kernel
def _by_bits(x, starts, threshold, tree, allowed, leaves):  # type: ignore[no-untyped-def]
    n, n_features, n_trees = len(x), len(starts) - 1, len(leaves)
    n_blocks = (n + BLOCK - 1) // BLOCK
    least, greatest = np.empty((n_blocks, n_features), np.float32), np.empty((n_blocks, n_features), np.float32)
    for block in range(n_blocks):
        least_in, greatest_in = least[block], greatest[block]
        least_in[:] = x[BLOCK * block, :n_features]
        greatest_in[:] = x[BLOCK * block, :n_features]
        for r in range(BLOCK * block + 1, min(n, BLOCK * block + BLOCK)):
            row = x[r]
            for f in range(n_features):
                least_in[f], greatest_in[f] = min(least_in[f], row[f]), max(greatest_in[f], row[f])
    low, high = least[0].copy(), greatest[0].copy()
    for block in range(1, n_blocks):
        for f in range(n_features):
            low[f], high[f] = min(low[f], least[block, f]), max(high[f], greatest[block, f])
    # nodes that all rows answer alike are asked here, the others are noted
    base = np.full(n_trees, 0xFFFFFFFF, np.uint32)
    bounds, masks = np.empty(len(threshold), np.float32), np.empty(len(threshold), np.uint32)
    trees, stops = np.empty(len(threshold), np.uint32), np.empty(n_features, np.int32)
    n_asked = 0
    for f in range(n_features):
        i, last = starts[f], starts[f + 1]
        while i < last and threshold[i] < low[f]:
            base[tree[i]] &= allowed[i]
            i += 1
        while i < last and threshold[i] < high[f]:
            bounds[n_asked], masks[n_asked], trees[n_asked] = threshold[i], allowed[i], tree[i]
            n_asked += 1
            i += 1
        stops[f] = n_asked
    out = np.empty(n, np.float64)
    bits, sure = np.empty((n_trees, BLOCK), np.uint32), np.empty(n_trees, np.uint32)
    column = np.empty(BLOCK, np.float32)
    bits_at, column_at = U(bits.ctypes.data), U(column.ctypes.data)
    for first in range(0, n, BLOCK):
        width = min(BLOCK, n - first)
        bits[:] = 0xFFFFFFFF
        sure[:] = base
        k = 0
        for f in range(n_features):
            stop = stops[f]
            least_here, greatest_here = least[first // BLOCK, f], greatest[first // BLOCK, f]
            while k < stop and bounds[k] < least_here:
                sure[trees[k]] &= masks[k]
                k += 1
            if k < stop and bounds[k] < greatest_here:
                for r in range(BLOCK):
                    column[r] = x[first + min(r, width - 1), f]
                while k < stop and bounds[k] < greatest_here:
                    _rule_out(bits_at + U(4 * BLOCK) * U(trees[k]), column_at, bounds[k], masks[k])
                    k += 1
            k = stop
        total = np.zeros(BLOCK, np.float64)
        for t in range(n_trees):
            for r in range(BLOCK):
                total[r] += leaves[t, _lowest_bit(bits[t, r] & sure[t])]
        out[first : first + width] = total[:width]
    return out
