"""What task units share: jobs and how a driver runs them, done-or-reused results, the store of a worker, versions of
libraries, funnel counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import version as installed_version
from typing import Any, Protocol

from corpusmill import schema
from corpusmill.config import Recipe
from corpusmill.dataset import funnel
from corpusmill.errors import CheckFailed
from corpusmill.store import Receipt, Store, Unit, open_store


@dataclass(frozen=True)
class Done:
    """A unit's receipt, and whether it was there before."""

    receipt: Receipt
    reused: bool


def once(store: Store, unit: Unit, work: Callable[[], Receipt]) -> Done:
    """The unit's receipt: the stored one, or that of doing the work now."""
    if receipt := store.receipt(unit):
        return Done(receipt, reused=True)
    begin()
    return Done(work(), reused=False)


class Missing(Exception):
    """A unit that is only asked about is not finished."""


_asked: ContextVar[Store | None] = ContextVar("asked", default=None)


@contextmanager
def asking(store: Store) -> Iterator[None]:
    """Within the block units do not work: each gives its finished result from `store`, or raises Missing."""
    token = _asked.set(store)
    try:
        yield
    finally:
        _asked.reset(token)


def begin() -> None:
    """Said where the work of a unit begins; raises Missing where units are only asked about."""
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
    """One unit of work for a worker: which store and recipe, and the item it is about."""

    uri: str
    recipe: Recipe
    item: Any


def store_at(uri: str) -> Store:
    """The store of this worker process, opened once; that of the driver where units are only asked about."""
    return _asked.get() or _opened(uri)


@lru_cache(maxsize=4)
def _opened(uri: str) -> Store:
    return open_store(uri)


def libraries(names: Sequence[str]) -> dict[str, str]:
    """Installed versions of libraries that decide a stage's output."""
    return {name: _version(name) for name in names}


@lru_cache(maxsize=64)
def _version(name: str) -> str:
    return installed_version(name)  # reads a file each time, and a crawl has 100,000 units


@dataclass
class Tally:
    """Documents, bytes and words that enter and leave one funnel row, and by which reason the others end."""

    row: str
    counts: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, Counter[str]] = field(default_factory=dict)

    def add_in(self, docs: int, size: int, words: int = 0) -> None:
        """Count what enters."""
        self.counts.update(docs_in=docs, bytes_in=size, words_in=words)

    def add_out(self, docs: int, size: int, words: int = 0) -> None:
        """Count what leaves alive."""
        self.counts.update(docs_out=docs, bytes_out=size, words_out=words)

    def add_reason(self, reason: str, docs: int, size: int, words: int = 0) -> None:
        """Count what ends here, and why."""
        self.reasons.setdefault(reason, Counter()).update(docs=docs, bytes=size, words=words)

    def counters(self) -> dict[str, int]:
        """For a receipt: `row.docs_in` and so on."""
        return {f"{self.row}.{name}": self.counts[name] for name in COUNTS}

    def reason_counts(self) -> dict[str, dict[str, int]]:
        """For a receipt."""
        return {reason: dict(counts) for reason, counts in sorted(self.reasons.items())}


COUNTS = ("docs_in", "docs_out", "bytes_in", "bytes_out", "words_in", "words_out")


def merged(receipts: Sequence[Receipt], row: str) -> dict[str, int]:
    """Counters of one funnel row, summed over receipts."""
    return {name: sum(r.counters.get(f"{row}.{name}", 0) for r in receipts) for name in COUNTS}


def funnel_row(stage: str, receipts: Sequence[Receipt]) -> dict[str, Any]:
    """One row of a funnel, summed over receipts. Words are not known before the judge has counted them."""
    counts: dict[str, Any] = dict(merged(receipts, stage))
    if stage in ("acquire", "extract"):
        counts |= {"words_in": None, "words_out": None}
    reasons: dict[str, dict[str, int]] = {}
    for receipt in receipts:
        for reason, numbers in receipt.reasons.items():
            if stage_of(reason) == stage:
                total = reasons.setdefault(reason, {})
                for unit, number in numbers.items():
                    total[unit] = total.get(unit, 0) + number
    return {"stage": stage, **counts, "reasons": dict(sorted(reasons.items()))}


def stage_of(reason: str) -> str:
    """The funnel row a reason belongs to; reasons of rule files belong to `filter`."""
    return schema.REASONS[reason].stage if reason in schema.REASONS else "filter"


def check_funnel(rows: Sequence[dict]) -> None:
    """Raises CheckFailed where a funnel does not add up."""
    if faults := funnel.faults(rows):
        raise CheckFailed(
            faults[0],
            "what enters a stage must leave it or have a reason; nothing was published",
            "This is our fault: please report it with the recipe.",
        )


def content_of(receipt: Receipt, kind: str) -> str:
    """Content digest of one output of a unit; what a later unit names as its input."""
    content = receipt.outputs[kind].content
    assert content is not None, f"{kind} of {receipt.stage} has no content digest"
    return content
