"""A source of the user's: a module that the recipe names, with `VERSION` and `read`, outside of this repository.

`plan` and `LIBRARIES` are its own where it has them; else its units are the files below the root that fit the pattern.
"""

from __future__ import annotations

from collections.abc import Iterator

from corpusmill import plugins
from corpusmill.config import OwnSource
from corpusmill.errors import UsageError
from corpusmill.readers.outcomes import Outcome, ReadOptions
from corpusmill.readers.warc import FileFacts
from tasks.acquire.fetch.transport import Fetched
from tasks.acquire.listing import listed
from tasks.acquire.units import SourceUnit

LIBRARIES: tuple[
    str, ...
] = ()  # of the module's own it is identified by the digest of its file and its package's version


def plan(name: str, config: OwnSource, seed: int) -> list[SourceUnit]:
    """What the module plans, or every file that fits the pattern.

    Raises:
        NotFound, UsageError: no such module, or it has no `read`.
    """
    module = plugins.module(config.module)
    if not callable(getattr(module, "read", None)):
        raise UsageError(
            f"module {config.module} has no function `read`",
            "expected read(unit, file, config, options, facts), which yields outcomes",
            "See docs/how-to/add-a-source.md.",
        )
    if callable(getattr(module, "plan", None)):
        return list(module.plan(name, config, seed))
    return listed(name, config, seed, "own")


def reading(config: OwnSource) -> dict[str, object]:
    """The module and its options."""
    return {**plugins.identity(config.module), "options": config.options}


def read(
    unit: SourceUnit, file: Fetched, config: OwnSource, options: ReadOptions, facts: FileFacts
) -> Iterator[Outcome]:
    """What the module reads.

    Raises:
        UsageError: it failed, or gave something else than outcomes.
    """
    module = plugins.module(config.module)
    try:
        for outcome in module.read(unit, file, config, options, facts):
            if not isinstance(outcome, Outcome):
                raise TypeError(f"expected Outcome, got {type(outcome).__name__}")
            yield outcome
    except OSError:
        raise
    except Exception as err:
        raise UsageError(
            f"source module {config.module} failed on {unit.locator}",
            f"{type(err).__name__}: {err}",
            "Correct the module.",
        ) from err
