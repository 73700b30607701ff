"""datatrove's chain from WARC files to tokens, as its own examples put it together; runs in the peers' venv.

Five executors: read, extract, language, Gopher repetition and quality, JSONL; MinHash signatures; buckets; clusters;
what is kept, tokenised. Left out, as on our side: the benchmark screen (datatrove's needs data from a hub), URL lists,
training a tokenizer. The language model is the file we use, because datatrove would download its own.

What datatrove would do again for each file is done once, so that few small files do not count against it: importing
trafilatura, loading the language model and spaCy. Its executors' helper processes and logs are not counted.

A request: {"root", "files", "out", "tokenizer", "eos", "language_model", "languages", "min_score", "ngram", "bands",
"rows", "words", "timeout_s", "seed"}; `words` is "spacy" (as datatrove comes) or "split" (at spaces).
The answer: {"cpu_s", "around_s", "steps": {step: CPU seconds}, "documents", "extracted", "filtered", "kept", "tokens",
"timeouts", "versions"}; `cpu_s` is what the steps took, `around_s` what datatrove's executors took besides.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

if os.environ.get("BENCH_PEER_PATH"):  # packages that stand in for those the peer pins
    sys.path.insert(0, os.environ["BENCH_PEER_PATH"])

import trafilatura  # noqa: F401  its import shall not be counted once a file: the extractor's child processes inherit it
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.base import PipelineStep
from datatrove.pipeline.dedup import (
    MinhashConfig,
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
    MinhashDedupSignature,
)
from datatrove.pipeline.extractors import Trafilatura
from datatrove.pipeline.filters import GopherQualityFilter, GopherRepetitionFilter, LanguageFilter
from datatrove.pipeline.readers import JsonlReader, WarcReader
from datatrove.pipeline.tokens import DocumentTokenizer
from datatrove.pipeline.writers import JsonlWriter
from datatrove.utils.lid import FT176LID
from datatrove.utils.logging import logger
from datatrove.utils.word_tokenizers import SpaCyTokenizer, WordTokenizer
from fasttext.FastText import _FastText
from serve import serve
from stopwatch import Stopwatch, cpu_seconds

VERSIONS = ("datatrove", "trafilatura", "spacy", "tokenizers", "warcio", "fasttext-numpy2-wheel")


ENGLISH = "en"


class Spacy(SpaCyTokenizer):
    """datatrove's own word tokenizer for English, loaded once for all files, not once for each."""

    loaded: dict[str, Any] = {}

    @property
    def tokenizer(self) -> Any:
        if self.language not in self.loaded:
            self.loaded[self.language] = super().tokenizer
        return self.loaded[self.language]

    def __deepcopy__(self, memo: dict[int, Any]) -> Spacy:
        return Spacy(self.language)


class PlainWords(WordTokenizer):
    """Words as `str.split` gives them, in place of spaCy's."""

    def word_tokenize(self, text: str) -> list[str]:
        return text.split()

    def sent_tokenize(self, text: str) -> list[str]:
        return [text]

    def span_tokenize(self, text: str) -> list[tuple[int, int]]:
        return [(0, len(text))]


def chain(request: dict[str, Any]) -> dict[str, Any]:
    """One run over the files of a request, in one process besides the extractor's sandbox."""
    out = Path(request["out"])
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    paths = out / "paths.txt"
    paths.write_text("".join(f"{file}\n" for file in request["files"]))
    words: Any = Spacy(ENGLISH) if request["words"] == "spacy" else PlainWords()
    tokens, eos = request["tokenizer"], request["eos"]
    tasks = len(request["files"])
    config = MinhashConfig(request["ngram"], request["bands"], request["rows"])
    language = LanguageFilter(languages=request["languages"], language_threshold=request["min_score"])
    language.model = GivenModel(request["language_model"], request["languages"])

    def kept() -> JsonlReader:
        return JsonlReader(str(out / "filtered"), text_key="text")

    stages: list[tuple[list[PipelineStep], int]] = [
        (
            [
                WarcReader(request["root"], paths_file=str(paths)),
                Trafilatura(favour_precision=True, timeout=request["timeout_s"]),
                language,
                GopherRepetitionFilter(language=words),
                GopherQualityFilter(language=words),
                JsonlWriter(str(out / "filtered"), output_filename="${rank}.jsonl.gz"),
            ],
            tasks,
        ),
        ([kept(), MinhashDedupSignature(str(out / "signatures"), config=config, language=words)], tasks),
        ([MinhashDedupBuckets(str(out / "signatures"), str(out / "buckets"), config=config)], config.num_buckets),
        ([MinhashDedupCluster(str(out / "buckets"), str(out / "remove"), config=config)], 1),
        (
            [
                kept(),
                MinhashDedupFilter(str(out / "remove")),
                DocumentTokenizer(str(out / "tokens"), tokens, eos_token=eos, seed=request["seed"]),
            ],
            tasks,
        ),
    ]
    watch, began = Stopwatch(), cpu_seconds()
    stats = [_execute(steps, count, str(out / f"log-{i}"), watch) for i, (steps, count) in enumerate(stages)]
    spent = cpu_seconds() - began
    steps = sum(watch.spent.values())
    return {
        "cpu_s": steps,
        "around_s": spent - steps,
        "steps": dict(watch.spent),
        "documents": _stat(stats[0], "Trafilatura", "total"),
        "extracted": _stat(stats[0], "Trafilatura", "forwarded"),
        "timeouts": _stat(stats[0], "Trafilatura", "timeout"),
        "filtered": _stat(stats[0], "Gopher Quality", "forwarded"),
        "kept": _stat(stats[-1], "MinHash stage 4", "forwarded"),
        "tokens": _stat(stats[-1], "Writer", "tokens"),
        "versions": {name: version(name) for name in VERSIONS},
    }


class GivenModel(FT176LID):
    """datatrove's language identification with a model file of this machine."""

    loaded: dict[str, Any] = {}

    def __init__(self, path: str, languages: list[str]) -> None:
        super().__init__(languages)
        self.path = path

    @property
    def model(self) -> Any:
        if self.path not in self.loaded:
            self.loaded[self.path] = _FastText(self.path)
        return self.loaded[self.path]


def _execute(steps: list[PipelineStep], tasks: int, log: str, watch: Stopwatch) -> list[Any]:
    """Run one executor, its steps timed; returns the statistics of the steps."""
    executor = LocalPipelineExecutor(steps, tasks=tasks, workers=1, logging_dir=log)
    run_for_rank = executor._run_for_rank

    def timed(rank: int, local_rank: int = 0) -> Any:
        for step in executor.pipeline:  # the executor copies its pipeline for every rank
            step.run = watch.generator(type(step).__name__, type(step).run.__get__(step))
        return run_for_rank(rank, local_rank)

    executor._run_for_rank = timed
    stats = executor.run()
    multiprocessing.active_children()  # reaps the sandboxes that were asked to end, so that their time counts
    return stats.stats


def _stat(stats: list[Any], step: str, name: str) -> int:
    return sum(int(s.stats[name].total) for s in stats if step in s.name and name in s.stats)


if __name__ == "__main__":
    logger.remove()
    serve(chain)
