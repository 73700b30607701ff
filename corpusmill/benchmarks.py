"""Benchmarks of a recipe: which they are, their identity, their items. The files stay where the user keeps them."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from corpusmill.canonical import sha256
from corpusmill.config import Benchmark, Decontaminate, find_file, read_section
from corpusmill.dataset.manifest import ScreenedBenchmark
from corpusmill.errors import Unavailable, UsageError
from corpusmill.file_state import while_unchanged
from corpusmill.typed_json import read

FOLDER = "recipes/benchmarks"
VARIABLE = "CORPUSMILL_BENCHMARKS"


@dataclass(frozen=True)
class Wanted:
    """A benchmark with the recipe's defaults filled in."""

    benchmark: Benchmark
    ngram: int
    exact_words: int
    min_share: float

    @property
    def name(self) -> str:
        """Its name in decisions and reports."""
        return self.benchmark.name


@lru_cache(maxsize=8)
def benchmarks_of(config: Decontaminate) -> tuple[Wanted, ...]:
    """The benchmarks of a recipe: first those of `use`, then those in the recipe, each in the order given.

    Raises:
        NotFound: `use` names no such file. UsageError: a file has faults, or two benchmarks have one name.
    """
    named = [
        read_section(Benchmark, find_file(use, FOLDER, ".toml", "benchmark"), (), "benchmark") for use in config.use
    ]
    found = [_filled(benchmark, config) for benchmark in (*named, *config.benchmark)]
    names = [wanted.name for wanted in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(
            f"benchmark {twice[0]!r} is named twice",
            "in decontaminate.use and in decontaminate.benchmark",
            "Rename one.",
        )
    return tuple(found)


def _filled(benchmark: Benchmark, config: Decontaminate) -> Wanted:
    ngram = config.ngram if benchmark.ngram is None else benchmark.ngram
    floor = config.exact_words if benchmark.exact_words is None else benchmark.exact_words
    share = config.min_share if benchmark.min_share is None else benchmark.min_share
    return Wanted(benchmark, ngram, floor, share)


def identities(config: Decontaminate) -> list[dict[str, object]]:
    """What of each benchmark decides what the screen finds; the digest is of the file's (decompressed) bytes."""
    return [
        {
            "name": wanted.name,
            "fields": list(wanted.benchmark.fields),
            "id": wanted.benchmark.id,
            "format": _format(wanted.benchmark),
            "ngram": wanted.ngram,
            "exact_words": wanted.exact_words,
            "min_share": wanted.min_share,
            "sha256": _digest(_path(wanted.benchmark, config)),
        }
        for wanted in benchmarks_of(config)
    ]


def facts(config: Decontaminate) -> tuple[ScreenedBenchmark, ...]:
    """Identity, licence and source of each benchmark: for the manifest."""
    pairs = zip(identities(config), benchmarks_of(config), strict=True)
    rights = ((what, wanted.benchmark) for what, wanted in pairs)
    return tuple(read(ScreenedBenchmark, {**what, "licence": b.licence, "source": b.source}) for what, b in rights)


def items(wanted: Wanted, config: Decontaminate) -> list[tuple[str, str]]:
    """(item id, text) of each row; the text is its fields, one below the other.

    Raises:
        Unavailable: the file cannot be read. UsageError: a row is no item, or two items have one id.
    """
    benchmark, path = wanted.benchmark, _path(wanted.benchmark, config)
    rows = _parquet_rows(path, benchmark) if _format(benchmark) == "parquet" else _json_rows(path, benchmark)
    found: dict[str, str] = {}
    for number, row in rows:
        name = str(number if row.get(benchmark.id) is None else row[benchmark.id])
        if name in found:
            raise UsageError(
                f"{path}: two items of benchmark {benchmark.name!r} have the id {name!r}",
                "expected unique ids",
                "Name another field as the benchmark's `id`; if no row has the field, items are numbered.",
            )
        found[name] = "\n".join(_text(row[field]) for field in benchmark.fields)
    return list(found.items())


@dataclass(frozen=True)
class Question:
    """An item with answers to choose from; `answer` is the number of the right one."""

    id: str
    text: str
    choices: tuple[str, ...]
    answer: int


def questions(name: str) -> list[Question]:
    """The items of a registered benchmark (a file in recipes/benchmarks, or a path) with their answers.

    Raises:
        NotFound: there is no such benchmark. UsageError: it has no choices, or a row is no such item.
        Unavailable: its file cannot be read.
    """
    path = find_file(name, FOLDER, ".toml", "benchmark")
    benchmark = read_section(Benchmark, path, (), "benchmark")
    if benchmark.choices is None or benchmark.answer is None:
        raise UsageError(
            f"benchmark {benchmark.name!r} is not of multiple choice",
            f"{path} does not say which fields hold the answers and the right one",
            "Give it `choices` and `answer`, or evaluate on another one.",
        )
    file = folder(Decontaminate()) / benchmark.file
    wanted = benchmark.model_copy(update={"fields": (*benchmark.fields, benchmark.choices, benchmark.answer)})
    rows = _parquet_rows(file, wanted) if _format(benchmark) == "parquet" else _json_rows(file, wanted)
    return [_question(row, number, benchmark, file) for number, row in rows]


def _question(row: Mapping[str, Any], number: int, benchmark: Benchmark, file: Path) -> Question:
    name = str(number if row.get(benchmark.id) is None else row[benchmark.id])
    choices, answer = row[str(benchmark.choices)], row[str(benchmark.answer)]
    good = isinstance(choices, list) and len(choices) > 1 and all(isinstance(c, str) and c for c in choices)
    right = choices.index(answer) if good and answer in choices else answer
    if not good or not isinstance(right, int) or isinstance(right, bool) or not 0 <= right < len(choices):
        raise UsageError(
            f"{file}: item {name!r} of benchmark {benchmark.name!r} is not of multiple choice",
            f"expected texts in {benchmark.choices!r}, and one of them or its number in {benchmark.answer!r}",
            "Check the benchmark's `choices` and `answer`.",
        )
    return Question(name, "\n".join(_text(row[field]) for field in benchmark.fields), tuple(choices), right)


def _json_rows(path: Path, benchmark: Benchmark) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, line in enumerate(_bytes_of(path).split(b"\n"), 1):  # never splitlines: items hold U+2028
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            for field in benchmark.fields:
                row[field]
        except (ValueError, KeyError, TypeError) as err:
            raise UsageError(
                f"{path} line {number}: not an item of benchmark {benchmark.name!r}",
                f"expected a JSON object with {', '.join(benchmark.fields)}; {type(err).__name__}: {err}",
                "Check the benchmark's `fields`.",
            ) from err
        yield number, row


def _parquet_rows(path: Path, benchmark: Benchmark) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        table = pq.read_table(pa.BufferReader(_bytes_of(path)))
    except pa.ArrowException as err:
        raise Unavailable(f"benchmark file {path} cannot be read", str(err), _DO) from err
    if missing := [field for field in benchmark.fields if field not in table.column_names]:
        raise UsageError(
            f"{path}: no column {missing[0]!r} for benchmark {benchmark.name!r}",
            f"its columns are {', '.join(table.column_names)}",
            "Check the benchmark's `fields`.",
        )
    wanted = [name for name in table.column_names if name in (*benchmark.fields, benchmark.id)]
    yield from enumerate(table.select(wanted).to_pylist(), 1)


def _text(value: object) -> str:
    if isinstance(value, list):
        return "\n".join(map(_text, value))
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _format(benchmark: Benchmark) -> str:
    return benchmark.format or ("parquet" if benchmark.file.endswith(".parquet") else "jsonl")


def folder(config: Decontaminate) -> Path:
    """The folder of the benchmark files: `decontaminate.root`, else CORPUSMILL_BENCHMARKS.

    Raises:
        UsageError: neither names one.
    """
    if given := config.root or os.environ.get(VARIABLE):
        return Path(given)
    names = ", ".join(wanted.name for wanted in benchmarks_of(config))
    raise UsageError(
        "no folder of benchmarks is named",
        f"the recipe screens against {names}" if names else "the items of a registered benchmark are in files of yours",
        f"Set decontaminate.root or {VARIABLE} to the folder of their files (docs/how-to/decontaminate.md), "
        "or screen against none: --set 'decontaminate.use=[]'."
        if names
        else f"Set {VARIABLE} to the folder of their files (docs/how-to/decontaminate.md).",
    )


def _path(benchmark: Benchmark, config: Decontaminate) -> Path:
    return folder(config) / benchmark.file


_DO = f"Check decontaminate.root, {VARIABLE} and the file's name, or leave the benchmark out."


def _bytes_of(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if path.suffix == ".gz" else data
    except (OSError, EOFError, zlib.error) as err:
        raise Unavailable(f"benchmark file {path} cannot be read", str(err), _DO) from err


@while_unchanged(64)
def _digest(path: Path) -> str:
    """Of the file's (decompressed) bytes."""
    return sha256(_bytes_of(path))
