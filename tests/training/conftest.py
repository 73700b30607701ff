"""One small store with published datasets for all tests of training."""

from __future__ import annotations

import pytest

from tests.training.packed import publish_dataset
from tests.training.toy import Toy


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    folder = tmp_path_factory.mktemp("toy")
    uri = folder / "store"
    manifest = publish_dataset(uri, folder / "toy", "toy", seed=0)
    other = publish_dataset(uri, folder / "other", "other", seed=50)
    return Toy(str(uri), manifest, other)
