"""The numbers that rules are about, by family: counted slice by slice, divided once a batch.

All but `text_bytes` are those of the text in normal form C (composing.py): however a page writes its accents, a line
that it repeats is one, and its characters are as many.

Definition "datatrove": the filters of datatrove 0.10.1 (Gopher quality and repetition, FineWeb, C4), on the tokens of
our word table in place of spaCy's. There a "word" of a denominator is any token, punctuation included; `word_count` and
`mean_word_chars` leave out tokens that are only punctuation. `other_definitions` has those of other projects.

To add a measure: a module of this folder that names it in `MEASURES` (families.py), and its like in plain Python in
tests/corpusmill/kernels/reference_families.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill.kernels.measures.families import MEASURES, STOP_WORD_MEASURE, Measure, MeasureSpec
from corpusmill.kernels.measures.slices import Slice
from corpusmill.kernels.measures.stop_words import count_stop_words
from corpusmill.kernels.words.composing import composed, composed_text
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
    form, rows = composed(text)
    if table is not None or len(text) == 0:
        parts = [_counted(Slice(text, table), spec)]
    else:
        parts = [_counted(Slice(part, scratch=_SCRATCH), spec) for _, part in slices(text)]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    if rows:  # few: most texts are in normal form, whose words may be known
        again = _counted(Slice(form.take(pa.array(rows))), spec)
        for name in columns.keys() - {"text_bytes"}:
            columns[name][rows] = again[name]
    columns |= _quotients(columns, [measure for measure in spec.measures if measure.of])
    schema = spec.schema
    return pa.RecordBatch.from_arrays([pa.array(columns[name]) for name in schema.names], schema=schema)


def _counted(piece: Slice, spec: MeasureSpec) -> Columns:
    """What the measures are quotients of, or the measures themselves."""
    tokens = np.diff(piece.table.offsets)
    found: Columns = {"text_bytes": piece.text_bytes, "word_total": piece.table.word_counts(), "tokens": tokens}
    for measure in spec.measures:
        for count in measure.counts:
            if count not in found:
                found[count] = piece.counts(_KERNEL_OF[count])[count]
        if measure.name not in found and not measure.of:
            found |= getattr(_KERNELS[measure.kernel], measure.family)(piece)
    languages = sorted(spec.stop_words)
    if languages:
        counts = count_stop_words(piece.table, [[*map(composed_text, spec.stop_words[code])] for code in languages])
        found |= {f"{STOP_WORD_MEASURE}_{code}": counts[:, i].astype(np.float64) for i, code in enumerate(languages)}
    return found


def _quotients(counts: Columns, measures: Sequence[Measure]) -> Columns:
    """Measures that are counts or quotients, each float64[D]: of whole numbers, so the same on every machine. One
    without a denominator (an empty text) is 0, so every value of every text is finite."""
    if not measures:
        return {}
    size = len(counts["tokens"])
    parts, wholes = np.empty((len(measures), size)), np.ones((len(measures), size))
    for i, measure in enumerate(measures):
        part, *whole = measure.counts
        parts[i] = counts[part]
        if whole:
            wholes[i] = counts[whole[0]]
    return dict(zip([measure.name for measure in measures], parts / np.maximum(wholes, 1), strict=True))


_KERNELS = {name: import_module(f"{__package__}.{name}") for name in {measure.kernel for measure in MEASURES.values()}}
_KERNEL_OF = {count: kernel for kernel in _KERNELS.values() for count in getattr(kernel, "COUNTS", ())}
"""count -> the module that counts it."""
