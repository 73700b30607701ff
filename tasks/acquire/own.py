"""A source of the user's: a module that the recipe names, with `VERSION` and `read`, outside of this repository.

`plan` and `LIBRARIES` are its own where it has them; else its units are the files below the root that fit the pattern.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from operator import index
from types import ModuleType
from typing import Any

from corpusmill import plugins
from corpusmill.config import OwnSource
from corpusmill.errors import UsageError
from corpusmill.readers.numbers import MOST
from corpusmill.readers.outcomes import Outcome, ReadOptions
from corpusmill.readers.text import clean_text
from corpusmill.readers.warc import FileFacts
from tasks.acquire.fetch.transport import Fetched
from tasks.acquire.tree.listing import listed
from tasks.acquire.units import SourceUnit
from tasks.stages import REASONS

LIBRARIES: tuple[str, ...] = ()  # the module is known by the digest of its file and its package's version

TEXTS = (
    "record_type", "url", "mime", "charset", "charset_origin", "html", "text", "extractor", "source_id",
    "code_language", "licence", "title", "author", "columns", "file", "stage", "reason",
)  # fmt: skip
NUMBERS = {"offset": MOST, "index": MOST, "status": 2**31 - 1, "payload_bytes": MOST, "repairs": MOST}


def plan(name: str, config: OwnSource, seed: int) -> list[SourceUnit]:
    """What the module plans, or every file that fits the pattern.

    Raises:
        NotFound, UsageError: no such module, or it has no `read`.
    """
    module = checked(config)
    if callable(getattr(module, "plan", None)):
        return list(module.plan(name, config, seed))
    return listed(name, config, seed, "own")


def checked(config: OwnSource) -> ModuleType:
    """The module of a source.

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
    return module


def reading(config: OwnSource) -> dict[str, object]:
    """The module and its options."""
    return {**plugins.identity(config.module), "options": config.options}


def read(
    unit: SourceUnit, file: Fetched, config: OwnSource, options: ReadOptions, facts: FileFacts
) -> Iterator[Outcome]:
    """What the module reads. An outcome that cannot be stored raises, which costs that record.

    Raises:
        UsageError: it gave something else than outcomes.
    """
    return map(
        partial(_checked, config.module, facts), plugins.module(config.module).read(unit, file, config, options, facts)
    )


def _checked(module: str, facts: FileFacts, outcome: Any) -> Outcome:
    """The outcome, if it can be stored and has one end; its texts are cleaned.

    Raises:
        UsageError: it is no Outcome. ValueError: it cannot be stored.
    """
    if not isinstance(outcome, Outcome):
        why = f"expected Outcome, got {type(outcome).__name__}"
        raise UsageError(f"source module {module} does not give outcomes", why, "Correct the module.")
    cleaned: dict[str, Any] = {
        name: clean_text(value)[0] for name in TEXTS if (value := getattr(outcome, name)) is not None
    }
    numbers = {name: getattr(outcome, name) for name in NUMBERS if name != "status" or outcome.status is not None}
    if any(not 0 <= index(value) <= NUMBERS[name] for name, value in numbers.items()):
        raise ValueError("a number that cannot be stored")
    if outcome.payload_digest is not None and len(bytes(outcome.payload_digest)) != 16:
        raise ValueError("a digest of other than 16 bytes")
    if [outcome.text, outcome.html, outcome.reason].count(None) != 2 or (outcome.text and not outcome.extractor):
        raise ValueError("expected one of text (with extractor), html and reason")
    if outcome.reason is not None and REASONS[outcome.reason].row != outcome.stage:
        raise ValueError("expected a reason of its row")
    if outcome.columns is not None and not isinstance(json.loads(outcome.columns), dict):
        raise ValueError("expected columns as a JSON object")
    return replace(outcome, **cleaned, date=facts.date("date", outcome.date))
