"""The models that ship with the library: boosted trees (trees.py) and constants, in one file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from corpusmill.extractor.model.trees import Trees

__all__ = ["MODEL", "Model", "Trees", "load_model"]

MODEL = Path(__file__).with_name("model.npz")
"""The shipped models: see docs/notes/extractor-model.md."""


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
