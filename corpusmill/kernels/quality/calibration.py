"""What a threshold on a score does: precision, recall and the share kept, with intervals, on documents of known label.

Intervals are Wilson's (1927) for 95 %: they stay within 0 and 1 and are honest where few documents were counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Z = 1.959963984540054
THRESHOLDS_E6 = tuple(
    round(p * 1_000_000) for p in (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
)


@dataclass(frozen=True)
class Share:
    """hits of total, with its interval; all null where total is 0."""

    hits: int
    total: int

    def to_json(self) -> dict[str, float | int | None]:
        """Value and interval, rounded to 4 places, and what was counted."""
        low, high = wilson(self.hits, self.total)
        value = round(self.hits / self.total, 4) if self.total else None
        return {"value": value, "low": low, "high": high, "hits": self.hits, "of": self.total}


@dataclass(frozen=True)
class Row:
    """What keeping documents with score >= threshold does."""

    threshold_e6: int
    kept: Share
    """Documents kept, of all."""
    precision: Share
    """Positives among the kept."""
    recall: Share
    """Kept among the positives."""
    false_positives: Share
    """Kept among the negatives: unlike precision it does not depend on how many positives there are."""

    def to_json(self) -> dict[str, object]:
        """As JSON."""
        parts = {name: getattr(self, name).to_json() for name in ("kept", "precision", "recall", "false_positives")}
        return {"threshold_e6": self.threshold_e6, **parts}


def wilson(hits: int, total: int) -> tuple[float | None, float | None]:
    """95 % interval of a share, rounded to 4 places; None where nothing was counted."""
    if total == 0:
        return None, None
    p, z2 = hits / total, Z * Z
    middle = p + z2 / (2 * total)
    half = Z * math.sqrt(p * (1 - p) / total + z2 / (4 * total * total))
    scale = 1 + z2 / total
    low = 0.0 if hits == 0 else (middle - half) / scale
    high = 1.0 if hits == total else (middle + half) / scale
    return round(low, 4), round(high, 4)


def calibration(
    positive_e6: NDArray[np.int32], negative_e6: NDArray[np.int32], thresholds_e6: Sequence[int] = THRESHOLDS_E6
) -> list[Row]:
    """A row for each threshold, ascending.

    Args:
        positive_e6, negative_e6: scores in millionths of held-out documents of each label.
        thresholds_e6: what to try.
    """
    rows = []
    positives, negatives = np.sort(positive_e6), np.sort(negative_e6)
    for threshold in sorted(thresholds_e6):
        hits = len(positives) - int(np.searchsorted(positives, threshold))
        false = len(negatives) - int(np.searchsorted(negatives, threshold))
        rows.append(
            Row(
                threshold,
                kept=Share(hits + false, len(positives) + len(negatives)),
                precision=Share(hits, hits + false),
                recall=Share(hits, len(positives)),
                false_positives=Share(false, len(negatives)),
            )
        )
    return rows
