"""One training run: its parts, its identity, and the file that the ranks read.

The run id hashes the manifest, the mixture plan and the config (its `what` fields), so the same wish is the same run,
whoever has it, and is trained once. Ranks, mode and micro-batch are not in it: a run may go on with others.
"""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from corpusmill.canonical import digest_of
from corpusmill.config import parse_section
from corpusmill.dataset.manifest import HELDOUT, Manifest, PackedShard, open_manifest
from corpusmill.errors import CheckFailed, NotFound
from corpusmill.store import Store, open_store
from corpusmill.store.receipts import seal, unseal
from corpusmill.tokens.order import Plan
from training.checkpoints import commits
from training.config import TrainConfig, plan_of
from training.datasets import joined, others
from training.origin import Origin, origin_of

_RUN_ID = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class RunSpec:
    """What to train, on which data.

    Args:
        store: address of the store.
        dataset, manifest: name and digest of the dataset.
        config: the training config.
        parent: name of another run's checkpoint to go on from (`checkpoints/<run id>/<step>`); None: from the start.
        origin: the checkpoint whose weights it starts with, at step 0; None: new ones.
        excluded: sha256 of the list of documents whose labels are taken out (training/excluded.py); None: of none.
    """

    store: str
    dataset: str
    manifest: str
    config: TrainConfig
    parent: str | None = None
    origin: Origin | None = None
    excluded: str | None = None

    @cached_property
    def facts(self) -> Manifest:
        """The manifest itself, with the partitions of other datasets that the mixture names."""
        store = self.open()
        return joined(store, open_manifest(store, self.manifest, self.dataset), self.config)

    @cached_property
    def plan(self) -> Plan:
        """The order of its sequences."""
        return plan_of(self.config, self.facts)

    @cached_property
    def run_id(self) -> str:
        """16 hex digits."""
        decides = {
            "run": 1,
            "manifest": self.manifest,
            "plan": self.plan.digest,
            "config": self.config.what(),
            "parent": self.parent,
        }
        return digest_of(decides | self.start)[:16]

    @property
    def manifests(self) -> list[str]:
        """Digests of all datasets that it trains on, its own first."""
        return [self.manifest, *others(self.plan.partitions)]

    @property
    def tags(self) -> list[str]:
        """What finds it: datasets, run, origin."""
        origin = [f"from:{self.origin.run}/{self.origin.step}"] if self.origin else []
        return [*(f"manifest:{digest[:16]}" for digest in self.manifests), f"run:{self.run_id}", *origin]

    @property
    def start(self) -> dict[str, Any]:
        """`origin` and `excluded` as they stand in run.json and COMMIT.json; nothing where there is none."""
        origin = {"origin": self.origin.to_json()} if self.origin else {}
        return origin | ({"excluded": self.excluded} if self.excluded else {})

    @property
    def beginning(self) -> dict[str, Any]:
        """What tells where it begins, as a checkpoint of it would (corpusmill/dataset/ancestry.py)."""
        return {"run_id": self.run_id, "parent": self.parent, **self.start}

    @property
    def vocab_size(self) -> int:
        """Token ids of the dataset."""
        return self.facts.vocabulary.vocab_size

    @property
    def identities(self) -> dict[str, str]:
        """What a checkpoint must share with this run."""
        return {
            "manifest_sha256": self.manifest,
            "plan_sha256": self.plan.digest,
            "model_sha256": self.config.model_digest(self.vocab_size),
        }

    def open(self) -> Store:
        """The store."""
        return open_store(self.store)

    @cached_property
    def shards(self) -> list[PackedShard]:
        """Those of all partitions to be read."""
        partitions = (self.facts.partitions.get(name) for name in (*self.plan.partitions, HELDOUT))
        return [shard for partition in partitions if partition for shard in partition.shards]

    def require_shards(self, store: Store) -> None:
        """See that the files of all partitions to be read are there, before anything starts.

        Raises:
            NotFound: naming the first that is gone, and how many are.
        """
        names = sorted({output.name for shard in self.shards for output in shard.outputs().values()})
        with ThreadPoolExecutor(16) as threads:
            gone = [name for name, there in zip(names, threads.map(store.exists, names), strict=True) if not there]
        if gone:
            raise NotFound(
                f"{gone[0]} of dataset {self.dataset} is not in {store.uri}",
                f"{len(gone)} of {len(names)} files with its sequences are gone",
                "Build again: the units whose files are missing run again.",
            )

    def write(self, path: Path, claim: int, scratch: Path) -> None:
        """Write the file that `python -m training.loop` reads.

        Args:
            scratch: a folder for checkpoints on their way to the store and back.
        """
        value = {
            "store": self.store,
            "dataset": self.dataset,
            "manifest": self.manifest,
            "config": self.config.model_dump(mode="json"),
            "parent": self.parent,
            **self.start,
            "manifests": self.manifests,
            "claim": claim,
            "scratch": str(scratch),
        }
        path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")

    def record(self, store: Store) -> None:
        """Keep in the store what the run id stands for, so that questions about the run need its id alone."""
        facts = {
            "dataset": self.dataset,
            "manifest": self.manifest,
            "config": self.config.what(),
            "parent": self.parent,
        }
        store.put(_recorded_at(self.run_id), seal(facts | self.start))

    @staticmethod
    def recorded(store: Store, run_id: str) -> RunSpec:
        """What `record` kept.

        Raises:
            NotFound: there is no such run. CheckFailed: the record is damaged, or of a version with another order.
        """
        name = _recorded_at(run_id)
        if not _RUN_ID.fullmatch(run_id) or not store.exists(name):
            raise NotFound(
                f"run {run_id!r} is not recorded in {store.uri}",
                "a run id is 16 hex digits; runs of `mill train` are recorded from this version on",
                "List the runs of a dataset: `mill lineage REF`.",
            )
        value = unseal(store.get(name), name)
        config = parse_section(TrainConfig, value["config"], name, "training config")
        origin = Origin.from_json(value.get("origin"))
        parts = (value["dataset"], value["manifest"], config, value["parent"], origin, value.get("excluded"))
        spec = RunSpec(store.uri, *parts)
        if spec.run_id != run_id:
            raise CheckFailed(f"{name} does not say what run {run_id} is", f"what it says is run {spec.run_id}")
        return spec

    @staticmethod
    def read(path: Path) -> tuple[RunSpec, int, Path]:
        """What `write` wrote: the run, the number of its claim, the folder for what is temporary."""
        value = json.loads(path.read_text(encoding="utf-8"))
        config = parse_section(TrainConfig, value["config"], str(path), "training config")
        origin = Origin.from_json(value.get("origin"))
        parts = (value["dataset"], value["manifest"], config, value["parent"], origin, value.get("excluded"))
        spec = RunSpec(value["store"], *parts)
        return spec, int(value["claim"]), Path(value["scratch"])


def _recorded_at(run_id: str) -> str:
    return f"runs/{run_id}/run.json"


def resuming(spec: RunSpec, ref: str) -> RunSpec:
    """The run that goes on from the checkpoint `ref` (`RUN` or `RUN/STEP`).

    That is `spec` itself when the checkpoint is one of its own: a run always goes on from its latest.

    Raises:
        Refused: the checkpoint has another dataset, mixture or model. NotFound, UsageError: there is no such one.
    """
    commit = commits.find(spec.open(), ref)
    commits.check(commit, spec.identities)
    if commit.facts["run_id"] == spec.run_id:
        return spec
    parent = commits.folder_of(commit.facts["run_id"], commit.step)
    return replace(spec, parent=parent)


def starting_from(spec: RunSpec, ref: str, moments: bool) -> RunSpec:
    """The run that starts at step 0 with the weights of the checkpoint `ref`: a branch, on any dataset and mixture.

    Raises:
        Refused: the checkpoint has another tokenizer or model. NotFound, UsageError: there is no such one.
    """
    origin = origin_of(spec.open(), ref, spec.facts, spec.identities["model_sha256"], moments)
    return replace(spec, origin=origin)
