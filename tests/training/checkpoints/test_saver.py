"""Saves in the background: the same bytes, one at a time, nothing of training in them, and no fault lost."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist

from corpusmill.errors import CheckFailed, Unavailable
from corpusmill.store import Store, open_store
from tests.training.forked import joined, started
from tests.training.toy import Toy, config
from training import parallel
from training.checkpoints import checkpoint, commits, replicas
from training.checkpoints.saver import Saver
from training.loop import _trainer
from training.parallel import Ranks

RUN = "00112233aabbccdd"
VOCAB = 97
SHORT = ("run.checkpoint_every=2", "run.micro_batch=8", "heldout_sequences=2")


def trained(mode: str, ranks: Ranks) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    """A model after one step on made-up gradients, so that it has moments."""
    made = config(f'run.mode="{mode}"')
    model = parallel.build(made, VOCAB, ranks)
    optimizer = parallel.optimizer_of(model, made)
    stepped(model, optimizer)
    return model, optimizer


def stepped(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()


def facts(step: int) -> dict[str, Any]:
    return {"step": step, "run_id": RUN, "batch_chain": ""}


def files(store: Store, name: str) -> dict[str, str]:
    return {file["file"]: file["sha256"] for file in commits.read(store, name).facts["files"]}


@contextmanager
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Uploads wait for this event."""
    go, upload = threading.Event(), checkpoint._upload

    def waits(*args: Any) -> dict[str, object]:
        assert go.wait(20)
        return upload(*args)

    monkeypatch.setattr(checkpoint, "_upload", waits)
    yield go
    go.set()


