"""What leaves a flow run or task run as an error is stored by the server and shown to all: without secrets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from corpusmill.errors import MillError
from corpusmill.redact import redacted


@contextmanager
def without_secrets() -> Iterator[None]:
    """Errors of ours are redacted; one of a library that names a secret becomes one of ours."""
    try:
        yield
    except MillError:
        raise
    except Exception as err:
        if redacted(str(err)) == str(err):
            raise
        raise MillError(f"{type(err).__name__}: {err}", "This is an error in corpusmill, not in your input.") from None
