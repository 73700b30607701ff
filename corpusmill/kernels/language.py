"""Language of each document by a fastText model, without the model's traps.

fastText takes one line of text, and stops at a "</s>" in it; it calls the empty string English and reads upper case as
another language. So: documents without a letter get no language, line breaks become spaces, "</s>" is taken out, text
that is mostly upper case is lowered first.

The first 2,000 characters are judged. In documents of 2,500 characters or more 500 are taken from the middle, too:
where these speak another language with more than 0.5, the score is halved, so that a page in two languages passes for
neither with certainty; where the beginning has no letter, they decide alone.
"""

from __future__ import annotations

import re
from pathlib import Path

import fasttext
import pyarrow as pa

from corpusmill import schema

HEAD_CHARS = 2000
MIDDLE_CHARS = 500
AGREES_E4 = 5000
"""A middle in another language counts from this score on."""

_SPACE = re.compile(r"\s+")
_END_OF_SENTENCE = "</s>"  # fastText's own mark: a page that holds it would hide what follows


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
        if len(document) < HEAD_CHARS + MIDDLE_CHARS:
            return language, score
        begin = max(HEAD_CHARS, (len(document) - MIDDLE_CHARS) // 2)
        middle, certainty = self._predict(document[begin : begin + MIDDLE_CHARS])
        if language is None:
            return middle, certainty
        if middle not in (None, language) and certainty > AGREES_E4:
            return language, score // 2
        return language, score

    def _predict(self, text: str) -> tuple[str | None, int]:
        line = _SPACE.sub(" ", text.replace(_END_OF_SENTENCE, " ")).strip()
        letters = sum(map(str.isalpha, line))
        if not letters:
            return None, 0
        if 2 * sum(map(str.isupper, line)) > letters:
            line = line.lower()
        labels, probabilities = self._model.predict(line)  # a single string: float64, and no surprise from batching
        return labels[0].removeprefix("__label__"), min(10_000, round(float(probabilities[0]) * 10_000))
