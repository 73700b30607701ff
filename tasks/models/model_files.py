"""A trained model and its card beside it: never over another, and where the model is, its card is."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from corpusmill.canonical import canonical_json
from corpusmill.errors import Refused
from corpusmill.kernels.quality.classifier import card_path


def refuse_existing(output: Path, *others: Path) -> None:
    """Raises Refused where a model, its card or another file of the training is there already."""
    for path in (output, card_path(output), *others):
        if path.exists():
            raise Refused(f"{path} exists", "training never overwrites", "Choose another name or remove the file.")


def identity(path: Path) -> dict[str, Any]:
    """What a card says of its model: {"sha256", "bytes"}."""
    with path.open("rb") as file:
        return {"sha256": hashlib.file_digest(file, "sha256").hexdigest(), "bytes": path.stat().st_size}


def put(made: Path, card: Mapping[str, Any], output: Path) -> None:
    """Move a model from a scratch folder of the same disk to its place, behind its card."""
    beside = card_path(made)
    beside.write_bytes(canonical_json(card) + b"\n")
    for part, place in ((beside, card_path(output)), (made, output)):
        part.chmod(0o644)
        part.replace(place)
