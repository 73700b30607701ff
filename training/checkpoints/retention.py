"""Which checkpoints of a run stay: the last few, every k-th step, and those that other runs began from.

A checkpoint goes as it came, in the other order: first COMMIT.json, after which it does not exist, then its files. What
a killed removal leaves, files without a COMMIT.json before the newest checkpoint, goes with the next one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from corpusmill.store import Store
from training.checkpoints import commits

_FOLDER = re.compile(r"(checkpoints/[0-9a-f]{16}/([0-9]{8})(?:\.[0-9]+)?)/.+")


@dataclass(frozen=True)
class Retention:
    """What stays.

    Args:
        last: so many of the newest; 0: all.
        every: and those whose step is a multiple of this; 0: none for that reason.
    """

    last: int = 0
    every: int = 0

    def surplus(self, names: Sequence[str], kept: Collection[int]) -> list[str]:
        """The checkpoints that go, oldest first.

        Args:
            names: sound ones, the newest first (`commits.names`).
            kept: steps that stay.
        """
        if not self.last:
            return []
        steps = {name: commits.step_of(name) for name in reversed(names[self.last :])}
        return [n for n, step in steps.items() if step not in kept and not (self.every and step % self.every == 0)]


def hold(store: Store, parent: str, run_id: str) -> None:
    """Note, before it is read, that a run begins from a checkpoint of another one: that one stays.

    Args:
        parent: the checkpoint, `checkpoints/<run id>/<step>`.
    """
    store.put(f"{_held(parent.split('/')[1])}{commits.step_of(parent):08d}.{run_id}", run_id.encode())


def held(store: Store, run_id: str) -> set[int]:
    """The steps of a run that others began from."""
    prefix = _held(run_id)
    return {int(name.removeprefix(prefix).partition(".")[0]) for name in store.list(prefix)}


def sweep(store: Store, run_id: str, keep: Retention, damaged: Collection[str] = ()) -> list[str]:
    """Remove what does not stay; the names of the checkpoints that went. Only for the process that saves this run.

    Args:
        damaged: checkpoints that could not be loaded: they count for nothing, and are left to be looked at.
    """
    if not keep.last:
        return []
    sound = [name for name in commits.names(store, run_id) if name not in damaged]
    gone = keep.surplus(sound, held(store, run_id))
    for name in gone:
        store.remove(f"{name}/COMMIT.json")
    committed = {*commits.names(store, run_id)}
    for file in store.list(f"checkpoints/{run_id}/"):
        folder = _FOLDER.fullmatch(file)
        if folder and sound and folder[1] not in committed and int(folder[2]) < commits.step_of(sound[0]):
            store.remove(file)
    return gone


def _held(run_id: str) -> str:
    return f"runs/{run_id}/held."
