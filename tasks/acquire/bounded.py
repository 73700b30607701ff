"""Parsers in a process that may be killed: what one record takes costs no other, whatever the library below does."""

from __future__ import annotations

from collections.abc import Callable

from corpusmill.extractor.extraction import Extraction
from corpusmill.extractor.sandbox.sandbox import Limits, shared_sandbox
from corpusmill.readers.outcomes import ReadOptions

Parser = Callable[[str], Extraction]
"""A function of a module, known by its name: the process imports it."""


def bounded(parser: Parser, text: str, options: ReadOptions) -> Extraction:
    """`parser(text)`; reason `timeout` above `options.timeout_s` CPU seconds, `crashed` where it raises or lacks room.

    Costs 0.1 ms and copies of the text; the process is started once, in a tenth of a CPU second.
    """
    limits = Limits(timeout_s=options.timeout_s, memory_mb=options.memory_mb)
    return shared_sandbox(f"{parser.__module__}:{parser.__qualname__}", limits).extract([text])[0]
