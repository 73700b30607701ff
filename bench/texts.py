"""Texts to measure on: the test data's (whole pages, manuals, news, speeches, spam), else those of the demo crawl."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.common import REPOSITORY
from corpusmill.kernels.language.identify import LanguageModel
from corpusmill.models import model_path
from corpusmill.readers.outcomes import outcomes

_LISTS = ("neardup/doc-revisions/docs", "neardup/ndd-r8/docs", "quality/clean", "quality/spam")


def texts(most: int | None = None) -> list[str]:
    """Different texts that are not blank, in a fixed order; with `most`, at most that number, evenly spaced."""
    data = Path(os.environ.get("CORPUSMILL_TEST_DATA", REPOSITORY.parent / "shared" / "data"))
    found = list(dict.fromkeys(text for text in (_shared(data) if data.is_dir() else _demo()) if text.strip()))
    if most is None or most >= len(found):
        return found
    return [found[int(i)] for i in np.linspace(0, len(found) - 1, most)]


def in_english(values: list[str]) -> list[bool]:
    """Which texts the default bound on English lets through."""
    found = LanguageModel(model_path("lid.176.ftz")).identify(pa.array(values, pa.large_string()))
    names, scores = (found.column(name).to_pylist() for name in ("language", "language_score_e4"))
    return [name == "en" and score >= 6500 for name, score in zip(names, scores, strict=True)]


def _shared(data: Path) -> Iterator[str]:
    for file in sorted((data / "mini-crawl" / "crawl-data").glob("*/segments/*/wet/*.gz")):
        yield from (one.text for one in outcomes(file) if one.reason is None and one.text)
    for name in _LISTS:
        with gzip.open(data / f"{name}.jsonl.gz", "rt", encoding="utf-8", newline="\n") as lines:
            yield from (json.loads(line)["text"] for line in lines)


def _demo() -> Iterator[str]:
    from corpusmill.extractor.modes import extract
    from mill.demo.crawl import make

    root = make(REPOSITORY / ".corpusmill" / "demo")
    for file in sorted(root.glob("crawl-data/*/segments/*/warc/*.warc.gz")):
        for one in outcomes(file):
            if one.reason is None and (one.html or one.text):
                yield extract(one.html, "fast").text if one.html else one.text or ""
