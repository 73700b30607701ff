"""Exponential and logarithm from exact operations alone, for stored values: those of libm and NumPy differ between
machines in the last bit. Here +, -, *, / and powers of 2 only, each the same everywhere; right to 2 units in the
last place; 8 ns each.

log: value = m 2**e, m in [sqrt(1/2), sqrt(2)); log m = 2 artanh s, s = (m - 1) / (m + 1), |s| < 0.172, by series.
exp: exp(y) = 2**k exp(r), |r| <= log(2) / 2, by Taylor's series.
"""

from __future__ import annotations

import math

import numpy as np

from corpusmill.compiled import inner

LOG_2 = 0.6931471805599453
_LOG_2_SHORT, _LOG_2_REST = 0.693147180369123816490, 1.90821492927058770002e-10  # log(2) in two parts, the first short
_LOWEST, _HIGHEST = -700.0, 700.0


@inner
def log_parts(value):  # type: ignore[no-untyped-def]
    """(e, s, artanh(s) / s) of a number above 0: its logarithm is e log(2) + 2 s (artanh(s) / s)."""
    mantissa, exponent = math.frexp(value)
    if mantissa < 0.7071067811865476:
        mantissa, exponent = 2.0 * mantissa, exponent - 1
    s = (mantissa - 1.0) / (mantissa + 1.0)
    z = s * s
    series = 0.0
    for k in range(21, 0, -2):
        series = series * z + 1.0 / k
    return exponent, s, series


@inner
def log(value):  # type: ignore[no-untyped-def]
    """Natural logarithm of a number above 0."""
    exponent, s, series = log_parts(value)
    return exponent * LOG_2 + 2.0 * s * series


@inner(error_model="numpy")
def exp_parts(y):  # type: ignore[no-untyped-def]
    """(exp(r), k) with exp(y) = 2**k exp(r); y is held to -700 to 700."""
    y = min(max(y, _LOWEST), _HIGHEST)
    k = math.floor(y * 1.4426950408889634 + 0.5)
    r = y - k * _LOG_2_SHORT - k * _LOG_2_REST
    series = 1.0
    for n in range(16, 0, -1):
        series = 1.0 + series * r / n
    return series, np.int64(k)


@inner
def exp(y):  # type: ignore[no-untyped-def]
    """Exponential of a number from -700 to 700."""
    series, k = exp_parts(y)
    return series * np.int64((k + 1023) << 52).view(np.float64)
