"""Committed checkpoints in the store: which exist, to which run they belong, whether a run may resume from one.

    checkpoints/<run id>/<step, 8 digits>/<sha256>      the files, create-only, named by content
    checkpoints/<run id>/<step, 8 digits>/COMMIT.json   last; without it the checkpoint does not exist
    checkpoints/<run id>/<step, 8 digits>.2/...         the same step again, where the first was found damaged

Needs no torch: the launcher refuses a checkpoint before it starts anything.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from corpusmill.errors import CheckFailed, NotFound, Refused, UsageError
from corpusmill.store import Store
from corpusmill.store.receipts import seal, unseal

_REF = re.compile(r"(?:checkpoints/)?([0-9a-f]{16})(?:/([0-9]{1,8}))?(?:\.[0-9]+)?")
_PLACE = re.compile(r"(checkpoints/[0-9a-f]{16}/([0-9]{8})(?:\.([0-9]+))?)/COMMIT\.json")

IDENTITIES = {
    "manifest_sha256": ("manifest", "Resume with that dataset (NAME@DIGEST)"),
    "plan_sha256": ("mixture", "Resume with the mixture of that run"),
    "model_sha256": ("model", "Resume with the model of that run"),
}
"""What a checkpoint and a run that resumes from it must share: the word for it in messages, and what to do."""


@dataclass(frozen=True)
class Commit:
    """One committed checkpoint: its folder in the store and its COMMIT.json."""

    name: str
    facts: Mapping[str, Any]

    @property
    def step(self) -> int:
        """Steps done."""
        return int(self.facts["step"])


def folder_of(run_id: str, step: int) -> str:
    """Name of a checkpoint in the store."""
    return f"checkpoints/{run_id}/{step:08d}"


def step_of(name: str) -> int:
    """The step of a checkpoint of this name."""
    return int(name.split("/")[2].partition(".")[0])


def free_name(run_id: str, step: int, damaged: Collection[str]) -> str:
    """The name under which a step is saved: its own, or the next one if checkpoints of this step are damaged."""
    name = folder_of(run_id, step)
    further = (f"{name}.{k}" for k in itertools.count(2))
    return next(n for n in itertools.chain([name], further) if n not in damaged)


def names(store: Store, run_id: str) -> list[str]:
    """The committed checkpoints of a run, the one with the most steps first; damaged ones too."""
    found = [_PLACE.fullmatch(name) for name in store.list(f"checkpoints/{run_id}/")]
    return [m[1] for m in sorted(filter(None, found), key=lambda m: (int(m[2]), int(m[3] or 1)), reverse=True)]


def latest(store: Store, run_id: str) -> Commit | None:
    """The committed checkpoint of a run with the most steps; None before the first.

    Raises:
        CheckFailed: its COMMIT.json is damaged.
    """
    return next((read(store, name) for name in names(store, run_id)), None)


def find(store: Store, ref: str) -> Commit:
    """The checkpoint that a user names: `<run id>` (its latest) or `<run id>/<step>`.

    Raises:
        UsageError: not of that form. NotFound: not committed.
    """
    match = _REF.fullmatch(ref)
    if not match:
        raise UsageError(f"{ref!r} names no checkpoint", "expected RUN or RUN/STEP, a run id being 16 hex digits")
    wanted = None if match[2] is None else folder_of(match[1], int(match[2]))
    found = [name for name in names(store, match[1]) if wanted in (None, name.partition(".")[0])]
    if not found:
        raise NotFound(
            f"no committed checkpoint {ref} in {store.uri}", "a checkpoint is committed once its COMMIT.json exists"
        )
    return read(store, found[0])


def check(commit: Commit, identities: Mapping[str, str]) -> None:
    """Refuse a checkpoint of another dataset, mixture or model.

    Args:
        identities: a digest for each key of IDENTITIES.

    Raises:
        Refused: naming both digests.
    """
    for key, (noun, remedy) in IDENTITIES.items():
        theirs, ours = str(commit.facts[key]), identities[key]
        if theirs != ours:
            raise Refused(
                f"checkpoint {commit.name} was trained on {noun} {theirs[:8]}, but this run's is {ours[:8]}.",
                f"{theirs} is not {ours}",
                f"{remedy}, or start a new run without --resume.",
            )


def write(store: Store, name: str, facts: Mapping[str, Any]) -> None:
    """Commit a checkpoint whose files are all stored.

    Raises:
        CheckFailed: another attempt at this run committed this step after other batches.
    """
    if store.create(f"{name}/COMMIT.json", seal(facts)):
        return
    kept = read(store, name)  # two attempts at one run: the first one counts
    if kept.facts["batch_chain"] != facts["batch_chain"]:
        raise CheckFailed(
            f"checkpoint {name} already exists, made from other batches",
            f"its chain of batches is {kept.facts['batch_chain'][:16]}, ours {facts['batch_chain'][:16]}",
            "Two versions of the code disagree about the order; train with only one of them.",
        )


def read(store: Store, name: str) -> Commit:
    """The checkpoint of this name.

    Raises:
        CheckFailed: its COMMIT.json is damaged. NotFound: it has none.
    """
    return Commit(name, unseal(store.get(f"{name}/COMMIT.json"), f"{name}/COMMIT.json"))
