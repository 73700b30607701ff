"""Trees: by bits, row by row and in plain Python they give the same sums, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.extractor.model.features import features
from corpusmill.extractor.model.load import load_model
from corpusmill.extractor.model.trees import BLOCK, FEW_ROWS, Trees
from corpusmill.extractor.scan.scan import scan


def plain_sums(trees: Trees, x: np.ndarray) -> list[float]:
    sums = []
    for row in x:
        total = 0.0
        for root in trees.roots.tolist():
            node = root
            while node >= 0:
                node = int(trees.children[node, int(row[trees.feature[node]] > trees.threshold[node])])
            total += float(trees.leaves[~node])
        sums.append(total)
    return sums


def grown(random: np.random.Generator, n_trees: int, max_leaves: int, n_features: int) -> Trees:
    """Random trees: leaves are split, one after the other, at a value that rows may have exactly."""
    roots, feature, threshold, children, leaves = [], [], [], [], []
    for _ in range(n_trees):
        open_ends = [(None, 0)]  # where the leaf hangs: its node and side
        root = None
        for _ in range(int(random.integers(0, max_leaves))):
            at = open_ends.pop(int(random.integers(len(open_ends))))
            node = len(feature)
            feature.append(int(random.integers(n_features)))
            threshold.append(float(random.integers(-3, 4)))
            children.append([0, 0])
            if at[0] is None:
                root = node
            else:
                children[at[0]][at[1]] = node
            open_ends += [(node, 0), (node, 1)]
        for parent, side in open_ends:
            leaves.append(float(random.normal()))
            if parent is None:
                root = ~(len(leaves) - 1)
            else:
                children[parent][side] = ~(len(leaves) - 1)
        roots.append(root)
    return Trees(
        np.array(roots, np.int32), np.array(feature, np.uint8), np.array(threshold, np.float32),
        np.array(children, np.int32).reshape(-1, 2), np.array(leaves, np.float64),
    )  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 12), st.sampled_from([1, 4, 31, 33, 80]), st.integers(0, 3 * BLOCK))
def test_random_trees_on_random_rows(seed: int, n_trees: int, max_leaves: int, n_rows: int) -> None:
    random = np.random.default_rng(seed)
    trees = grown(random, n_trees, max_leaves, n_features := int(random.integers(1, 9)))
    x = random.integers(-4, 5, (n_rows, n_features)).astype(np.float32)
    x[:, 0] = x[:1, 0]  # as features of the page are
    assert trees.raw(x).tolist() == trees.walked(x).tolist() == plain_sums(trees, x)


@pytest.mark.parametrize("n_rows", [0, 1, FEW_ROWS, FEW_ROWS + 1, BLOCK, BLOCK + 1, 5 * BLOCK + 3])
def test_the_shipped_model_on_lines_of_a_page(n_rows: int) -> None:
    trees = load_model().trees["lines"]
    row = "<div class=item{}><p>Word {}. <a href=x>Link</a></div>"
    html = "".join(row.format(i % 7, "and more " * (i % 13)) for i in range(n_rows))
    x = features(scan(html.encode()))
    assert len(x) == n_rows
    assert trees.raw(x).tolist() == trees.walked(x).tolist() == plain_sums(trees, x)


def test_the_shipped_model_is_read_by_bits() -> None:
    assert load_model().trees["lines"]._bits is not None
