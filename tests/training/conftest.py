"""One small store with published datasets for all tests of training, and one rank for tests without torchrun."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import torch.distributed as dist

from tests.training.packed import publish_dataset
from tests.training.toy import Toy
from training.parallel import Ranks


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    folder = tmp_path_factory.mktemp("toy")
    uri = folder / "store"
    manifest = publish_dataset(uri, folder / "toy", "toy", seed=0)
    other = publish_dataset(uri, folder / "other", "other", seed=50)
    return Toy(str(uri), manifest, other)


@pytest.fixture(scope="module")
def ranks() -> Iterator[Ranks]:
    """This process as the only rank."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield Ranks(0, 0, 1, torch.device("cpu"))
    dist.destroy_process_group()
