"""Checkpoints of one rank: what is stored is what is loaded, in either mode, and nothing damaged is ever opened."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from corpusmill.errors import CheckFailed, NotFound, UsageError
from corpusmill.store import Store, open_store
from tests.training.toy import config
from training import parallel
from training.checkpoints import checkpoint, commits
from training.checkpoints.saver import Saver
from training.data import NO_BATCHES
from training.parallel import Ranks

RUN = "00112233aabbccdd"
VOCAB = 97


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "store", create=True)


def trained(mode: str, ranks: Ranks) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    """A model after one step on made-up gradients, so that it has moments."""
    made = config(f'run.mode="{mode}"')
    model = parallel.build(made, VOCAB, ranks)
    optimizer = parallel.optimizer_of(model, made)
    for i, parameter in enumerate(model.parameters()):
        parameter.grad = torch.ones_like(parameter) * (i + 1)
    optimizer.step()
    return model, optimizer


def numbers(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """All weights and moments, whole."""
    found = []
    for parameter in model.parameters():
        state = optimizer.state[parameter]
        found += [parameter, state["exp_avg"], state["exp_avg_sq"], state["step"]]
    return [t.full_tensor() if hasattr(t, "full_tensor") else t for t in found]


def facts(step: int, chain: str = NO_BATCHES) -> dict[str, Any]:
    return {"step": step, "run_id": RUN, "batch_chain": chain}


def save(store: Store, saved: tuple[torch.nn.Module, torch.optim.Optimizer], ranks: Ranks, scratch: Path) -> str:
    with Saver(store, RUN, *saved, ranks, scratch) as saver:
        return saver.save(facts(3))


@pytest.mark.parametrize(("mode", "other"), [("ddp", "ddp"), ("ddp", "fsdp2"), ("fsdp2", "ddp")])
def test_checkpoint_of_one_mode_is_loaded_into_another(
    mode: str, other: str, ranks: Ranks, store: Store, tmp_path: Path
) -> None:
    saved = trained(mode, ranks)
    name = save(store, saved, ranks, tmp_path)
    assert name == f"checkpoints/{RUN}/00000003"
    made = config(f'run.mode="{other}"', "seed=99")
    model = parallel.build(made, VOCAB, ranks)
    optimizer = parallel.optimizer_of(model, made)
    found = commits.latest(store, RUN)
    assert found
    checkpoint.load(store, found, model, optimizer, ranks, tmp_path)
    for left, right in zip(numbers(*saved), numbers(model, optimizer), strict=True):
        assert torch.equal(left, right)
    assert [path.name for path in tmp_path.iterdir()] == ["store"]  # no scratch left behind


def test_damaged_file_is_never_opened(
    ranks: Ranks, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DCP's .metadata is a pickle; here it is one that somebody else wrote."""
    saved = trained("ddp", ranks)
    save(store, saved, ranks, tmp_path)
    found = commits.latest(store, RUN)
    assert found
    for file in found.facts["files"]:
        copy = tmp_path / file["file"].strip("._")
        shutil.copytree(store.uri, copy)
        path = copy / file["name"]
        path.chmod(0o644)
        path.write_bytes(b"cos\nsystem\n(S'touch /nowhere'\ntR.")
        monkeypatch.setattr(checkpoint, "dcp_load", lambda *a, **k: pytest.fail("opened"))
        with pytest.raises(CheckFailed, match="is damaged: expected sha256"):
            checkpoint.load(open_store(copy), found, *saved, ranks, tmp_path)
        path.unlink()
        with pytest.raises(CheckFailed, match="is gone"):
            checkpoint.load(open_store(copy), found, *saved, ranks, tmp_path)


def test_latest_is_the_highest_committed_step(store: Store) -> None:
    assert commits.latest(store, RUN) is None
    for step in (9, 100, 20):
        commits.write(store, commits.folder_of(RUN, step), facts(step))
    store.create(f"{commits.folder_of(RUN, 500)}/{'a' * 64}", b"a save that was cut off")
    found = commits.latest(store, RUN)
    assert found
    assert found.step == 100
    assert commits.find(store, RUN).step == 100
    assert commits.find(store, f"checkpoints/{RUN}/20").step == 20
    for gone in (f"{RUN}/500", f"{RUN}/21", "ffffffffffffffff"):
        with pytest.raises(NotFound):
            commits.find(store, gone)
    with pytest.raises(UsageError):
        commits.find(store, "latest")


def test_a_step_whose_checkpoint_is_damaged_is_stored_under_a_further_name(store: Store) -> None:
    first = commits.folder_of(RUN, 7)
    second = commits.free_name(RUN, 7, {first})
    assert commits.free_name(RUN, 7, {first, second}) == f"{first}.3"
    for name in (first, second, commits.folder_of(RUN, 6)):
        commits.write(store, name, facts(6 if name.endswith("6") else 7))
    assert commits.names(store, RUN) == [second, first, commits.folder_of(RUN, 6)]
    assert commits.find(store, f"{RUN}/7").name == commits.find(store, second).name == second


def test_edited_commit_is_recognised(store: Store) -> None:
    name = commits.folder_of(RUN, 7)
    commits.write(store, name, facts(7))
    path = Path(store.uri) / name / "COMMIT.json"
    path.chmod(0o644)
    path.write_bytes(path.read_bytes().replace(b'"step":7', b'"step":8'))
    with pytest.raises(CheckFailed, match="damaged"):
        commits.latest(store, RUN)


def test_second_attempt_keeps_the_first_checkpoint_unless_batches_differ(store: Store) -> None:
    name = commits.folder_of(RUN, 7)
    commits.write(store, name, facts(7, "aa"))
    commits.write(store, name, facts(7, "aa") | {"world_size": 4})
    assert "world_size" not in commits.find(store, f"{RUN}/7").facts
    with pytest.raises(CheckFailed, match="made from other batches"):
        commits.write(store, name, facts(7, "bb"))
