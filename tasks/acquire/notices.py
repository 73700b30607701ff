"""Notes on what planning skipped or did differently without being asked: for people, never part of a digest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from corpusmill.errors import MillError
from corpusmill.redact import redacted

_heard: ContextVar[list[str] | None] = ContextVar("heard", default=None)


@contextmanager
def heard() -> Iterator[list[str]]:
    """Collect the notes made within the block, each once; an error that ends the block carries them too."""
    said: list[str] = []
    token = _heard.set(said)
    try:
        yield said
    except MillError as err:
        if not said:
            raise
        notes = "".join(f"\nnote: {sentence}" for sentence in said)
        raise type(err)(err.what, err.why, f"{err.do}{notes}".strip()) from err
    finally:
        _heard.reset(token)


def say(sentence: str) -> None:
    """Add a note, without secrets, if a block of `heard` collects them."""
    said, sentence = _heard.get(), redacted(sentence)
    if said is not None and sentence not in said:
        said.append(sentence)
