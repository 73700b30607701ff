"""Exponentials and logarithms of stored values: right, the same bits everywhere, and the only ones that values meet."""

from __future__ import annotations

import ast
import math
import random
from pathlib import Path

import numpy as np
import pytest

import corpusmill
from corpusmill.kernels.elementary import exp, log

REPOSITORY = Path(corpusmill.__file__).parents[1]
INEXACT = {"exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "logaddexp", "pow", "power", "float_power"} | {
    "sin", "cos", "tan", "tanh", "arctan", "atan", "erf", "gamma", "lgamma", "cbrt", "hypot", "dot", "matmul", "einsum",
}  # fmt: skip
"""What NumPy, libm or BLAS round differently from machine to machine."""


def units_apart(a: float, b: float) -> float:
    return abs(a - b) / math.ulp(b)


def test_values_are_right_to_two_units_in_the_last_place():
    draw = random.Random(5)
    for _ in range(5000):
        y = draw.uniform(-690, 690)
        assert units_apart(exp(y), math.exp(y)) <= 2
        x = math.exp(draw.uniform(-600, 600))
        assert units_apart(log(x), math.log(x)) <= 2
    near_one = [1 + draw.uniform(-0.25, 0.4) for _ in range(2000)]
    assert max(abs(log(x) - math.log(x)) for x in near_one) < 2e-16


def test_rounded_to_float32_they_are_those_of_the_library():
    """Language scores were made with libm before: not one float32 of these moves by more than its last bit."""
    for y in np.linspace(-20, 20, 4001):
        ours, theirs = np.float32(exp(float(y))), np.float32(math.exp(y))
        assert abs(int(ours.view(np.int32)) - int(theirs.view(np.int32))) <= 1


@pytest.mark.parametrize(
    ("function", "value", "bits"),
    [
        (exp, 1.0, "0x1.5bf0a8b14576ap+1"),
        (exp, -0.7, "0x1.fc80db9dd5542p-2"),
        (exp, 33.25, "0x1.f553e375c68ecp+47"),
        (exp, -700.0, "0x1.14f2b0fb9307fp-1010"),
        (log, 2.0, "0x1.62e42fefa39efp-1"),
        (log, 1e-5, "-0x1.7069e2aa2aa5bp+3"),
        (log, 0.9999, "-0x1.a3738d2cf1cc2p-14"),
        (log, 12345.678, "0x1.2d79559791e31p+3"),
    ],
)
def test_bits_are_the_same_on_every_machine(function, value, bits):
    assert function(value).hex() == bits


def test_extremes_are_held():
    assert exp(1e9) == exp(700.0)
    assert exp(-1e9) == exp(-700.0) > 0


def inexact(source: str) -> list[tuple[int, str]]:
    """Lines that call such a function of math, NumPy or an array, raise a float to a power, or multiply matrices."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in INEXACT:
            if not (isinstance(node.func.value, ast.Name) and node.func.value.id in ("math", "np")):
                continue
            found.append((node.lineno, ast.unparse(node.func)))
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            found.append((node.lineno, "@"))
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and not _whole(node):
            found.append((node.lineno, "**"))
    return sorted(found)


def _whole(power: ast.BinOp) -> bool:
    """Whether both sides are certainly whole numbers: a constant power of two or ten, or a square."""
    sides = [power.left, power.right]
    return any(isinstance(side, ast.Constant) and isinstance(side.value, int) for side in sides)


def test_the_search_finds_what_it_looks_for():
    assert inexact("a = np.exp(x)\nb = math.log1p(y)\nc = p @ q\nd = j ** rows\ne = 2**7\nf = n.log(3)") == [
        (1, "np.exp"), (2, "math.log1p"), (3, "@"), (4, "**"),
    ]  # fmt: skip


@pytest.mark.parametrize("folder", ["corpusmill", "tasks"])
def test_no_stored_value_goes_through_libm_or_blas(folder):
    """Values that decide or are stored are the same on every processor; fastText's own scores are the exception."""
    files = sorted((REPOSITORY / folder).rglob("*.py"))
    assert len(files) > 50
    found = {str(file.relative_to(REPOSITORY)): lines for file in files if (lines := inexact(file.read_text("utf-8")))}
    assert found == {}
