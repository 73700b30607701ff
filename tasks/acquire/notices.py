"""What planning left out, or did another way, without being asked: for people, never for a digest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from corpusmill.errors import MillError

_heard: ContextVar[list[str] | None] = ContextVar("heard", default=None)


@contextmanager
def heard() -> Iterator[list[str]]:
    """Collect what is said within the block, each sentence once; a message that ends it comes with them."""
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
    """Tell whoever listens; nobody has to."""
    said = _heard.get()
    if said is not None and sentence not in said:
        said.append(sentence)
