"""Trees of the training library (LightGBM) as the flat arrays of corpusmill.extractor.model.load."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpusmill.extractor.model.load import Trees


def flat(booster: Any) -> Trees:
    """Arrays of a LightGBM booster."""
    roots: list[int] = []
    nodes: list[tuple[int, float]] = []
    children: list[list[int]] = []
    leaves: list[float] = []

    def add(node: Mapping[str, Any]) -> int:
        if "split_index" not in node:
            leaves.append(node["leaf_value"])
            return ~(len(leaves) - 1)
        number = len(nodes)
        nodes.append((node["split_feature"], node["threshold"]))
        children.append([0, 0])
        children[number][0] = add(node["left_child"])
        children[number][1] = add(node["right_child"])
        return number

    for tree in booster.dump_model()["tree_info"]:
        roots.append(add(tree["tree_structure"]))
    return Trees(
        np.array(roots, np.int32),
        np.array([feature for feature, _ in nodes], np.uint8),
        rounded_down(np.array([threshold for _, threshold in nodes], np.float64)),
        np.array(children, np.int32).reshape(-1, 2),
        np.array(leaves, np.float64),
    )


def rounded_down(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """The largest float32 that is not above each value."""
    near = values.astype(np.float32)
    return np.where(near.astype(np.float64) > values, np.nextafter(near, np.float32(-np.inf)), near)


def write(path: Path, trees: Mapping[str, Trees], constants: Mapping[str, float]) -> None:
    """Write a model file; equal contents are equal bytes."""
    arrays = {key: array for name, held in sorted(trees.items()) for key, array in held.arrays(name).items()}
    arrays["names"] = np.array(sorted(constants))
    arrays["constants"] = np.array([constants[name] for name in sorted(constants)], np.float64)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for key, array in sorted(arrays.items()):
            member = zipfile.ZipInfo(f"{key}.npy", (1980, 1, 1, 0, 0, 0))
            member.compress_type = zipfile.ZIP_DEFLATED
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
            file.writestr(member, buffer.getvalue())
