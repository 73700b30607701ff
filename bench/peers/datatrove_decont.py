"""datatrove's n-gram screen against benchmark items; runs in the peers' venv.

A request: {"by": "datatrove" | "datatrove, split", "items", "texts", "ngram"}; items and texts are files of JSON
strings, a line each. The answer: {"cpu_s", "found": numbers of the texts that its filter drops}. The index is written
by hand in the filter's format (its indexer asks for lighteval and a hub), of n-grams as the filter itself makes them;
it is made and loaded before the clock starts, as is one text to warm up.
"""

from __future__ import annotations

import json
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from datatrove.data import Document
from datatrove.pipeline.decont import NGramsDecontConfig, NGramsDecontFilter
from datatrove.utils.logging import logger
from datatrove.utils.text import ngrams, simplify_text
from datatrove.utils.word_tokenizers import WordTokenizer
from serve import serve
from stopwatch import cpu_seconds

VERSIONS = ("datatrove", "spacy")


class PlainWords(WordTokenizer):
    """Words as `str.split` gives them, in place of spaCy's."""

    def word_tokenize(self, text: str) -> list[str]:
        return text.split()

    def sent_tokenize(self, text: str) -> list[str]:
        return [text]

    def span_tokenize(self, text: str) -> list[tuple[int, int]]:
        return [(0, len(text))]


def screen(request: dict[str, Any]) -> dict[str, Any]:
    """Index the items and screen the texts once."""
    files = (Path(request[name]).read_bytes().split(b"\n") for name in ("items", "texts"))
    items, texts = ([json.loads(line) for line in lines if line] for lines in files)
    config = NGramsDecontConfig(n_grams=request["ngram"])
    with tempfile.TemporaryDirectory() as folder:
        step = NGramsDecontFilter(folder, config=config)
        if request["by"] == "datatrove, split":
            step.tokenizer = PlainWords()
        hashes = set()
        for item in items:  # made of plain words: both tokenizers cut them at their spaces
            words = simplify_text(item, config.norm_config).split()
            hashes.update(map(step.hash_func, map(" ".join, ngrams(words, config.n_grams))))
        np.array(sorted(hashes), config.hash_config.np_descr).tofile(Path(folder) / "items.index.hashes")
        step.load_index_hashes()
        step.filter(Document(texts[0], "warm"))
        began = cpu_seconds()
        found = [i for i, text in enumerate(texts) if step.filter(Document(text, str(i))) is not True]
        spent = cpu_seconds() - began
    return {"cpu_s": spent, "found": found, "versions": {name: version(name) for name in VERSIONS}}


if __name__ == "__main__":
    logger.remove()
    serve(screen)
