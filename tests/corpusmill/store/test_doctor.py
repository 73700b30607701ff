"""The doctor finds a working storage working, and each broken one broken at the right check."""

from __future__ import annotations

import time

import pytest

from corpusmill.errors import Unavailable
from corpusmill.store import Store, backend, doctor, open_store
from corpusmill.store.backend import Exists, Source, Stat
from corpusmill.store.folder import FolderBackend
from corpusmill.store.s3 import S3Backend

CHECKS = [
    "create_race",
    "wrong_digest_refused",
    "stored_digest",
    "read_after_write",
    "list_pages",
    "gone_after_delete",
    "clock",
]


def failed(store: Store, **how) -> list[str]:
    checks = doctor.probe_backend(store.backend, **{"writers": 4, "rounds": 2, "keys": 30, **how})
    assert [check.name for check in checks] == CHECKS
    return [check.name for check in checks if not check.ok]


def test_a_working_storage_passes_and_nothing_is_left_behind(store):
    assert failed(store, keys=1_001 if store.backend.local("x") is None else 60) == []
    assert store.list("") == ["STORE.json"]


def test_conditions_that_are_ignored_are_found(folder_store, monkeypatch):
    def overwrite(self: FolderBackend, name: str, source: Source) -> None:
        self.delete(name)
        try:
            honest(self, name, source)
        except Exists:
            return

    honest = FolderBackend.attempt
    monkeypatch.setattr(FolderBackend, "attempt", overwrite)
    assert failed(folder_store) == ["create_race"]


def test_digests_that_are_not_checked_are_found(store, monkeypatch):
    cls = type(store.backend)
    honest = cls.attempt
    monkeypatch.setattr(cls, "attempt", lambda self, name, source: honest(self, name, Source.of(source.data)))
    assert failed(store) == ["wrong_digest_refused"]


def test_a_server_that_keeps_no_digest_is_found(s3_store, monkeypatch):
    honest = S3Backend.stat

    def forgetful(self: S3Backend, name: str) -> Stat | None:
        stat = honest(self, name)
        return stat and Stat(stat.size, None)

    monkeypatch.setattr(S3Backend, "stat", forgetful)
    assert failed(s3_store) == ["stored_digest"]


def test_lists_that_end_early_are_found(store, monkeypatch):
    cls = type(store.backend)
    honest = cls.list
    monkeypatch.setattr(cls, "list", lambda self, prefix: honest(self, prefix)[:20])
    assert failed(store) == ["list_pages"]


def test_a_clock_that_is_off_is_found(s3_store):
    assert failed(s3_store, clock=lambda: time.time() + 400) == ["clock"]


def test_no_store_is_made_on_a_server_that_fails_the_probe(s3_uri, monkeypatch):
    honest = S3Backend.attempt

    def overwrite(self: S3Backend, name: str, source: Source) -> None:
        try:
            honest(self, name, source)
        except Exists:
            return

    with monkeypatch.context() as broken:
        broken.setattr(S3Backend, "attempt", overwrite)
        with pytest.raises(Unavailable, match="create_race"):
            open_store(s3_uri, create=True)
    assert open_store(s3_uri, create=True).list("") == ["STORE.json"]


def test_waiting_does_not_touch_the_global_random_state():
    import random

    random.seed(5)
    expected = random.Random(5).random()
    pause = backend.Backoff(5.0)
    assert pause.pause()
    assert random.random() == expected
    assert not backend.Backoff(-1.0).pause()
