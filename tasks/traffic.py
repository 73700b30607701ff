"""The requests of a run, in all its processes: shown at its end, and kept under `runs/<id>/` in the store.

Units write counts to a folder on this machine, one file per process: a unit that fails returns nothing, and then
retries and waits are of most interest. The counts are not part of any receipt, key or manifest.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpusmill.canonical import canonical_json
from corpusmill.errors import MillError
from corpusmill.store.scratch import temporary_folder
from tasks.acquire import notices
from tasks.acquire.fetch.rate_limit import Traffic, watched

if TYPE_CHECKING:
    from corpusmill.store import Store
    from tasks.units import Runner


@dataclass(frozen=True)
class Counted:
    """`fn` for a worker process: writes the requests of each call to `folder`, also if it fails."""

    fn: Callable[[Any], Any]
    folder: str

    def __call__(self, item: Any) -> Any:
        with watched(apart=True) as traffic:
            try:
                return self.fn(item)
            finally:
                if traffic.requests:
                    with (Path(self.folder) / f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as file:
                        file.write(json.dumps(traffic.as_dict()) + "\n")


@dataclass
class Record:
    """One run of a verb; `traffic` and `notices` are complete after the block of `recorded`.

    Attributes:
        id: time of its begin, and random digits.
        manifest: what it published, set by the caller; None: nothing, or not yet.
    """

    id: str
    folder: str
    traffic: Traffic = field(default_factory=Traffic)
    notices: list[str] = field(default_factory=list)
    manifest: str | None = None

    def counting(self, run: Runner) -> Runner:
        """The same runner, which counts the requests of its units."""

        def counted(stage: str, fn: Callable[[Any], Any], units: Sequence[Any]) -> list[Any]:
            return run(stage, Counted(fn, self.folder), units)

        return counted

    def to_json(self) -> dict[str, Any]:
        """For the JSON document of a verb: the counts, the notes, and where they are kept."""
        kept = self.id if self.traffic.requests else None
        return {"traffic": self.traffic.as_dict(), "notices": list(self.notices), "run": kept}

    def lines(self) -> list[str]:
        """The same as text, one sentence per line; empty without requests and notes."""
        asked = said_of(self.traffic)
        return [f"{asked} (runs/{self.id})"] * bool(asked) + [f"note: {sentence}" for sentence in self.notices]

    def text(self) -> str:
        """`lines` as text before another line."""
        return "".join(f"{line}\n" for line in self.lines())

    def collect(self) -> None:
        """Add what worker processes wrote; skip a line that a kill truncated."""
        for file in sorted(Path(self.folder).glob("*.jsonl")):
            for line in file.read_text(encoding="utf-8").split("\n"):
                if line.endswith("}"):
                    self.traffic.add(Traffic(**json.loads(line)))


def said_of(traffic: Traffic) -> str:
    """The counts as one line; empty without requests."""
    if not traffic.requests:
        return ""
    again = f", {traffic.retries:,} of them again" if traffic.retries else ""
    damaged = f", {traffic.damaged:,} bodies came damaged" if traffic.damaged else ""
    return (
        f"{traffic.requests:,} requests{again}{damaged}; {traffic.received_bytes / 1e6:,.1f} MB received, "
        f"{traffic.waited_s:,.1f} s waited"
    )


@contextmanager
def recorded(store: Store, verb: str, recipe: str) -> Iterator[Record]:
    """Count the requests of a run, and keep the counts as `runs/<id>/traffic.json` if there were any.

    Counts of failed runs are kept too. If the store is unavailable then, the error of the run is still the one shown.
    """
    began = datetime.now(UTC)
    clock = time.monotonic()
    with temporary_folder() as folder, notices.heard() as said:
        record = Record(f"{began:%Y%m%dt%H%M%S}-{secrets.token_hex(4)}", str(folder), notices=said)
        ended = "failed"
        try:
            with watched(apart=True) as here:
                yield record
            ended = "finished"
        finally:
            record.traffic.add(here)
            record.collect()
            if record.traffic.requests:
                _keep(store, record, {
                    "verb": verb,
                    "recipe": recipe,
                    "ended": ended,
                    "began": began.isoformat(timespec="seconds"),
                    "seconds": round(time.monotonic() - clock, 3),
                    "host": socket.gethostname(),
                })  # fmt: skip


def _keep(store: Store, record: Record, facts: dict[str, object]) -> None:
    kept = {**facts, "manifest": record.manifest, "notices": record.notices, "traffic": record.traffic.as_dict()}
    try:
        store.put(f"runs/{record.id}/traffic.json", canonical_json(kept))
    except MillError as err:
        record.notices.append(f"what was asked of servers could not be kept in the store: {err.what}")
