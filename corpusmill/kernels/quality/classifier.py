"""Quality of documents by a fastText classifier, and what is done with scores: a threshold, a top fraction, buckets.

Method: a linear classifier on word n-grams separates good from other documents (DCLM, Li et al. 2024,
arXiv:2406.11794). Training (tasks/models/quality.py) and scoring see the same text: `normalised`.

A score is the probability of the positive label in millionths, so scores can be counted and compared exactly.
It is fastText's own, made with the exp of the machine's libm: between machines it may differ by a millionth.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import fasttext
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from corpusmill.canonical import digest_of

HEAD_CHARS = 5000
"""Characters at the beginning of a document that are judged, unless the model's card says otherwise."""
POSITIVE, NEGATIVE = "__label__positive", "__label__negative"
"""Labels of our own models."""
POSITIVE_LABELS = (POSITIVE, "__label__hq", "__label__high", "__label__good", "__label__pos", "__label__1")
"""Names that models without a card give the positive label; `__label__hq` is DCLM's."""
SCALE = 1_000_000

_MARKS = ("</s>", "__label__", "\0")  # fastText's own: they would hide what follows, name a label, cut a word


@dataclass(frozen=True)
class Settings:
    """How a model is asked."""

    label: str | None = None
    """The positive label; None: the one of POSITIVE_LABELS that the model has."""
    head_chars: int = HEAD_CHARS


def normalised(text: str, head_chars: int = HEAD_CHARS) -> str:
    """The line that fastText sees: the first characters, white space as one blank, case kept, fastText's marks out."""
    head = text[:head_chars]
    for mark in _MARKS:
        head = head.replace(mark, " ")
    return " ".join(head.split())


def card_path(model: Path) -> Path:
    """Where the card of a model is: beside it."""
    return model.with_name(model.name + ".json")


def settings(model: Path) -> Settings:
    """What a model's card says about how to ask it; the defaults where it has none.

    Raises:
        ValueError: there is a card, and it is not one.
    """
    path = card_path(model)
    if not path.is_file():
        return Settings()
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
        label, head_chars = card["labels"]["positive"], card["text"]["head_chars"]
    except (ValueError, KeyError, TypeError) as err:
        raise ValueError(f"{path.name}: not the card of a quality model ({type(err).__name__}: {err})") from err
    if not isinstance(label, str) or isinstance(head_chars, bool) or not isinstance(head_chars, int) or head_chars < 1:
        raise ValueError(f"{path.name}: labels.positive must be a name and text.head_chars a positive number")
    return Settings(label, head_chars)


def identity(model: Path) -> str:
    """Hex sha256 of all that scores depend on: the model's bytes and how it is asked."""
    with model.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    asked = settings(model)
    return digest_of({"model": digest, "label": asked.label, "head_chars": asked.head_chars})


class Classifier:
    """A fastText classifier with a positive label (.bin or .ftz). It does not pickle: load it in each worker."""

    def __init__(self, path: Path) -> None:
        """Load a model and, where it has one, its card.

        Raises:
            ValueError: no fastText model, none with labels, or none of its labels is the positive one.
        """
        self.settings = settings(path)
        self._model = fasttext.load_model(str(path))
        labels = list(self._model.labels)
        wanted = (self.settings.label,) if self.settings.label else POSITIVE_LABELS
        found = [label for label in wanted if label in labels]
        if not found:
            raise ValueError(f"{path.name}: no positive label; expected {' or '.join(wanted)}, the model has {labels}")
        self.label, self._labels = found[0], len(labels)

    def scores_e6(self, text: pa.Array) -> pa.Int32Array:
        """Probability of the positive label of each document, in millionths.

        Args:
            text: large_string[n]; only the first `settings.head_chars` characters are read.

        Returns:
            int32[n] of 0 to 1,000,000; null where there is nothing but white space, and for null.
        """
        heads = pc.utf8_slice_codeunits(text, 0, self.settings.head_chars)  # the rest is not even decoded
        return pa.array([self._score(head) for head in heads.to_pylist()], pa.int32())

    def _score(self, document: str | None) -> int | None:
        line = normalised(document or "", self.settings.head_chars)
        if not line:
            return None
        labels, probabilities = self._model.predict(line, k=self._labels)  # one string: float64, no batching
        found = dict(zip(labels, probabilities.tolist(), strict=True))
        # A softmax of single precision sums to 1 within 1e-5; a label that is left out has less than 1e-5.
        return min(SCALE, max(0, round(found[self.label] * SCALE))) if self.label in found else 0


def score_counts(scores: pa.Array | pa.ChunkedArray) -> NDArray[np.int64]:
    """How many documents have each score, int64[1,000,001]. Counts of shards add up to those of the dataset."""
    return np.bincount(_known(scores), minlength=SCALE + 1).astype(np.int64)


def threshold_of_fraction(scores: pa.Array | pa.ChunkedArray, fraction: float) -> int:
    """The highest threshold that keeps at least this part of the documents.

    Args:
        scores: int32[n] in millionths; documents with null count among the n, but are never kept.
        fraction: 0 < fraction <= 1.

    Returns:
        keep where score >= it. Documents with equal scores are kept together, so more than the fraction may be;
        0 where even all documents with a score are too few.

    Raises:
        ValueError: a fraction out of range, or no documents.
    """
    return threshold_of_counts(score_counts(scores), len(scores), fraction)


def threshold_of_counts(counts: NDArray[np.int64], documents: int, fraction: float) -> int:
    """As `threshold_of_fraction`, from the counts of each score and the number of all documents."""
    if not 0 < fraction <= 1:
        raise ValueError(f"fraction must be above 0 and at most 1, got {fraction}")
    if documents < 1:
        raise ValueError("no documents to take a fraction of")
    wanted = -(-documents * round(fraction * 10**9) // 10**9)
    kept = np.cumsum(counts[::-1])  # kept[k]: documents with score >= SCALE - k
    return max(SCALE - int(np.searchsorted(kept, wanted)), 0)


def buckets(scores: pa.Array, bounds: Sequence[int]) -> pa.Int32Array:
    """The bucket of each document: how many of the bounds its score reaches; null stays null.

    Args:
        scores: int32[n] in millionths.
        bounds: ascending; k bounds make buckets 0 to k.

    Raises:
        ValueError: bounds that do not ascend.
    """
    if any(a >= b for a, b in pairwise(bounds)):
        raise ValueError(f"bounds must ascend, got {list(bounds)}")
    missing = scores.is_null().to_numpy(zero_copy_only=False)
    values = np.searchsorted(np.asarray(bounds, np.int64), scores.fill_null(0).to_numpy(), side="right")
    return pa.array(values.astype(np.int32), pa.int32(), mask=missing)


def _known(scores: pa.Array | pa.ChunkedArray) -> NDArray[np.int32]:
    known = scores.drop_null()
    values = (known.combine_chunks() if isinstance(known, pa.ChunkedArray) else known).to_numpy()
    if len(values) and (values.min() < 0 or values.max() > SCALE):
        raise ValueError(f"scores must be 0 to {SCALE}, got {values.min()} to {values.max()}")
    return values
