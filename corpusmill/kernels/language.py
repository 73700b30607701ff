"""Language of each document by a fastText model, without the model's traps.

fastText takes one line of text; it calls the empty string English and reads upper case as another language. So: documents
without a letter get no language, line breaks become spaces, text that is mostly upper case is lowered first. The first 2,000
characters are judged; where 500 more can be taken from the middle and those speak another language with more than 0.5, the
score is halved: a page in two languages should not pass for either with certainty.
"""

from __future__ import annotations

import re
from pathlib import Path

import fasttext
import pyarrow as pa

from corpusmill import schema

HEAD_CHARS = 2000
MIDDLE_CHARS = 500
_SPACE = re.compile(r"\s+")


class LanguageModel:
    """A fastText language identification model (.bin or .ftz). It does not pickle: load it in each worker."""

    def __init__(self, path: Path) -> None:
        """Load a model.

        Raises:
            ValueError: the file is not a fastText model.
        """
        self._model = fasttext.load_model(str(path))

    def identify(self, text: pa.Array) -> pa.RecordBatch:
        """Language and score of each document.

        Args:
            text: large_string[n] without nulls.

        Returns:
            schema.LANGUAGE, n rows; null and 0 where there is no letter to judge by.
        """
        languages: list[str | None] = []
        scores: list[int] = []
        for document in text.to_pylist():
            language, score = self._judge(document)
            languages.append(language)
            scores.append(score)
        return pa.record_batch([pa.array(languages, pa.string()), pa.array(scores, pa.int32())], schema=schema.LANGUAGE)

    def _judge(self, document: str) -> tuple[str | None, int]:
        language, score = self._predict(document[:HEAD_CHARS])
        if language is not None and len(document) >= HEAD_CHARS + MIDDLE_CHARS:
            middle = max(HEAD_CHARS, (len(document) - MIDDLE_CHARS) // 2)
            other, certainty = self._predict(document[middle : middle + MIDDLE_CHARS])
            if other not in (None, language) and certainty > 5000:
                score //= 2
        return language, score

    def _predict(self, text: str) -> tuple[str | None, int]:
        line = _SPACE.sub(" ", text).strip()
        letters = sum(map(str.isalpha, line))
        if not letters:
            return None, 0
        if 2 * sum(map(str.isupper, line)) > letters:
            line = line.lower()
        labels, probabilities = self._model.predict(line)  # a single string: float64, and no surprise from batching
        return labels[0].removeprefix("__label__"), min(10_000, round(float(probabilities[0]) * 10_000))
