"""Edit rules as arrays, for the kernel of `line_edits`: one operation a rule, its numbers, its lists of strings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpusmill.kernels.edits.rules import EditRule


class Op(IntEnum):
    """What a rule does; one for each test of edit_rules.TESTS."""

    BLANKS = 0
    NEWLINES = 1
    LONG_WORD = 2
    FEW_WORDS = 3
    NO_END_MARK = 4
    PHRASE = 5
    CAPITALS = 6
    DIGITS = 7
    COUNTER = 8
    CITATION = 9
    ADDRESS = 10
    REPEATED_LINE = 11


NUMBER, FLAG, PLACE, CUT = range(4)
"""Columns of `numbers`: a count; keep_empty, whole_words or numbers; where a phrase stands (of PLACES), or whether
blanks may follow a mark; whether the phrase alone is cut."""

PLACES = ("anywhere", "start", "end")

_FOLDED = ("phrase", "counter")
"""Tests whose strings match A to Z in either case."""


@dataclass(frozen=True)
class Program:
    """E rules with I strings."""

    ops: NDArray[np.int64]
    """int64[E]: Op."""
    numbers: NDArray[np.int64]
    """int64[E, 4]: NUMBER, FLAG, PLACE, CUT."""
    ratios: NDArray[np.float64]
    """float64[E]."""
    lists: NDArray[np.int64]
    """int64[E, 4]: first and end of the rule's strings, then first and end of those of `unless`."""
    items: NDArray[np.int64]
    """int64[I, 2]: place and size of each string in `blob`."""
    blob: NDArray[np.uint8]
    pairs: NDArray[np.uint8]
    """uint8[65536]: by two bytes (A to Z small), whether a phrase may begin with them."""


def compiled(edits: Sequence[EditRule]) -> Program:
    """The rules, in their order.

    Raises:
        ValueError: more than 64 rules.
    """
    if len(edits) > 64:
        raise ValueError(f"{len(edits)} edit rules; 64 are possible")
    blob = b""
    items: list[tuple[int, int]] = []
    lists, numbers = np.zeros((len(edits), 4), np.int64), np.zeros((len(edits), 4), np.int64)
    ratios = np.zeros(len(edits))
    pairs = np.zeros(65536, np.uint8)
    for e, edit in enumerate(edits):
        strings, unless = _strings(edit)
        for column, group in ((0, strings), (2, unless)):
            lists[e, column] = len(items)
            for string in group:
                items.append((len(blob), len(string)))
                blob += string
            lists[e, column + 1] = len(items)
        numbers[e] = _numbers(edit.settings)
        ratios[e] = edit.settings.get("max_ratio", 0.0)
        if edit.test == "phrase":
            _note_pairs(pairs, strings)
    ops = np.array([Op[edit.test.upper()] for edit in edits], np.int64)
    places = np.array(items, np.int64).reshape(len(items), 2)
    return Program(ops, numbers, ratios, lists, places, np.frombuffer(blob + b"\0" * 8, np.uint8), pairs)


def _strings(edit: EditRule) -> tuple[list[bytes], list[bytes]]:
    strings: tuple[str, ...] = ()
    for key in ("phrases", "marks", "units", "endings"):
        strings = edit.settings.get(key, strings)
    unless = edit.settings.get("unless", ())
    encoded = [[string.encode() for string in group] for group in (strings, unless)]
    if edit.test in _FOLDED:
        encoded = [[string.lower() for string in group] for group in encoded]  # of bytes: A to Z alone
    return encoded[0], encoded[1]


def _numbers(settings: Any) -> tuple[int, int, int, int]:
    number = next((settings[key] for key in ("max", "max_chars", "min_words", "max_words") if key in settings), 0)
    flag = any(settings.get(key) for key in ("keep_empty", "whole_words", "numbers"))
    place = PLACES.index(settings["at"]) if "at" in settings else int(bool(settings.get("blanks")))
    return number, int(flag), place, int(settings.get("cut") == "phrase")


def _note_pairs(pairs: NDArray[np.uint8], strings: Sequence[bytes]) -> None:
    for string in strings:
        if len(string) == 1:
            pairs[string[0] << 8 : (string[0] + 1) << 8] = 1
        else:
            pairs[string[0] << 8 | string[1]] = 1
