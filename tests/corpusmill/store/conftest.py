"""The two storages every test of the store runs on: a folder and a real S3 server."""

from __future__ import annotations

from pathlib import Path

import pytest

import corpusmill.store.store
from corpusmill.store import Store, open_store


@pytest.fixture(params=["folder", "s3"])
def store_uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a place for a store, still empty."""
    return str(tmp_path / "store") if request.param == "folder" else request.getfixturevalue("s3_uri")


@pytest.fixture
def store(store_uri: str, monkeypatch: pytest.MonkeyPatch) -> Store:
    """An empty store, made without the probe that a server gets before it is trusted (test_doctor.py tests that)."""
    monkeypatch.setattr(corpusmill.store.store, "_require_working", lambda backend: None)
    return open_store(store_uri, create=True)


@pytest.fixture
def folder_store(tmp_path: Path) -> Store:
    """An empty store in a folder, for what only a folder shows."""
    return open_store(tmp_path / "store", create=True)


@pytest.fixture
def s3_store(s3_uri: str, monkeypatch: pytest.MonkeyPatch) -> Store:
    """An empty store on S3, for what only a server shows; made without the probe."""
    monkeypatch.setattr(corpusmill.store.store, "_require_working", lambda backend: None)
    return open_store(s3_uri, create=True)
