"""What task units share: jobs and how a driver runs them, done-or-reused results, the store of a worker, versions of
libraries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version as installed_version
from typing import Any, NamedTuple, Protocol

from corpusmill.config import Recipe
from corpusmill.store import Receipt, Store, Unit, open_store


@dataclass(frozen=True)
class Done:
    """A unit's receipt, and whether it was there before."""

    receipt: Receipt
    reused: bool


class Step(NamedTuple):
    """A finished unit in the trail of a build: its stage, its shard or window (empty: all), its
    receipt."""

    stage: str
    place: str
    receipt: Receipt


def once(store: Store, unit: Unit, work: Callable[[], Receipt]) -> Done:
    """The unit's receipt: the stored one, or that of doing the work now."""
    if receipt := store.receipt(unit):
        return Done(receipt, reused=True)
    begin()
    return Done(work(), reused=False)


class Missing(Exception):
    """A unit that is only looked up is not finished."""


_asked: ContextVar[Store | None] = ContextVar("asked", default=None)


@contextmanager
def asking(store: Store) -> Iterator[None]:
    """Within the block units do not work: each returns its finished result from `store`, or raises Missing."""
    token = _asked.set(store)
    try:
        yield
    finally:
        _asked.reset(token)


def begin() -> None:
    """Called where the work of a unit begins; raises Missing if units are only looked up."""
    if _asked.get() is not None:
        raise Missing


class Count:
    """Units run and reused, by stage."""

    def __init__(self) -> None:
        self.run: Counter[str] = Counter()
        self.reused: Counter[str] = Counter()

    def add(self, done: Iterable[Done]) -> Receipt:
        """Count finished units; returns the receipt of the last one."""
        for item in done:
            (self.reused if item.reused else self.run)[item.receipt.stage] += 1
        return item.receipt


class Runner(Protocol):
    """`run(stage, fn, units)`: results of fn over the units, in their order. `fn` is a top-level function, units
    pickle."""

    def __call__(self, stage: str, fn: Callable[[Any], Any], units: Sequence[Any]) -> list[Any]: ...


@dataclass(frozen=True)
class Job:
    """One unit of work for a worker: store, recipe, and its item."""

    uri: str
    recipe: Recipe
    item: Any


def store_at(uri: str) -> Store:
    """The store of this worker process, opened once; that of the driver if units are only looked up."""
    return _asked.get() or _opened(uri)


@lru_cache(maxsize=4)
def _opened(uri: str) -> Store:
    return open_store(uri)


def libraries(names: Sequence[str]) -> dict[str, str]:
    """Installed versions of libraries that affect a stage's output."""
    return {name: _version(name) for name in names}


@lru_cache(maxsize=64)
def _version(name: str) -> str:
    return installed_version(name)  # reads a file each time, and a crawl has 100,000 units


def content_of(receipt: Receipt, kind: str) -> str:
    """Content digest of one output of a unit; what a later unit names as its input."""
    content = receipt.outputs[kind].content
    assert content is not None, f"{kind} of {receipt.stage} has no content digest"
    return content
