"""Families of measures: which columns belong together, and whose wording they follow. A recipe computes the families
that its rules read, and pays for no other.

A measure of datatrove's bears its plain name; another project's version of it has the project's name before it
(`dup_line_ratio`, `dolma_dup_line_ratio`). What each counts stands in docs/reference/rules.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from corpusmill.schema import QUALITY_MEASURES, REPETITION_MEASURES

TOP_NGRAMS = tuple(f"top_{n}gram_char_ratio" for n in (2, 3, 4))
DUP_NGRAMS = tuple(f"dup_{n}gram_char_ratio" for n in (5, 6, 7, 8, 9, 10))
_DUP_LINES = ("dup_line_ratio", "dup_line_char_ratio")
_DUP_PARAGRAPHS = ("dup_paragraph_ratio", "dup_paragraph_char_ratio")


@dataclass(frozen=True)
class Family:
    """Measures that are computed together."""

    definition: str
    """Whose wording: what rules name as their `definition`."""
    measures: tuple[str, ...]


def _of(project: str, *names: str) -> Family:
    return Family(project, tuple(f"{project}_{name}" for name in names))


FAMILIES: Mapping[str, Family] = {
    "gopher": Family("datatrove", (*QUALITY_MEASURES, *REPETITION_MEASURES)),
    "body": Family("corpusmill", ("bullet_body_ratio",)),
    "fineweb": Family(
        "datatrove", ("end_mark_line_ratio", "short_line_ratio", "dup_line_body_ratio", "line_break_ratio")
    ),
    "page": Family("datatrove", ("char_count", "sentence_count", "curly_bracket_count", "lorem_ipsum_count")),
    "code": _of(
        "code", "mean_line_chars", "max_line_chars", "alnum_ratio", "letters_per_token", "encoded_ratio", "xml"
    ),
    "dolma": _of(
        "dolma",
        *("word_count", "median_word_chars", "symbol_ratio", "alpha_word_ratio", "stop_word_count"),
        *("bullet_line_ratio", "ellipsis_line_ratio", *_DUP_LINES, *TOP_NGRAMS, *DUP_NGRAMS),
    ),
    "dclm": _of(
        "dclm",
        *("word_count", "mean_word_chars", "symbol_ratio", "alpha_word_ratio", "stop_word_count"),
        *("bullet_line_ratio", "ellipsis_line_ratio", *_DUP_LINES, *_DUP_PARAGRAPHS, *TOP_NGRAMS, *DUP_NGRAMS),
    ),
    "nemo": _of(
        "nemo",
        *("word_count", "mean_word_chars", "symbol_ratio", "alpha_word_ratio", "stop_word_count"),
        *("bullet_line_ratio", "ellipsis_line_ratio", *_DUP_LINES, *_DUP_PARAGRAPHS, *TOP_NGRAMS, *DUP_NGRAMS),
        *("non_alnum_ratio", "digit_ratio", "url_ratio", "space_ratio", "bracket_ratio", "boilerplate_ratio"),
        *("no_end_mark_ratio", "longest_word_chars"),
    ),
    "redpajama": _of(
        "redpajama",
        *("word_count", "mean_word_chars", "symbol_ratio", "alpha_word_ratio"),
        *("bullet_line_ratio", "ellipsis_line_ratio", *TOP_NGRAMS, *DUP_NGRAMS),
    ),
}
"""In the order of their columns."""

DEFINITIONS = tuple(dict.fromkeys(family.definition for family in FAMILIES.values()))
"""Whose wording there is."""

BASE = ("text_bytes", "word_total")
"""Measures that every recipe has: what the funnel counts."""

FAMILY_OF: Mapping[str, str] = {measure: name for name, family in FAMILIES.items() for measure in family.measures}
"""measure -> its family."""

STOP_WORD_MEASURE = "stop_word_count"


@dataclass(frozen=True)
class MeasureSpec:
    """What the attribute group `measures` of a recipe holds."""

    families: tuple[str, ...] = ("gopher",)
    """In the order of FAMILIES."""
    stop_words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """language -> its stop words: each is one more column, `stop_word_count_<language>`."""

    @property
    def schema(self) -> pa.Schema:
        """Columns of the group: counts of the funnel, then families, then stop words by language."""
        counts = [pa.field(name, pa.int64(), nullable=False) for name in BASE]
        names = [measure for name in self.families for measure in FAMILIES[name].measures]
        names += [f"{STOP_WORD_MEASURE}_{code}" for code in sorted(self.stop_words)]
        return pa.schema(counts + [pa.field(name, pa.float64(), nullable=False) for name in names])

    def config(self) -> dict[str, Any]:
        """What of it decides the values, as plain JSON, for the key of the unit; empty for the default."""
        found: dict[str, Any] = {}
        if self.families != ("gopher",):
            found["families"] = list(self.families)
        if self.stop_words:
            found["stop_words"] = {code: sorted(words) for code, words in sorted(self.stop_words.items())}
        return found


def families_for(measures: Iterable[str]) -> tuple[str, ...]:
    """The families that hold some measures, in the order of FAMILIES; names of other groups are left out."""
    wanted = {FAMILY_OF[measure] for measure in measures if measure in FAMILY_OF}
    return tuple(name for name in FAMILIES if name in wanted)
