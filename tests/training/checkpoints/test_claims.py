"""Who trains a run: one living attempt at a time, dead ones are followed, finished runs stay finished."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from corpusmill.processes import identify
from corpusmill.store import Store, open_store
from corpusmill.store.receipts import seal
from training.checkpoints import claims

RUN = "0123456789abcdef"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path, create=True)


def foreign(store: Store, number: int, age_s: float, *, machine: str = "elsewhere") -> None:
    owner = {"machine": machine, "pid": 1, "started": "1", "time": int(time.time() - age_s)}
    assert store.create(f"runs/{RUN}/claim.{number}", seal(owner))


def test_a_run_has_one_living_attempt(store: Store) -> None:
    assert claims.claim(store, RUN) == 1
    assert claims.claim(store, RUN) is None  # we live
    claims.release(store, RUN, 1, "failed")
    assert claims.claim(store, RUN) == 2


def test_a_dead_process_of_this_machine_is_followed_at_once(store: Store) -> None:
    code = "import sys; from corpusmill.store import open_store; from training.checkpoints.claims import claim; "
    code += "assert claim(open_store(sys.argv[1]), sys.argv[2]) == 1"
    subprocess.run([sys.executable, "-c", code, store.uri, RUN], check=True)
    assert claims.claim(store, RUN) == 2


def test_a_recycled_process_id_is_not_taken_for_the_owner(store: Store) -> None:
    me = identify(os.getpid())
    assert me
    owner = claims._self() | {"started": "another start", "time": int(time.time())}
    store.create(f"runs/{RUN}/claim.1", seal(owner))
    assert claims.claim(store, RUN) == 2


def test_an_attempt_elsewhere_lives_by_its_signs_of_life(store: Store) -> None:
    foreign(store, 1, age_s=claims.LEASE_S - 60)
    assert claims.claim(store, RUN) is None
    foreign(store, 2, age_s=claims.LEASE_S + 60)
    for k in range(1, 8):
        store.create(f"runs/{RUN}/beat.2.{k}", b"{}")
    assert claims.claim(store, RUN) is None
    foreign(store, 3, age_s=claims.LEASE_S + 60)
    assert claims.claim(store, RUN) == 4


def test_the_first_result_counts(store: Store) -> None:
    assert claims.finished(store, RUN) is None
    claims.finish(store, RUN, {"loss_last": 1.0})
    claims.finish(store, RUN, {"loss_last": 2.0})
    assert claims.finished(store, RUN) == {"loss_last": 1.0}


def test_signs_of_life_are_given_while_it_lasts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "BEAT_S", 0.05)
    with claims.beating(store, RUN, 3):
        deadline = time.monotonic() + 20
        while len(store.list(f"runs/{RUN}/beat.3.")) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
    beats = store.list(f"runs/{RUN}/beat.3.")
    assert len(beats) >= 2
    time.sleep(0.15)
    assert store.list(f"runs/{RUN}/beat.3.") == beats
