"""What a run goes back to is followed to the first run, and where the chain breaks that is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from corpusmill.canonical import sha256
from corpusmill.dataset import lineage
from corpusmill.dataset.ancestry import ancestors
from corpusmill.errors import CheckFailed
from corpusmill.store import Store, open_store
from corpusmill.store.receipts import seal
from training.use.seen import trained_on


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "store", create=True)


def run_id(number: int) -> str:
    return f"{number:016x}"


def commit(store: Store, number: int, step: int, **more: Any) -> dict[str, Any]:
    """A committed checkpoint of a run; what another run has as its origin."""
    name = f"checkpoints/{run_id(number)}/{step:08d}"
    facts = {"run_id": run_id(number), "step": step, "manifest_sha256": f"{number:064x}", **more}
    data = seal(facts)
    assert store.create(f"{name}/COMMIT.json", data)
    return {"checkpoint": name, "sha256": sha256(data)}


def shown(store: Store, number: int) -> list[str]:
    nothing: dict[str, Any] = {"name": "x", "manifest": "", "parents": [], "shards": [], "units": [], "inputs": []}
    found = list(lineage.checkpoints(store, f"{number:064x}"))
    return lineage.written_out({**nothing, "checkpoints": found}).splitlines()[:-1]


@pytest.mark.parametrize("length", [1, 100])
def test_a_chain_is_followed_to_the_first_run(store: Store, length: int) -> None:
    origin = commit(store, 0, 5)
    for number in range(1, length + 1):
        origin = commit(store, number, 10 + number, origin=origin)
    (found,) = lineage.checkpoints(store, f"{length:064x}")
    assert [(one["run"], one["how"], one["fault"]) for one in found["ancestors"]] == [
        (run_id(number), "from", "") for number in range(length - 1, -1, -1)
    ]
    assert found["ancestors"][-1]["step"] == 5
    assert found["ancestors"][-1]["manifests"] == (f"{0:064x}",)
    (line,) = shown(store, length)
    before = f"{run_id(length - 1)} step {9 + length if length > 1 else 5}"
    assert line.startswith(f"checkpoint {run_id(length)} step {10 + length}, from {before}")
    assert line.endswith(", and 88 before (--json lists all)") == (length == 100)


def test_a_resumed_run_goes_back_through_the_run_that_it_was_resumed_from(store: Store) -> None:
    begun = commit(store, 2, 20, origin=commit(store, 1, 10), parent="checkpoints/x/00000010")
    store.put(f"runs/{run_id(3)}/run.json", seal({"parent": begun["checkpoint"]}))
    first = commit(store, 3, 30, parent=begun["checkpoint"])
    commit(store, 3, 40, parent=first["checkpoint"])
    ends = f", resumed from {run_id(2)} step 20, from {run_id(1)} step 10"
    assert shown(store, 3) == [f"checkpoint {run_id(3)} step {step}{ends}" for step in (30, 40)]


def test_a_chain_that_breaks_says_where(store: Store) -> None:
    first = commit(store, 1, 10)
    second = commit(store, 2, 20, origin=first)
    commit(store, 3, 30, origin=second)
    path = Path(store.uri) / first["checkpoint"] / "COMMIT.json"
    path.chmod(0o644)
    other = seal({"run_id": run_id(1), "step": 10, "manifest_sha256": f"{9:064x}"})
    for fault, change in (
        ("replaced: its COMMIT.json is another one", lambda: path.write_bytes(other)),
        ("gone", path.unlink),
    ):
        change()
        ends = f", from {run_id(2)} step 20, from {run_id(1)} step 10 ({fault})"
        assert shown(store, 3) == [f"checkpoint {run_id(3)} step 30{ends}"]
        with pytest.raises(CheckFailed, match=f"goes back to {first['checkpoint']}"):
            trained_on(store, [], {"run_id": run_id(3), "origin": second})


def test_a_chain_that_comes_back_to_itself_ends(store: Store) -> None:
    """Digests forbid it; a store that somebody has written into may have it."""
    there = "checkpoints/{}/00000010"
    for number, other in ((1, 2), (2, 1)):
        commit(store, number, 10, origin={"checkpoint": there.format(run_id(other))})
    found = ancestors(store, {"run_id": run_id(1), "origin": {"checkpoint": there.format(run_id(2))}})
    assert [(one.run, one.fault) for one in found] == [
        (run_id(2), ""),
        (run_id(1), ""),
        (run_id(2), "the chain comes back to it"),
    ]
