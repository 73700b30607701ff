"""Which bands x rows for a similarity: the S-curve 1 - (1 - J**rows)**bands, and the areas on its wrong sides.

Method: Leskovec, Rajaraman, Ullman, Mining of Massive Datasets, ch. 3.4; the two areas are those by which datasketch
chooses its bands.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from corpusmill.errors import UsageError
from corpusmill.kernels.duplicates.lsh import collision_probability

STEPS = 2000
"""Of the integrals: Simpson's rule, far finer than a fourth digit needs."""


@dataclass(frozen=True)
class Choice:
    """One way to cut a signature."""

    bands: int
    rows: int
    half: float
    """Similarity of which half the pairs are found."""
    at_threshold: float
    """Probability to find a pair of just the threshold's similarity."""
    false_positive: float
    """Area under the curve below the threshold."""
    false_negative: float
    """Area above the curve from the threshold on."""

    def to_json(self) -> dict[str, float]:
        """For programs."""
        return asdict(self)


def choices(threshold: float, num_perm: int) -> list[Choice]:
    """Every bands x rows of a signature, few bands first.

    Raises:
        UsageError: a threshold that is no similarity, or a signature without a place.
    """
    if not 0 < threshold < 1:
        raise UsageError(f"threshold {threshold:g}", "expected a similarity between 0 and 1, for example 0.8")
    if num_perm < 2:
        raise UsageError(f"num-perm {num_perm}", "expected at least 2 permutations, for example 112")
    return [_choice(bands, num_perm // bands, threshold) for bands in range(1, num_perm + 1) if num_perm % bands == 0]


def recommended(threshold: float, num_perm: int, recall: float) -> Choice:
    """The choice with the fewest false positives among those that find a pair of the threshold's similarity so often.

    Raises:
        UsageError: no choice finds them so often.
    """
    found = choices(threshold, num_perm)
    if not 0 < recall < 1:
        raise UsageError(f"recall {recall:g}", "expected a probability between 0 and 1, for example 0.99")
    enough = [choice for choice in found if choice.at_threshold >= recall]
    if not enough:
        raise UsageError(
            f"recall {recall:g} at similarity {threshold:g}",
            f"no bands and rows of {num_perm} permutations find pairs with that probability",
            "Set more permutations with --num-perm, or a lower --recall.",
        )
    return min(enough, key=lambda choice: choice.false_positive)


def _choice(bands: int, rows: int, threshold: float) -> Choice:
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if collision_probability(middle, bands, rows) >= 0.5 else (middle, high)
    return Choice(
        bands,
        rows,
        half=(low + high) / 2,
        at_threshold=collision_probability(threshold, bands, rows),
        false_positive=_area(0.0, threshold, bands, rows),
        false_negative=1 - threshold - _area(threshold, 1.0, bands, rows),
    )


def _area(begin: float, end: float, bands: int, rows: int) -> float:
    step = (end - begin) / STEPS
    total = 0.0
    for i in range(STEPS + 1):
        weight = 1 if i in (0, STEPS) else 4 if i % 2 else 2
        total += weight * collision_probability(begin + i * step, bands, rows)
    return total * step / 3
