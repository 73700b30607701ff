"""Where a run takes its first weights from, when it does not start from nothing: the checkpoint of another run.

Data and mixture may be others; the model's shape and the tokenizer may not. Needs no torch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from corpusmill.dataset.manifest import Manifest, open_manifest
from corpusmill.errors import CheckFailed, Refused
from corpusmill.store import Store
from training.checkpoints import commits
from training.checkpoints.commits import Commit


@dataclass(frozen=True)
class Origin:
    """A checkpoint that another run starts from; it is part of that run's identity, and of all its checkpoints.

    Args:
        run, step: whose, and after how many steps.
        manifest: digest of the dataset that it was trained on.
        checkpoint: its name in the store.
        sha256: of its COMMIT.json, which names the digest of every file.
        moments: whether the state of the optimizer is taken too; else that starts at zero.
    """

    run: str
    step: int
    manifest: str
    checkpoint: str
    sha256: str
    moments: bool = False

    def to_json(self) -> dict[str, Any]:
        """As it stands in run.json and COMMIT.json."""
        return asdict(self)

    @staticmethod
    def from_json(value: Mapping[str, Any] | None) -> Origin | None:
        """What `to_json` wrote."""
        return None if value is None else Origin(**value)

    def commit(self, store: Store) -> Commit:
        """The checkpoint.

        Raises:
            CheckFailed: it is not the one that was named when the run began. NotFound: it is gone.
        """
        found = _digest(store, self.checkpoint)
        if found != self.sha256:
            raise CheckFailed(
                f"checkpoint {self.checkpoint} is not the one that this run started from",
                f"the sha256 of its COMMIT.json was {self.sha256}, now it is {found}",
            )
        return commits.read(store, self.checkpoint)


def origin_of(store: Store, ref: str, manifest: Manifest, model: str, moments: bool) -> Origin:
    """The checkpoint `ref` (RUN, its newest, or RUN/STEP) as the start of a run on a dataset.

    Args:
        manifest: the dataset that is to be trained on.
        model: digest of the run's model.

    Raises:
        Refused: it has another tokenizer or another model. NotFound, UsageError: there is no such checkpoint.
    """
    commit = commits.find(store, ref)
    theirs = str(commit.facts["manifest_sha256"])
    tokenizer = commit.facts.get("tokenizer_sha256") or _tokenizer(open_manifest(store, theirs))  # older ones say none
    _same(commit, "tokenizer", str(tokenizer), _tokenizer(manifest))
    _same(commit, "model", str(commit.facts["model_sha256"]), model)
    run = str(commit.facts["run_id"])
    return Origin(run, commit.step, theirs, commit.name, _digest(store, commit.name), moments)


def _same(commit: Commit, noun: str, theirs: str, ours: str) -> None:
    if theirs != ours:
        remedy = {
            "tokenizer": "Build the dataset with that tokenizer: pack.tokenizer (docs/how-to/own-tokenizer.md).",
            "model": "Give the config the [model] of that run.",
        }[noun]
        raise Refused(
            f"checkpoint {commit.name} has {noun} {theirs[:8]}, but this run's is {ours[:8]}.",
            f"{theirs} is not {ours}",
            remedy,
        )


def _tokenizer(manifest: Manifest) -> str:
    return manifest.vocabulary.output.digest


def _digest(store: Store, name: str) -> str:
    return hashlib.sha256(store.get(f"{name}/COMMIT.json")).hexdigest()
