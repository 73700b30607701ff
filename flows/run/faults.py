"""What leaves a flow run or task run as an error is stored by the server and shown to all: without secrets, and without
what a terminal obeys."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from corpusmill.errors import MillError
from corpusmill.plain_text import visible
from corpusmill.redact import redacted


@contextmanager
def without_secrets() -> Iterator[None]:
    """Errors of ours are redacted; one of a library that names a secret becomes one of ours."""
    try:
        yield
    except MillError as err:
        if visible(str(err)) == str(err):
            raise
        raise type(err)(visible(err.what), visible(err.why), visible(err.do)) from None
    except Exception as err:
        if redacted(str(err)) == str(err):
            raise
        raise MillError(f"{type(err).__name__}: {err}", "This is an error in corpusmill, not in your input.") from None
