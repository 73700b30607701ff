"""What task units share: done-or-reused results, the store of a worker, versions of libraries, funnel counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import version as installed_version

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
    return Done(work(), reused=False)


@lru_cache(maxsize=4)
def store_at(uri: str) -> Store:
    """The store of this worker process, opened once."""
    return open_store(uri)


def libraries(names: Sequence[str]) -> dict[str, str]:
    """Installed versions of libraries that decide a stage's output."""
    return {name: installed_version(name) for name in names}


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


def content_of(receipt: Receipt, kind: str) -> str:
    """Content digest of one output of a unit; what a later unit names as its input."""
    content = receipt.outputs[kind].content
    assert content is not None, f"{kind} of {receipt.stage} has no content digest"
    return content


def stage_config(**fields: object) -> Mapping[str, object]:
    """The recipe fields that a stage reads, named at one place per stage."""
    return dict(sorted(fields.items()))
