"""Measures and their families: which columns belong together, and whose wording they follow. A recipe computes the
families that its rules read, and pays for no other.

A kernel of this folder says in `MEASURES` what it measures; here that is read as text, since names are needed where no
kernel runs, and Numba takes 0.4 s to import. A name may hold `{n}`; several names may share what is said of them.

A measure of datatrove's bears its plain name; another project's version of it has the project's name before it
(`dup_line_ratio`, `dolma_dup_line_ratio`). All are listed in docs/reference/measures.md.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from corpusmill.schema import QUALITY_MEASURES, REPETITION_MEASURES

_DECLARED = re.compile(r"^MEASURES = (\{.*?^\})", re.M | re.S)
_FIRST = ("gopher", "body", "fineweb", "page", "code", "dolma", "dclm", "nemo", "redpajama", "paper", "refinedweb")
"""Families whose columns are stored in this order; a new one comes after them, by its name."""
_INTERLEAVED = {name: i for i, name in enumerate(QUALITY_MEASURES + REPETITION_MEASURES)}
"""Order of the default family's columns, which come from three kernels."""


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A number about a document."""

    name: str
    family: str
    definition: str
    """Whose wording: what rules name as their `definition`."""
    kernel: str
    """Module of this folder that measures it."""
    says: str
    """What is counted, for the reference."""
    of: str = ""
    """The count that it is, or "part / whole" of counts; empty: the kernel's function of the family's name gives it."""

    @property
    def counts(self) -> list[str]:
        """The count, or part and whole."""
        return self.of.split(" / ") if self.of else []


@dataclass(frozen=True)
class Family:
    """Measures that are computed together."""

    definition: str
    measures: tuple[str, ...]


def _declared() -> Iterator[Measure]:
    for file in sorted(Path(__file__).parent.glob("*.py")):
        for block in _DECLARED.findall(file.read_text(encoding="utf-8")):
            for names, about in ast.literal_eval(block).items():
                yield from _measures(names, file.stem, **about)


def _measures(names: str, kernel: str, n: tuple[int, ...] = (0,), of: str = "", **about: str) -> Iterator[Measure]:
    for name in names.split():
        for each in n:
            yield Measure(name=name.format(n=each), kernel=kernel, of=of.format(n=each), **about)


def _order(measure: Measure) -> tuple[int, str, int]:
    """By family, then as the family's kernels name them."""
    known = measure.family in _FIRST
    place = _INTERLEAVED.get(measure.name, len(_INTERLEAVED))
    return _FIRST.index(measure.family) if known else len(_FIRST), "" if known else measure.family, place


MEASURES: Mapping[str, Measure] = {measure.name: measure for measure in sorted(_declared(), key=_order)}
"""In the order of their columns."""


def _family(name: str) -> Family:
    members = [measure for measure in MEASURES.values() if measure.family == name]
    (definition,) = {measure.definition for measure in members}
    return Family(definition, tuple(measure.name for measure in members))


FAMILIES: Mapping[str, Family] = {
    name: _family(name) for name in dict.fromkeys(measure.family for measure in MEASURES.values())
}
"""In the order of their columns."""

DEFINITIONS = tuple(dict.fromkeys(family.definition for family in FAMILIES.values()))
"""Whose wording there is."""

BASE = ("text_bytes", "word_total")
"""Measures that every recipe has: what the funnel counts."""

FAMILY_OF: Mapping[str, str] = {name: measure.family for name, measure in MEASURES.items()}
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
    def measures(self) -> list[Measure]:
        """All of the families, in the order of their columns."""
        return [MEASURES[name] for family in self.families for name in FAMILIES[family].measures]

    @property
    def schema(self) -> pa.Schema:
        """Columns of the group: counts of the funnel, then families, then stop words by language."""
        counts = [pa.field(name, pa.int64(), nullable=False) for name in BASE]
        names = [measure.name for measure in self.measures]
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
