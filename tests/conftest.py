"""Fixtures of all tests: the test data, the S3 server, hypothesis without deadlines."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.servers import s3_bucket, s3_server, s3_uri

__all__ = ["data_dir", "s3_bucket", "s3_server", "s3_uri"]

# A busy machine is no fault of the code; the examples are the same in every run.
settings.register_profile("mill", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("mill")


DATA = Path(os.environ.get("CORPUSMILL_TEST_DATA", Path(__file__).parents[2] / "shared" / "data"))
os.environ.setdefault("CORPUSMILL_BENCHMARKS", str((DATA / "benchmarks").absolute()))


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of test data: CORPUSMILL_TEST_DATA, else ../shared/data beside the repository."""
    folder = DATA
    if not folder.is_dir():
        pytest.skip(f"no test data at {folder}; set CORPUSMILL_TEST_DATA")
    return folder
