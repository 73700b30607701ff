"""A small dataset whose shards the adapters serve, the plan of a config that trains on it, and its batches."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from corpusmill.dataset.manifest import open_manifest
from corpusmill.store import open_store
from corpusmill.tokens.order import Plan
from tests.training.packed import SEQ_LEN, publish_dataset
from tests.training.toy import config
from training.config import plan_of
from training.data import Batch, Loader

GLOBAL_BATCH = 48


@dataclass(frozen=True)
class Served:
    """A dataset, a plan of 12 steps in two stages, and the batches that training sees."""

    store: str
    dataset: str
    plan: Plan
    batches: tuple[Batch, ...]
    seq_len: int = SEQ_LEN


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Served:
    folder = tmp_path_factory.mktemp("served")
    dataset = publish_dataset(folder / "store", folder / "toy")
    store = open_store(folder / "store")
    manifest = open_manifest(store, dataset)
    stages = "mixture.stage=[{steps=7,weights={crawl=3,books=1}},{steps=5,lr=[1.0,0.1]}]"
    plan = plan_of(config(f"mixture.global_batch={GLOBAL_BATCH}", "mixture.max_epochs=9", stages), manifest)
    loader = Loader(store, manifest, plan)
    batches = tuple(loader.batch(step) for step in range(plan.steps))
    loader.close()
    return Served(str(folder / "store"), dataset, plan, batches)
