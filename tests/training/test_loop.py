"""The loop of one rank, in this process: damaged checkpoints, batches without labels, metrics before the commit."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from corpusmill.errors import CheckFailed, NotFound
from corpusmill.store.receipts import seal
from tests.training.packed import publish_dataset
from tests.training.toy import Toy
from training import launch
from training.checkpoints import commits
from training.loop import _trainer
from training.parallel import Ranks
from training.run import RunSpec

STEPS = 12
SHORT = ("mixture.stage=[{steps=12}]", "run.checkpoint_every=4", "heldout_sequences=2")


@pytest.fixture
def train(ranks: Ranks, tmp_path: Path) -> Iterator[Callable[..., dict[str, Any]]]:
    """Train a run in this process, as its n-th attempt; the result."""

    def attempt(spec: RunSpec, claim: int = 1) -> dict[str, Any]:
        folder = tmp_path / f"{spec.run_id}.{claim}"
        folder.mkdir()
        return _trainer(spec, claim, folder, folder, ranks).run()

    before = signal.getsignal(signal.SIGTERM)
    torch.set_num_threads(1)
    yield attempt
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def own(tmp_path: Path) -> Toy:
    """A store that a test may damage."""
    uri = tmp_path / "store"
    return Toy(str(uri), publish_dataset(uri, tmp_path / "made"), "")


def damage(toy: Toy, name: str) -> None:
    """Flip a byte of the largest file of a checkpoint."""
    folder = Path(toy.uri) / name
    path = max((p for p in folder.iterdir() if p.name != "COMMIT.json"), key=lambda p: p.stat().st_size)
    path.chmod(0o644)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def test_a_damaged_newest_checkpoint_costs_the_steps_since_the_sound_one(
    train: Callable[..., dict[str, Any]], own: Toy, capfd: pytest.CaptureFixture[str]
) -> None:
    spec = own.spec(*SHORT)
    whole = train(spec)
    names = [commits.folder_of(spec.run_id, step) for step in (12, 8, 4)]
    assert commits.names(own.open(), spec.run_id) == names
    damage(own, names[0])
    commit = Path(own.uri) / names[1] / "COMMIT.json"
    commit.chmod(0o644)
    commit.write_bytes(commit.read_bytes()[:-9])

    again = train(spec, 2)
    out = capfd.readouterr().out
    assert [f"WARNING: {name} is passed over" in out for name in names] == [True, True, False]
    assert f"resuming from {names[2]}" in out
    assert again["damaged"] == sorted(names[:2])
    assert again["checkpoint"] == f"{names[0]}.2"
    same = ("batch_chain", "loss_first", "loss_last", "heldout_before", "heldout_after", "tokens")
    assert {name: again[name] for name in same} == {name: whole[name] for name in same}
    assert commits.names(own.open(), spec.run_id)[:4] == [f"{names[0]}.2", names[0], f"{names[1]}.2", names[1]]

    third = train(spec, 3)  # the sound one of the last step is found
    assert (third["damaged"], third["checkpoint"]) == ([], f"{names[0]}.2")
    assert "passed over" not in capfd.readouterr().out


def test_without_any_sound_checkpoint_a_run_starts_from_the_beginning(
    train: Callable[..., dict[str, Any]], own: Toy, capfd: pytest.CaptureFixture[str]
) -> None:
    spec = own.spec("mixture.stage=[{steps=3}]")
    whole = train(spec)
    damage(own, whole["checkpoint"])
    again = train(spec, 2)
    assert "starts from the beginning" in capfd.readouterr().out
    assert (again["batch_chain"], again["loss_last"]) == (whole["batch_chain"], whole["loss_last"])


def test_a_batch_without_labels_is_a_step_of_loss_zero(train: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    """Documents of one token: every label would cross into the next document."""
    manifest = publish_dataset(tmp_path / "s", tmp_path / "made", made=lambda count, seed: [np.zeros(1, int)] * count)
    result = train(Toy(str(tmp_path / "s"), manifest, "").spec("mixture.stage=[{steps=2}]"))
    assert (result["step"], result["tokens"], result["loss_last"]) == (2, 0, 0.0)


def test_metrics_are_stored_before_the_checkpoint_is_committed(ranks: Ranks, own: Toy, tmp_path: Path) -> None:
    spec, store = own.spec(*SHORT), own.open()
    (tmp_path / "1").mkdir()
    trainer = _trainer(spec, 1, tmp_path / "1", tmp_path / "1", ranks)
    # Somebody else commits step 2 after other batches, so ours ends at the commit.
    assert store.create(f"{commits.folder_of(spec.run_id, 2)}/COMMIT.json", seal({"step": 2, "batch_chain": "other"}))
    assert trainer._step()
    assert trainer._step()
    trainer._save("interval")
    with pytest.raises(CheckFailed, match="made from other batches"):
        trainer.saver.wait()
    names = store.list(f"runs/{spec.run_id}/metrics.")
    lines = [json.loads(line) for name in names for line in store.get(name).splitlines()]
    assert [line["step"] for line in lines] == [1, 2]


def test_a_missing_shard_is_found_before_anything_starts(own: Toy, tmp_path: Path) -> None:
    spec = own.spec(*SHORT)
    shards = [shard for name in ("books", "heldout") for shard in spec.facts.partitions[name].shards]
    for shard in shards:
        (Path(own.uri) / shard.tokens.name).unlink()
    with pytest.raises(NotFound, match=shards[0].tokens.name) as gone:
        launch.launch(own.spec(*SHORT, "run.nproc=1"), nproc=1, log_dir=tmp_path)
    assert "2 of 16 files" in gone.value.why
    assert not own.open().list(f"runs/{spec.run_id}/")
