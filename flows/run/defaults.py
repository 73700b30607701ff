"""Defaults of flow runs and commands: which store, how many processes. Imports no Prefect."""

from __future__ import annotations

import os
from pathlib import Path

from corpusmill.config.defaults import DEFAULT_STORE


def store_uri(given: str | None = None) -> str:
    """The store's URI, valid in any working directory: as given, else CORPUSMILL_STORE, else ./.corpusmill/store."""
    uri = given or os.environ.get("CORPUSMILL_STORE") or DEFAULT_STORE
    return uri if "://" in uri else str(Path(uri).resolve())


def may_create(uri: str) -> bool:
    """Only the store at the default path is created without a request, as by `mill build`."""
    return uri == str(Path(DEFAULT_STORE).resolve())


def workers() -> int:
    """Processes of a pool: CORPUSMILL_WORKERS, else the cores that this process may use."""
    if given := os.environ.get("CORPUSMILL_WORKERS"):
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
