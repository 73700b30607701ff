"""The loader beside others: all are given the same rows, and one that serves others is not measured."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest

from bench.loader import __main__ as loader
from bench.loader import peers
from bench.peer import VENV
from corpusmill.errors import CheckFailed
from corpusmill.store import open_store

ROWS, SHARDS = 400, 3


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the peers torch alone, which this environment has, and one that fails."""
    python = tmp_path / "venv" / "loaders" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr("bench.peer.VENV", tmp_path / "venv")
    monkeypatch.setattr(peers, "PEERS", ("torch", "nobody"))


def beside(folder: Path) -> peers.Seconds:
    store = open_store(folder / "store", create=True)
    partition = loader._stored(store, folder, ROWS, SHARDS)
    return peers.beside(store, partition, 64, folder, partial(loader._epoch, store, partition), 2)


@pytest.mark.usefixtures("here")
def test_a_peer_reads_the_rows_that_we_read_and_one_that_fails_is_said_to(tmp_path: Path) -> None:
    found = beside(tmp_path)
    assert set(found) == {"loader", "torch", "nobody"}
    assert found["nobody"] is None
    assert peers.ratios(found).keys() == {"torch"}
    assert "fails" in peers.shown({SHARDS: found}, ROWS * 1025)
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith("of-")]


@pytest.mark.usefixtures("here")
def test_a_peer_that_serves_other_rows_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "_write", lambda *given, write=peers._write: write(*given) + 1)
    with pytest.raises(CheckFailed, match="torch serves other rows"):
        beside(tmp_path)


@pytest.mark.long
@pytest.mark.skipif(not (VENV / "loaders" / "bin" / "python").is_file(), reason="no .bench-venv: make bench-setup")
def test_all_peers_give_every_row_once(tmp_path: Path) -> None:
    found = beside(tmp_path)
    assert set(found) == {"loader", *peers.PEERS}
    assert None not in found.values()
