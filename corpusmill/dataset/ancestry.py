"""The checkpoints that a run goes back to: the one it began from, the one that run began from, to the first run.

Read from COMMIT.json (`origin`: `mill train --from`) and from the record of a run (`parent`: `--resume` of another
run's). What is gone, damaged or replaced is said, and the chain ends there: what lies before it is not known.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from corpusmill.errors import MillError, NotFound
from corpusmill.store import Store
from corpusmill.store.receipts import unseal


@dataclass(frozen=True)
class Ancestor:
    """A checkpoint that a run began from.

    Args:
        run, step: whose, and after how many steps.
        checkpoint: its name in the store.
        how: `from` (its weights, at step 0) or `resume` (all of it, at its step).
        manifests: digests of the datasets that its own run draws from.
        fault: why it cannot be read, if so: nothing before it is known.
    """

    run: str
    step: int
    checkpoint: str
    how: str
    manifests: tuple[str, ...] = ()
    fault: str = ""


def ancestors(store: Store, facts: Mapping[str, Any]) -> list[Ancestor]:
    """Those of a checkpoint's run, the nearest first.

    Args:
        facts: its COMMIT.json, or of a run that has none yet `run_id` and, where it has them, `origin` and `parent`.
    """
    found: list[Ancestor] = []
    begin = _begin(store, facts)
    while begin is not None:
        ancestor, sha256 = begin
        if any(ancestor.checkpoint == before.checkpoint for before in found):
            return [*found, replace(ancestor, fault="the chain comes back to it")]
        name = f"{ancestor.checkpoint}/COMMIT.json"
        try:
            data = store.get(name)
            if sha256 not in (None, hashlib.sha256(data).hexdigest()):
                return [*found, replace(ancestor, fault="replaced: its COMMIT.json is another one")]
            facts = unseal(data, name)
        except NotFound:
            return [*found, replace(ancestor, fault="gone")]
        except MillError:
            return [*found, replace(ancestor, fault="damaged")]
        found.append(replace(ancestor, manifests=datasets_of(facts)))
        begin = _begin(store, facts)
    return found


def datasets_of(facts: Mapping[str, Any]) -> tuple[str, ...]:
    """Digests of the datasets that a checkpoint's own run draws from."""
    return tuple(str(digest) for digest in facts.get("manifests") or [facts["manifest_sha256"]])


def _begin(store: Store, facts: Mapping[str, Any]) -> tuple[Ancestor, str | None] | None:
    """The checkpoint that a run began from, and the sha256 that its COMMIT.json must have; None: it began anew."""
    if origin := facts.get("origin"):
        return _named(str(origin["checkpoint"]), "from"), origin.get("sha256")
    run = str(facts.get("run_id", ""))
    parent = str(facts.get("parent") or "")  # of most checkpoints the one before, of the same run
    if parent.startswith(f"checkpoints/{run}/"):
        parent = _recorded(store, run)
    return (_named(parent, "resume"), None) if parent else None


def _recorded(store: Store, run: str) -> str:
    """The checkpoint of another run that this one was resumed from; runs before there were records tell none."""
    name = f"runs/{run}/run.json"
    try:
        return str(unseal(store.get(name), name).get("parent") or "")
    except MillError:
        return ""


def _named(checkpoint: str, how: str) -> Ancestor:
    _, run, step = checkpoint.split("/")
    return Ancestor(run, int(step.partition(".")[0]), checkpoint, how)
