"""What a recipe names, as rules, models, benchmarks, tokenizer, training config: looked at before a page is read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa

from corpusmill import benchmarks, languages, rulebook
from corpusmill.config import Code, Fault, Own, OwnSource, Recipe, language_codes
from corpusmill.config.reading import find_file
from corpusmill.errors import MillError, UsageError
from corpusmill.kernels.language.ftz_model import check_whole
from corpusmill.kernels.perplexity.table import read_table
from corpusmill.models import NotFetched, loading, model_path
from corpusmill.readers.parsers import licences
from tasks import extract, stages, tokenizer
from tasks.acquire import code, own
from tasks.judge import groups

Key = tuple[str | int, ...]
TOKENIZER: Key = ("pack", "tokenizer")
MODEL: Key = ("language", "model")
SAMPLE = "The mill stands by the river, and its wheel turns day and night.\n"


def check(recipe: Recipe) -> None:
    """Look at all that a recipe names but its tokenizer, which `tokenizer.given` reads.

    Raises:
        NotFound, UsageError: something is not there or has faults; several are listed in one UsageError.
    """
    _raise(recipe, [(key, err) for key, err in _errors(recipe) if key != TOKENIZER])


def check_sources(recipe: Recipe) -> None:
    """Look at what reading and extraction need of all that a recipe names: an ingestion needs no more.

    Raises:
        as `check`.
    """
    needed = [("source",), ("extract",), *([MODEL[:1]] if recipe.extract.languages else [])]
    _raise(recipe, [(key, err) for key, err in _errors(recipe) if key[:1] in needed])


def to_fetch(recipe: Recipe) -> list[str]:
    """Sentences about known models that are not on this machine yet, and how to fetch them."""
    return [f"{err.what}: {err.why}. {err.do}" for _, err in _errors(recipe) if isinstance(err, NotFetched)]


def _raise(recipe: Recipe, found: Collection[tuple[Key, MillError]]) -> None:
    if len(found) == 1:
        raise next(err for _, err in found)
    if found:
        lines = [f"  {fault.place}: {fault.says}" for fault in _as_faults(found)]
        raise UsageError(f"recipe {recipe.name!r}: {len(lines)} faults in what it names", "\n".join(lines))


def faults(recipe: Recipe, dropped: Collection[Key] = ()) -> list[Fault]:
    """What is wrong with all that a recipe names, as faults of its keys; what is only to be fetched is no fault.

    Args:
        dropped: keys whose values had faults and are missing here; what depends on them is not looked at.
    """
    fitting = not any(key[:1] in (("judge",), ("filter",)) for key in dropped)
    return _as_faults([(key, err) for key, err in _errors(recipe, fitting=fitting) if not isinstance(err, NotFetched)])


def _errors(recipe: Recipe, *, fitting: bool = True) -> list[tuple[Key, MillError]]:
    """Each error with the key that names what it is about; `fitting`: whether rules and judges are compared."""
    found: list[tuple[Key, MillError]] = []

    def failed(key: Key, look: Callable[[], object]) -> bool:
        try:
            look()
        except MillError as err:
            if err.what not in {other.what for _, other in found}:
                found.append((key, err))
            return True
        return False

    # Where rules or the language model fail, the others are looked at with the default ones.
    if failed(("filter", "rules"), lambda: rulebook.rules_of(recipe.filter.rules)):
        recipe, fitting = recipe.model_copy(update={"filter": type(recipe.filter)()}), False
    if failed(MODEL, partial(_look_at_model, recipe.language.model, check_whole)):
        recipe = recipe.model_copy(update={"language": type(recipe.language)()})
    for key, look in _looks(recipe, fitting):
        failed(key, look)
    return found


def _looks(recipe: Recipe, fitting: bool) -> Iterator[tuple[Key, Callable[[], object]]]:
    judge = recipe.judge
    for place, codes in language_codes(recipe).items():
        yield place, partial(languages.check, codes, recipe.language.model)
    for name, source in recipe.source.items():
        if isinstance(source, Code):
            yield ("source", name, "licences"), partial(licences.check_allowed, source.licences, name)
            yield ("source", name, "languages"), partial(code.check_languages, source.languages, name)
        if isinstance(source, OwnSource):
            yield ("source", name, "module"), partial(own.checked, source)
    if fitting:
        yield ("filter", "rules"), lambda: rulebook.check(recipe, stages.REASONS)
    for name, quality in sorted(judge.quality.items()):
        yield ("judge", "quality", name), partial(_look_at_classifier, quality.model)
    if judge.perplexity:
        yield ("judge", "perplexity"), partial(_look_at_model, judge.perplexity.model, read_table)
    for name, measure in sorted(judge.own.items()):
        yield ("judge", "own", name), partial(_try, name, measure)
    yield ("extract", "urls"), lambda: extract.url_rules(recipe)
    yield ("decontaminate", "use"), lambda: benchmarks.benchmarks_of(recipe.decontaminate)
    yield TOKENIZER, lambda: tokenizer.check(recipe)
    if recipe.train is not None:
        yield ("train",), partial(find_file, recipe.train, "recipes", ".toml", "training config", "mixture")


def _look_at_model(model: str, look: Callable[[Path], object]) -> None:
    path = model_path(model)
    with loading(path):
        look(path)


def _look_at_classifier(model: str) -> None:
    _look_at_model(model, check_whole)
    groups.classifier_identity(model_path(model))


def _try(name: str, measure: Own) -> None:
    """Measure one text: a function that fails on any is known now, not when all pages were read."""
    groups.own_group(name, measure, {}).load()(groups.Texts(pa.array([SAMPLE], pa.large_string())))


def _as_faults(found: Collection[tuple[Key, MillError]]) -> list[Fault]:
    return [Fault(key, sentence) for key, err in found for sentence in _sentences(err)]


def _sentences(err: MillError) -> list[str]:
    """An error in one sentence, or the faults that it lists."""
    listed = [line.strip() for line in err.why.split("\n") if line.startswith("  ")]
    return listed or [": ".join(part for part in (err.what, err.why.replace("\n", "; ")) if part)]
