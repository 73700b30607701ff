"""The toy store of the tests of training, and a config that trains on it in seconds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from corpusmill.store import Store, open_store
from training.config import TrainConfig, load_train_config
from training.run import RunSpec

CONFIG = Path(__file__).with_name("tiny.toml")


@dataclass(frozen=True)
class Toy:
    """A store with the datasets `toy` and `other`, and the config that its runs have."""

    uri: str
    manifest: str
    other: str
    config: Path = CONFIG

    def open(self) -> Store:
        return open_store(self.uri)

    def spec(self, *overrides: str, manifest: str | None = None) -> RunSpec:
        digest = manifest or self.manifest
        return RunSpec(
            self.uri, "toy" if digest == self.manifest else "other", digest, load_train_config(self.config, overrides)
        )


def config(*overrides: str) -> TrainConfig:
    return load_train_config(CONFIG, overrides)
