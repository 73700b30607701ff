"""The numbers that rules are about, by family (kernels/families.py).

`datatrove_measures` has those that are a count or the quotient of two: counted slice by slice, divided once a batch.
`other_definitions` has those of other projects.

To add a measure: its name in kernels/families.py, its count here and in `datatrove_measures` (or its family's function
in `other_definitions`), its like in tests/corpusmill/kernels/reference.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.kernels.measures import other_definitions
from corpusmill.kernels.measures.families import FAMILIES, STOP_WORD_MEASURE, MeasureSpec
from corpusmill.kernels.measures.quotients import QUOTIENTS, quotients
from corpusmill.kernels.measures.slices import Slice
from corpusmill.kernels.measures.stop_words import count_stop_words
from corpusmill.kernels.words.table import Scratch, WordTable, slices

Columns = dict[str, NDArray]
"""Count or measure -> its values, one a document."""

_DEFAULT = MeasureSpec()
_SCRATCH = Scratch()


def measures(text: pa.LargeStringArray, spec: MeasureSpec = _DEFAULT, table: WordTable | None = None) -> pa.RecordBatch:
    """The measures of a recipe for every document, one row a document (`spec.schema`).

    Args:
        text: large_string[D] without nulls.
        spec: which families, and stop words of which languages.
        table: the words of these texts, where they are known already; then the batch is not cut into slices.

    Raises:
        ValueError: not a large_string array, or one with nulls; words of other texts.
    """
    if table is not None and len(table) != len(text):
        raise ValueError(f"{len(text)} texts and words of {len(table)}")
    if table is not None or len(text) == 0:
        parts = [_counted(Slice(text, table), spec)]
    else:
        parts = [_counted(Slice(part, scratch=_SCRATCH), spec) for _, part in slices(text)]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    columns |= quotients(columns, [name for name in spec.schema.names if name in QUOTIENTS])
    schema = spec.schema
    return pa.RecordBatch.from_arrays([pa.array(columns[name]) for name in schema.names], schema=schema)


def _counted(piece: Slice, spec: MeasureSpec) -> Columns:
    """What the measures are quotients of, or the measures themselves."""
    found: Columns = {"text_bytes": piece.text_bytes, "word_total": piece.table.word_counts()}
    for name in spec.families:
        found |= _COUNTED[name](piece)
    languages = sorted(spec.stop_words)
    if languages:
        counts = count_stop_words(piece.table, [spec.stop_words[code] for code in languages])
        found |= {f"{STOP_WORD_MEASURE}_{code}": counts[:, i].astype(np.float64) for i, code in enumerate(languages)}
    return found


_COUNTED: Mapping[str, Callable[[Slice], Columns]] = {
    "gopher": lambda piece: {**piece.lines, **piece.tokens, **piece.repeats},
    "body": lambda piece: piece.lines,
    "fineweb": lambda piece: {**piece.lines, "tokens": piece.token_total},
    "page": lambda piece: {**piece.lines, **piece.page},
    "code": lambda piece: {**piece.code, "tokens": piece.token_total},
    "dolma": other_definitions.dolma,
    "dclm": other_definitions.dclm,
    "nemo": other_definitions.nemo,
    "redpajama": other_definitions.redpajama,
}

assert set(_COUNTED) == set(FAMILIES), "a family without a function, or a function without a family"