@pytest.mark.parametrize("mode", ["ddp", "fsdp2"])
def test_what_is_stored_is_the_state_of_the_step_whatever_training_does_meanwhile(
    mode: str, ranks: Ranks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, optimizer = trained(mode, ranks)
    store = open_store(tmp_path / "store", create=True)
    later = open_store(tmp_path / "later", create=True)
    with Saver(store, RUN, model, optimizer, ranks, tmp_path, background=False) as saver:
        at_once = files(store, saver.save(facts(3)))
    with Saver(later, RUN, model, optimizer, ranks, tmp_path) as saver, held(monkeypatch) as go:
        name = saver.save(facts(3), {f"runs/{RUN}/metrics.1": b"{}"})
        stepped(model, optimizer)
        assert not later.list("checkpoints/"), "training went on while nothing was stored"
        go.set()
        saver.wait()
        assert files(later, name) == at_once
        assert later.get(f"runs/{RUN}/metrics.1") == b"{}"
        held_bytes = saver.buffers.bytes
        parameters = sum(parameter.numel() for parameter in model.parameters())
        assert 12 * parameters <= held_bytes <= 12 * parameters + 4 * len(list(model.parameters()))
        saver.save(facts(5))
        saver.wait()
        assert saver.buffers.bytes == held_bytes
    assert files(later, commits.folder_of(RUN, 5)) != at_once


def test_one_save_is_in_flight_and_the_next_waits_for_it(
    ranks: Ranks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, optimizer = trained("ddp", ranks)
    store = open_store(tmp_path / "store", create=True)
    with held(monkeypatch) as go, Saver(store, RUN, model, optimizer, ranks, tmp_path) as saver:
        saver.save(facts(3))
        threading.Timer(0.3, go.set).start()
        saver.save(facts(4))
        assert [commits.step_of(name) for name in commits.names(store, RUN)][-1:] == [3]
    assert [commits.step_of(name) for name in commits.names(store, RUN)] == [4, 3]


def test_a_fault_of_the_thread_ends_the_run_at_its_next_step_and_nothing_is_committed(
    toy: Toy, ranks: Ranks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: Any) -> None:
        raise Unavailable("the disk is full")

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(checkpoint, "_upload", full)
    for number, steps in enumerate((2, 9)):  # at the end of the run, and in the middle
        spec = toy.spec(f"mixture.stage=[{{steps={steps}}}]", f"seed={40 + number}", *SHORT)
        folder = tmp_path / str(steps)
        folder.mkdir()
        trainer = _trainer(spec, 1, folder, folder, ranks)
        with pytest.raises(Unavailable, match="the disk is full"):
            trainer.run()
        assert trainer.progress.step <= 4
        assert not commits.names(toy.open(), spec.run_id)
        assert not toy.open().list(f"runs/{spec.run_id}/metrics.")
    signal.signal(signal.SIGTERM, before)


def test_a_run_that_ends_by_a_fault_finishes_the_save_that_has_begun(
    toy: Toy, ranks: Ranks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    spec = toy.spec("mixture.stage=[{steps=9}]", "seed=42", *SHORT)
    trainer = _trainer(spec, 1, tmp_path, tmp_path, ranks)
    step = trainer._step
    with held(monkeypatch) as go:

        def diverges() -> bool:
            if trainer.progress.step == 3:
                threading.Timer(0.2, go.set).start()
                raise CheckFailed("training has diverged")
            return step()

        trainer._step = diverges  # type: ignore[method-assign]
        with pytest.raises(CheckFailed, match="diverged"):
            trainer.run()
    assert [commits.step_of(name) for name in commits.names(toy.open(), spec.run_id)] == [2]
    signal.signal(signal.SIGTERM, before)


def _two_ranks(rank: int, folder: Path) -> None:
    """Leaves what each rank saw in `said.<rank>`."""
    said: dict[str, Any] = {}
    ranks = parallel.start(1)
    for mode in ("ddp", "fsdp2"):
        model, optimizer = trained(mode, ranks)
        for background in (False, True):
            store = open_store(folder / f"{mode}-{background}", create=True)
            with Saver(store, RUN, model, optimizer, ranks, folder, background=background) as saver:
                name = saver.save(facts(3), {f"runs/{RUN}/rows.{rank}": b"x"})
                sums = [parallel.sums(rank, 1) for _ in range(50)]  # collectives of training, meanwhile
            assert sums == [[1.0, 2.0]] * 50
            assert store.exists(f"runs/{RUN}/rows.{1 - rank}")
            said[f"{mode} {background}"] = files(store, name)

        def full(*args: Any) -> None:
            raise Unavailable("the disk of rank 1 is full")

        upload = checkpoint._upload
        checkpoint._upload = full if rank else upload  # type: ignore[assignment]
        store = open_store(folder / f"{mode}-full", create=True)
        try:
            with Saver(store, RUN, model, optimizer, ranks, folder) as saver:
                saver.save(facts(3))
        except Unavailable as fault:
            said[f"{mode} full"] = [fault.what, commits.names(store, RUN)]
        checkpoint._upload = upload  # type: ignore[assignment]

    model, optimizer = trained("ddp", ranks)
    last = list(model.parameters())[-1]
    for number, tensor in enumerate((last.data, optimizer.state[last]["exp_avg_sq"])):
        bits, at = tensor.view(torch.int32).view(-1), 5
        bits[at] ^= rank  # one bit, of the second rank alone
        store = open_store(folder / f"bit-{number}", create=True)
        try:
            with Saver(store, RUN, model, optimizer, ranks, folder) as saver:
                saver.save(facts(7))
        except CheckFailed as fault:
            said[f"bit {number}"] = [fault.what, commits.names(store, RUN)]
        bits[at] ^= rank
    replicas.check(checkpoint.state_of(model, optimizer), 7)
    (folder / f"said.{rank}").write_text(json.dumps(said))
    dist.barrier()


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What both of two ranks saw alike."""
    folder = tmp_path_factory.mktemp("two")
    assert joined(started(2, _two_ranks, folder)) == [0, 0]
    first, second = (json.loads((folder / f"said.{rank}").read_text()) for rank in (0, 1))
    assert first == second
    return dict(first)


@pytest.mark.parametrize("mode", ["ddp", "fsdp2"])
def test_two_ranks_store_the_same_bytes_beside_the_collectives_of_training(two: dict[str, Any], mode: str) -> None:
    assert set(two[f"{mode} True"]) == {".metadata", "__0_0.distcp", "__1_0.distcp"}
    assert two[f"{mode} True"] == two[f"{mode} False"]


@pytest.mark.parametrize("mode", ["ddp", "fsdp2"])
def test_what_fails_on_one_rank_is_raised_by_all_and_nothing_is_committed(two: dict[str, Any], mode: str) -> None:
    assert two[f"{mode} full"] == ["the disk of rank 1 is full", []]


@pytest.mark.parametrize("number", [0, 1])
def test_one_bit_of_one_rank_is_found_by_all(two: dict[str, Any], number: int) -> None:
    """Of the weights, of the moments."""
    assert two[f"bit {number}"] == ["step 7: the copies of the model differ on rank 1", []]
