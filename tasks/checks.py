"""What a recipe names: rules, models, lists, benchmarks, tokenizer; looked at before a page is read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial

from corpusmill import benchmarks, languages, rulebook
from corpusmill.config import Code, Fault, Judge, Recipe, language_codes
from corpusmill.errors import MillError, UsageError
from corpusmill.readers.parsers import licences
from tasks import extract, stages, tokenizer
from tasks.acquire import code
from tasks.judge import groups

Key = tuple[str | int, ...]
TOKENIZER: Key = ("pack", "tokenizer")


def check(recipe: Recipe) -> None:
    """Look at all that a recipe names but its tokenizer, which `tokenizer.given` reads.

    Raises:
        NotFound, UsageError: something is not there or has faults; several are listed in one UsageError.
    """
    found = [(key, err) for key, err in _errors(recipe) if key != TOKENIZER]
    if len(found) == 1:
        raise found[0][1]
    if found:
        lines = [f"  {fault.place}: {fault.says}" for fault in _as_faults(found)]
        raise UsageError(f"recipe {recipe.name!r}: {len(lines)} faults in what it names", "\n".join(lines))


def faults(recipe: Recipe, dropped: Collection[Key] = ()) -> list[Fault]:
    """What is wrong with all that a recipe names, as faults of its keys.

    Args:
        dropped: keys whose values had faults and are missing here; what depends on them is not looked at.
    """
    fitting = not any(key[:1] in (("judge",), ("filter",)) for key in dropped)
    return _as_faults(_errors(recipe, fitting=fitting))


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

    # Every judge needs rules and a language model: where they fail, the others are looked at with the default ones.
    if failed(("filter", "rules"), lambda: rulebook.rules_of(recipe.filter.rules)):
        recipe, fitting = recipe.model_copy(update={"filter": type(recipe.filter)()}), False
    if failed(("language", "model"), _judges(recipe, Judge())):
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
    if fitting:
        yield ("filter", "rules"), lambda: rulebook.check(recipe, stages.REASONS)
    for name, quality in sorted(judge.quality.items()):
        yield ("judge", "quality", name), _judges(recipe, Judge(quality={name: quality}))
    if judge.perplexity:
        yield ("judge", "perplexity"), _judges(recipe, Judge(perplexity=judge.perplexity))
    for name, own in sorted(judge.own.items()):
        yield ("judge", "own", name), _judges(recipe, Judge(own={name: own}))
    yield ("extract", "urls"), lambda: extract.url_rules(recipe)
    yield ("decontaminate", "use"), lambda: benchmarks.benchmarks_of(recipe.decontaminate)
    yield TOKENIZER, lambda: tokenizer.check(recipe)


def _judges(recipe: Recipe, judge: Judge) -> Callable[[], object]:
    """A look at these judges only: the first error of one does not hide those of others."""
    return lambda: groups.groups_of(recipe.model_copy(update={"judge": judge}))


def _as_faults(found: Collection[tuple[Key, MillError]]) -> list[Fault]:
    return [Fault(key, sentence) for key, err in found for sentence in _sentences(err)]


def _sentences(err: MillError) -> list[str]:
    """An error in one sentence, or the faults that it lists."""
    listed = [line.strip() for line in err.why.split("\n") if line.startswith("  ")]
    return listed or [": ".join(part for part in (err.what, err.why.replace("\n", "; ")) if part)]
