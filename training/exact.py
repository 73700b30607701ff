"""Decimals of a training config as exact numbers: no float reaches a digest.

TOML reads 0.1 as the nearest float, whose shortest form is the decimal that was written (up to 15 digits), so that is
what it means here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

_DECIMAL = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?(e[+-]?[0-9]{1,2})?")


def decimal(value: object) -> Fraction | None:
    """The number that a whole number, a float or a text such as "0.25" spells; None: it is no decimal above 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    if isinstance(value, int):
        return Fraction(value) if value > 0 else None
    text = value if isinstance(value, str) else repr(value)
    return Fraction(text) if _DECIMAL.fullmatch(text) and Fraction(text) > 0 else None


def spelled(value: Any) -> Any:
    """A decimal in its one form: "0.5" for 0.5, .50 or "0.50", "2" for 2.

    Raises:
        ValueError: it is none. None itself is returned.
    """
    if value is None:
        return None
    number = decimal(value)
    if number is None:
        raise ValueError("expected a decimal above 0")
    whole, rest = divmod(number.numerator, number.denominator)
    digits = ""
    while rest:
        digit, rest = divmod(rest * 10, number.denominator)
        digits += str(digit)
    return f"{whole}.{digits}" if digits else str(whole)


def whole_weights(weights: Any) -> Any:
    """Decimals as the smallest whole numbers in the same ratio: 0.75 and 0.25 are 3 and 1.

    Whole numbers stay as they are; so does what is not a table.

    Raises:
        ValueError: some are no decimals above 0.
    """
    if not isinstance(weights, Mapping) or all(type(weight) is int for weight in weights.values()):
        return weights
    numbers = {name: decimal(weight) for name, weight in weights.items()}
    exact = {name: number for name, number in numbers.items() if number is not None}
    if len(exact) < len(numbers):
        none = sorted(set(numbers) - set(exact))
        raise ValueError(f"expected a decimal above 0 for {', '.join(none)}")
    scale = math.lcm(*(number.denominator for number in exact.values()))
    scaled = {name: int(number * scale) for name, number in exact.items()}
    common = math.gcd(*scaled.values())
    return {name: number // common for name, number in scaled.items()}
