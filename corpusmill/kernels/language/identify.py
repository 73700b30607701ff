"""Language of each document by a fastText model, without the model's traps.

fastText takes one line of text, and stops at a "</s>" in it; it calls the empty string English and reads upper case as
another language. So: documents without a letter are `und`, line breaks become spaces, "</s>" is taken out, and all text
is judged in small letters: lid.176 is as right about them (docs/notes/language.md).

The first 2,000 characters are judged. In documents of 2,500 characters or more 500 are taken from the middle, too:
where these speak another language with more than 0.5, the score is halved, so that a page in two languages passes for
neither with certainty; where the beginning has no letter, they decide alone. Shorter documents are judged whole, so
their score tells a mixture already; where it is below 0.9, the first and the last 300 characters are judged again. A
document is mixed where one of these windows speaks another language than the beginning with more than 0.5.
"""

from __future__ import annotations

from pathlib import Path

import fasttext
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpusmill import schema
from corpusmill.kernels.language.codes import UNDETERMINED, code_of
from corpusmill.kernels.language.ftz_model import read_tables
from corpusmill.kernels.language.ftz_predict import best_labels
from corpusmill.kernels.language.windows import EDGE_CHARS, HEAD_CHARS, MIDDLE_CHARS, lines, places
from corpusmill.kernels.words.table import text_buffers

AGREES_E4 = 5000
"""A window in another language counts from this score on."""
CERTAIN_E4 = 9000
"""A document judged whole with this score is not asked again whether it is mixed."""
EDGES_CHARS = 400
"""Shorter documents are not, either: their edges are the whole."""

__all__ = ["EDGE_CHARS", "HEAD_CHARS", "MIDDLE_CHARS", "LanguageModel"]

_NOTHING = -1
"""In place of the number of a code: a window without a letter."""

Ints = NDArray[np.int64]


class LanguageModel:
    """A fastText language identification model (.bin or .ftz). It does not pickle: load it in each worker."""

    def __init__(self, path: Path) -> None:
        """Load a model.

        Raises:
            ValueError: the file is not a fastText model.
        """
        self._model = fasttext.load_model(str(path))
        self._tables = read_tables(path)
        labels = self._tables.labels if self._tables else self._model.labels
        self.codes = [*dict.fromkeys(map(code_of, labels))]
        """ISO 639 codes that the model tells apart; two labels may share one."""
        numbers = {code: number for number, code in enumerate(self.codes)}
        self._number = {label: numbers[code_of(label)] for label in labels}

    def identify(self, text: pa.LargeStringArray) -> pa.RecordBatch:
        """Language and score of each document, and whether it is in two.

        Args:
            text: large_string[n] without nulls.

        Returns:
            schema.LANGUAGE, n rows; `und` and 0 where there is no letter to judge by.
        """
        found, rows = places(text), np.arange(len(text))
        code, score = self._judge(text, rows, np.zeros(len(text), np.int64), found.head)
        mixed = np.zeros(len(text), bool)

        long = np.flatnonzero(found.middle[:, 1])
        middle, certainty = self._judge(text, long, found.middle[long, 0], found.middle[long, 1])
        differs = _differs(code[long], middle, certainty)
        mixed[long[differs]] = True
        score[long[differs]] //= 2
        silent = long[code[long] == _NOTHING]
        code[silent], score[silent] = middle[code[long] == _NOTHING], certainty[code[long] == _NOTHING]

        short = found.chars < HEAD_CHARS + MIDDLE_CHARS
        unsure = np.flatnonzero(short & (found.chars >= EDGES_CHARS) & (score < CERTAIN_E4) & (code != _NOTHING))
        begins, ends = np.zeros(len(text), np.int64), np.diff(text_buffers(text)[1])
        for begin, end in ((begins, found.first), (found.last, ends)):
            edge, certainty = self._judge(text, unsure, begin[unsure], end[unsure])
            mixed[unsure[_differs(code[unsure], edge, certainty)]] = True

        names = pa.array([*self.codes, UNDETERMINED], pa.string())
        return pa.record_batch(
            [names.take(pa.array(code % len(names))), pa.array(score, pa.int32()), pa.array(mixed)],
            schema=schema.LANGUAGE,
        )

    def _judge(self, text: pa.LargeStringArray, rows: Ints, begin: Ints, end: Ints) -> tuple[Ints, Ints]:
        """Number of the code and score in 1/10,000 of each window; _NOTHING and 0 where it has no letter."""
        made = lines(text, rows, begin, end)
        code, score = np.full(len(rows), _NOTHING), np.zeros(len(rows), np.int64)
        spoken = np.flatnonzero(made.letters)
        if len(spoken):
            labels, probabilities = self._best([made.line(int(i)).lower() for i in spoken])
            code[spoken] = [self._number[label] for label in labels]
            score[spoken] = [min(10_000, round(probability * 10_000)) for probability in probabilities]
        return code, score

    def _best(self, texts: list[str]) -> tuple[list[str], list[float]]:
        """The best label of each line and its probability."""
        if self._tables is None:
            labels, probabilities = self._model.predict(texts)
            return [label for (label,) in labels], [float(p[0]) for p in probabilities]
        encoded = [text.encode("utf-8") for text in texts]
        offsets = np.cumsum([0, *map(len, encoded)])
        numbers, found = best_labels(self._tables, b"".join(encoded), offsets)
        return [self._tables.labels[number] for number in numbers], found.astype(np.float64).tolist()


def _differs(code: Ints, other: Ints, certainty: Ints) -> NDArray[np.bool_]:
    return (code != _NOTHING) & (other != _NOTHING) & (other != code) & (certainty > AGREES_E4)
